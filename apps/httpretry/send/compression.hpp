// The codings of --compressed and --compress.
#pragma once

#ifdef HTTPRETRY_WITH_COMPRESSION
#include <httpretry/compression/compression.hpp>
#else
#include <httpretry/curl/content_coding.hpp>
#endif

#include <vector>

namespace httpretry::cli {

#ifdef HTTPRETRY_WITH_COMPRESSION
inline constexpr const char* kCodings = "gzip|br|zstd";
inline constexpr const char* kAboutCompressed =
    "request gzip, brotli or Zstandard, and decode the body";
inline std::vector<ContentCoding> content_codings() { return {brotli(), zstd()}; }
#else
// Without httpretry::compression, only gzip is supported, which needs no entry in the list.
inline constexpr const char* kCodings = "gzip";
inline constexpr const char* kAboutCompressed = "request gzip, and decode the body";
inline std::vector<ContentCoding> content_codings() { return {}; }
#endif

}  // namespace httpretry::cli
