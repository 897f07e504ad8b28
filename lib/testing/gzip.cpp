#include <lib/testing/gzip.hpp>

#include <zlib.h>

#include <limits>
#include <stdexcept>

namespace httpretry::faults {

std::string gzip(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;  // 16: a gzip wrapper in place of zlib's
  z_stream stream{};
  if (text.size() > std::numeric_limits<uInt>::max() ||
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("cannot compress the body");
  }
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  const int result = deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("cannot compress the body");
  return compressed;
}

}  // namespace httpretry::faults
