// What a Url shares among its copies: its text, where the parts are in it, and libcurl's parsed
// form where that is needed.
#pragma once

#include "lib/http/owned.hpp"

#include <httpretry/http/url.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
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

// One block of memory, with its text behind it.
struct Url::Parts {
  // Sets the text in `handle`, and takes the result apart.
  static Result<Url> read(detail::CurlUrl handle, std::string_view text, unsigned flags);
  static Result<Url> take_apart(detail::CurlUrl handle);
  // For a URL that needs no libcurl; empty for any other.
  static std::optional<Url> read_plain(std::string_view text);
  // `query` without its "?"; empty where there is none. `handle`: null for a plain URL.
  static Url make(bool tls, bool userinfo, std::string_view host, std::uint16_t port,
                  std::string_view path, std::string_view query, detail::CurlUrl handle);

  // "scheme://host:port/path?query", without the port of the scheme. Ends with NUL.
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(this + 1), size};
  }
  [[nodiscard]] std::string_view scheme() const { return text().substr(0, tls ? 5 : 4); }
  [[nodiscard]] std::string_view host() const {
    const std::size_t begin = tls ? 8 : 7;
    return text().substr(begin, host_end - begin);
  }
  [[nodiscard]] std::string_view origin() const { return text().substr(0, origin_end); }
  [[nodiscard]] std::string_view path() const {
    return text().substr(origin_end, path_end - origin_end);
  }
  [[nodiscard]] std::string_view query() const {
    return text().substr(std::min<std::size_t>(path_end + 1, size));
  }
  [[nodiscard]] std::string_view without_query() const { return text().substr(0, path_end); }

  mutable std::atomic<std::uint32_t> owners = 1;
  std::uint32_t size = 0;  // of the text, in which these are the ends of parts:
  std::uint32_t host_end = 0;
  std::uint32_t origin_end = 0;
  std::uint32_t path_end = 0;
  std::uint16_t port = 0;
  bool tls = false;
  bool userinfo = false;
  bool named = false;  // the host is a name to look up, not an address or localhost
  // Never changed once shared: libcurl copies it for each transfer. Null for a plain URL.
  detail::CurlUrl handle;
};

}  // namespace httpretry
