#include "lib/core/base/owned.hpp"

#include <httpretry/compression/compression.hpp>

#include <zstd.h>

#include <new>
#include <stdexcept>

namespace httpretry {
namespace {

// Throws if zstd refuses to set a parameter, which needs no memory, so it never does.
void check(std::size_t result) {
  if (ZSTD_isError(result) != 0) throw std::runtime_error(ZSTD_getErrorName(result));
}

class ZstdDecoder final : public ContentCoder {
 public:
  ZstdDecoder() {
    constexpr int kLargestWindow = 23;  // 8 MiB, as a power of two
    check(ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kLargestWindow));
  }

  Step run(std::string_view& in, std::span<char> out, bool /*last*/) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const auto result = ZSTD_decompressStream(context_.get(), &output, &input);
    in.remove_prefix(input.pos);
    if (ZSTD_isError(result) != 0) return {output.pos, State::Corrupt};
    if (result == 0) return {output.pos, State::End};  // RFC 8878: another frame may follow
    return {output.pos, output.pos == output.size ? State::MoreOutput : State::MoreInput};
  }

 private:
  static ZSTD_DCtx* create() {
    auto* context = ZSTD_createDCtx();
    return context != nullptr ? context : throw std::bad_alloc();
  }
  Owned<ZSTD_DCtx, ZSTD_freeDCtx> context_{create()};
};

class ZstdEncoder final : public ContentCoder {
 public:
  explicit ZstdEncoder(int level) {
    check(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level));
  }

  Step run(std::string_view& in, std::span<char> out, bool last) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const auto operation = last ? ZSTD_e_end : ZSTD_e_continue;
    const auto left = ZSTD_compressStream2(context_.get(), &output, &input, operation);
    in.remove_prefix(input.pos);
    if (ZSTD_isError(left) != 0) return {output.pos, State::Corrupt};
    if (last && left == 0) return {output.pos, State::End};
    return {output.pos, output.pos == output.size ? State::MoreOutput : State::MoreInput};
  }

 private:
  static ZSTD_CCtx* create() {
    auto* context = ZSTD_createCCtx();
    return context != nullptr ? context : throw std::bad_alloc();
  }
  Owned<ZSTD_CCtx, ZSTD_freeCCtx> context_{create()};
};

}  // namespace

ContentCoding zstd(int level) {
  if (level < 1 || level > 19) {
    throw std::invalid_argument("the level of zstd() must be from 1 to 19");
  }
  ContentCoding coding;
  coding.name = "zstd";
  coding.decoder = [] { return std::make_unique<ZstdDecoder>(); };
  coding.encoder = [level] { return std::make_unique<ZstdEncoder>(level); };
  return coding;
}

}  // namespace httpretry
