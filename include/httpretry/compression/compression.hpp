// Brotli and Zstandard for a client:
//
//   ClientOptions options;
//   options.connection.content_codings = {zstd(), brotli()};
//
// Requests with RequestOptions::compressed then accept them, and compress_with("br") or
// compress_with("zstd") compresses the body of a request.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/curl/content_coding.hpp>

namespace httpretry {

// Returns the coding "br" (RFC 7932). The quality is that of the encoder: 0 (fast) to 11 (small).
[[nodiscard]] HTTPRETRY_API ContentCoding brotli(int quality = 5);

// Returns the coding "zstd" (RFC 8878). A response whose window is larger than 8 MiB is refused, as
// RFC 9659 allows, because the decoder needs memory of that size. The level is that of the encoder:
// 1 (fast) to 19 (small).
[[nodiscard]] HTTPRETRY_API ContentCoding zstd(int level = 3);

}  // namespace httpretry
