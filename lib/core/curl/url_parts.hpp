// The data that the copies of a Url share: the text, the offsets of its parts, and libcurl's parsed
// form if that is needed.
#pragma once

#include "lib/core/base/owned.hpp"

#include <httpretry/http/url.hpp>

#include <curl/curl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {
namespace detail {

using CurlUrl = Owned<CURLU, curl_url_cleanup>;

// Returns "" if the URL does not have the part.
std::string url_part(CURLU* url, CURLUPart which, unsigned flags = 0);

}  // namespace detail

struct Url::Parts {
  // Parses the text with libcurl, in `handle`. `flags` are CURLU_ALLOW_SPACE and so on.
  static Result<Url> read(detail::CurlUrl handle, std::string_view text, unsigned flags = 0);
  // Parses a URL that does not need libcurl. Returns nullopt for any other.
  static std::optional<Url> read_plain(std::string_view text);
  // `host` and `path` are parts of `text`. `handle` is null for a plain URL.
  static Url make(std::string text, std::string_view host, std::uint16_t port,
                  std::string_view path, bool has_userinfo, detail::CurlUrl handle);

  [[nodiscard]] std::string_view between(std::size_t begin, std::size_t end) const {
    return std::string_view(text).substr(begin, end - begin);
  }

  std::string text;  // "scheme://host:port/path?query", without the scheme's default port
  // The offsets in `text` at which the parts end:
  std::size_t scheme_end = 0;
  std::size_t host_end = 0;
  std::size_t origin_end = 0;
  std::size_t path_end = 0;
  std::uint16_t port = 0;
  bool userinfo = false;
  bool host_is_name = false;  // the host is a name to look up, not an address or localhost
  // Not changed after it is shared, because libcurl copies it for each transfer. Null for a plain
  // URL.
  detail::CurlUrl handle;
};

}  // namespace httpretry
