#include "gunzip.hpp"

#include <zlib.h>

#include <array>
#include <new>

namespace httpretry {

Gunzip::Gunzip() : stream_(std::make_unique<z_stream>()) {
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(stream_.get(), kGzipOnly) != Z_OK) throw std::bad_alloc();
}

Gunzip::~Gunzip() { inflateEnd(stream_.get()); }

Gunzip::Status Gunzip::feed(std::string_view encoded, const Sink& into) {
  std::array<char, 16384> decoded;
  // zlib does not write to its input, and says so only by a macro.
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(encoded.data()));
  stream_->avail_in = static_cast<uInt>(encoded.size());
  while (stream_->avail_in > 0) {
    inside_ = true;
    int result = Z_OK;
    do {
      stream_->next_out = reinterpret_cast<Bytef*>(decoded.data());
      stream_->avail_out = static_cast<uInt>(decoded.size());
      result = inflate(stream_.get(), Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) return Status::Corrupt;
      const auto count = decoded.size() - stream_->avail_out;
      if (count > 0 && !into({decoded.data(), count})) return Status::Refused;
    } while (result == Z_OK && stream_->avail_out == 0);
    if (result == Z_STREAM_END) {  // RFC 1952: another member may follow
      inside_ = false;
      inflateReset(stream_.get());
    }
  }
  return Status::Ok;
}

}  // namespace httpretry
