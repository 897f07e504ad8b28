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
  Step run(std::string_view& in, std::span<char> out, bool /*last*/) override {
    if (ended_) return {0, State::Corrupt};  // a second stream is not allowed
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
    const bool more = result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    return {written, more ? State::MoreOutput : State::MoreInput};
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

  Step run(std::string_view& in, std::span<char> out, bool last) override {
    auto in_left = in.size();
    auto out_left = out.size();
    const auto* next_in = bytes_of(in);
    auto* next_out = bytes_of(out);
    const auto operation = last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS;
    const bool good = BrotliEncoderCompressStream(state_.get(), operation, &in_left, &next_in,
                                                  &out_left, &next_out, nullptr) == BROTLI_TRUE;
    in.remove_prefix(in.size() - in_left);
    const auto written = out.size() - out_left;
    if (!good) return {written, State::Corrupt};
    if (BrotliEncoderIsFinished(state_.get()) == BROTLI_TRUE) return {written, State::End};
    const bool more = BrotliEncoderHasMoreOutput(state_.get()) == BROTLI_TRUE;
    return {written, more ? State::MoreOutput : State::MoreInput};
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
