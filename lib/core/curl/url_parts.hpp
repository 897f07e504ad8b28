// What a Url shares among its copies: its text, where the parts are in it, and libcurl's parsed
// form where that is needed.
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

// Empty where the URL has none.
std::string url_part(CURLU* url, CURLUPart which, unsigned flags = 0);

}  // namespace detail

struct Url::Parts {
  // Sets the text in `handle`, and takes the result apart.
  static Result<Url> read(detail::CurlUrl handle, std::string_view text, unsigned flags);
  // For a URL that needs no libcurl; empty for any other.
  static std::optional<Url> read_plain(std::string_view text);
  // `query` without its "?"; empty where there is none. `handle`: null for a plain URL.
  static Url make(bool tls, bool userinfo, std::string_view host, std::uint16_t port,
                  std::string_view path, std::string_view query, detail::CurlUrl handle);

  [[nodiscard]] std::string_view between(std::size_t begin, std::size_t end) const {
    return std::string_view(text).substr(begin, end - begin);
  }

  std::string text;  // "scheme://host:port/path?query", without the port of the scheme
  // The offsets in `text` at which its parts end:
  std::size_t scheme_end = 0;
  std::size_t host_end = 0;
  std::size_t origin_end = 0;
  std::size_t path_end = 0;
  std::uint16_t port = 0;
  bool userinfo = false;
  bool named = false;  // the host is a name to look up, not an address or localhost
  // Never changed once shared: libcurl copies it for each transfer. Null for a plain URL.
  detail::CurlUrl handle;
};

}  // namespace httpretry
