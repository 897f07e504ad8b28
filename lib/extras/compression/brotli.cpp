#include "lib/core/base/owned.hpp"

#include <httpretry/compression/compression.hpp>

#include <brotli/decode.h>
#include <brotli/encode.h>

#include <new>
#include <stdexcept>

namespace httpretry {
namespace {

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}
std::uint8_t* bytes_of(std::span<char> room) {
  return reinterpret_cast<std::uint8_t*>(room.data());
}

class BrotliDecoder final : public ContentCoder {
 public:
  // Decompresses bytes from the front of `in`, which it shortens, into `out`. Returns the number of
  // bytes that it wrote, and a state: what the coder needs before it can continue (MoreInput, or
  // MoreOutput for more space), that the stream has ended (End), or that its bytes are invalid
  // (Corrupt). The stream itself says where it ends, so `last`, the end of the input, is not used.
  Step run(std::string_view& in, std::span<char> out, bool /*last*/) override {
    if (ended_) return {0, State::Corrupt};  // brotli allows no second stream behind the first
    // The decoder advances the two pointers, and subtracts from the two sizes.
    auto in_left = in.size();
    auto out_left = out.size();
    const auto* next_in = bytes_of(in);
    auto* next_out = bytes_of(out);
    const auto result = BrotliDecoderDecompressStream(state_.get(), &in_left, &next_in, &out_left,
                                                      &next_out, /*total_out=*/nullptr);
    in.remove_prefix(in.size() - in_left);
    const auto written = out.size() - out_left;
    ended_ = result == BROTLI_DECODER_RESULT_SUCCESS;
    if (ended_) return {written, State::End};
    if (result == BROTLI_DECODER_RESULT_ERROR) return {written, State::Corrupt};
    const bool has_more_output = result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    return {written, has_more_output ? State::MoreOutput : State::MoreInput};
  }

 private:
  static BrotliDecoderState* create() {
    auto* state = BrotliDecoderCreateInstance(nullptr, nullptr, nullptr);
    return state != nullptr ? state : throw std::bad_alloc();
  }
  Owned<BrotliDecoderState, BrotliDecoderDestroyInstance> state_{create()};
  bool ended_ = false;
};

class BrotliEncoder final : public ContentCoder {
 public:
  explicit BrotliEncoder(int quality) {
    BrotliEncoderSetParameter(state_.get(), BROTLI_PARAM_QUALITY,
                              static_cast<std::uint32_t>(quality));
  }

  // Compresses bytes from the front of `in`, which it shortens, into `out`. `last` says that no
  // input follows `in`, so that the encoder writes the end of the stream. Returns the number of
  // bytes that it wrote, and a state: what the encoder needs before it can continue (MoreInput, or
  // MoreOutput for more space), that the stream is complete (End), or that the encoder has failed
  // (Corrupt).
  Step run(std::string_view& in, std::span<char> out, bool last) override {
    // The encoder advances the two pointers, and subtracts from the two sizes.
    auto in_left = in.size();
    auto out_left = out.size();
    const auto* next_in = bytes_of(in);
    auto* next_out = bytes_of(out);
    const auto operation = last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS;
    const auto succeeded = BrotliEncoderCompressStream(state_.get(), operation, &in_left, &next_in,
                                                       &out_left, &next_out, /*total_out=*/nullptr);
    in.remove_prefix(in.size() - in_left);
    const auto written = out.size() - out_left;
    if (succeeded != BROTLI_TRUE) return {written, State::Corrupt};
    if (BrotliEncoderIsFinished(state_.get()) == BROTLI_TRUE) return {written, State::End};
    const bool has_more_output = BrotliEncoderHasMoreOutput(state_.get()) == BROTLI_TRUE;
    return {written, has_more_output ? State::MoreOutput : State::MoreInput};
  }

 private:
  static BrotliEncoderState* create() {
    auto* state = BrotliEncoderCreateInstance(nullptr, nullptr, nullptr);
    return state != nullptr ? state : throw std::bad_alloc();
  }
  Owned<BrotliEncoderState, BrotliEncoderDestroyInstance> state_{create()};
};

}  // namespace

ContentCoding brotli(int quality) {
  if (quality < BROTLI_MIN_QUALITY || quality > BROTLI_MAX_QUALITY) {
    throw std::invalid_argument("the quality of brotli() must be from 0 to 11");
  }
  ContentCoding coding;
  coding.name = "br";
  coding.decoder = [] { return std::make_unique<BrotliDecoder>(); };
  coding.encoder = [quality] { return std::make_unique<BrotliEncoder>(quality); };
  return coding;
}

}  // namespace httpretry
