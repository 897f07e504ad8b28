// Url: an absolute http or https URL, taken apart once.
//
// A thin handle on shared immutable data: copying is cheap and safe across threads. Parsing is
// libcurl's, so that what we match policies against is what libcurl connects to.
#pragma once

#include <httpretry/http/result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace httpretry {

namespace detail {
struct UrlParts;  // lib/curl/url_parts.hpp
}

class HTTPRETRY_API Url {
 public:
  // Errc::InvalidRequest, with what is wrong, for text that is no absolute http(s) URL. Control
  // bytes are refused; spaces, and bytes over 0x7F, in path and query are percent-encoded.
  static Result<Url> parse(std::string_view text);

  // Lower case; international names in their ASCII form; IPv6 in brackets.
  [[nodiscard]] const std::string& scheme() const;
  [[nodiscard]] const std::string& host() const;
  [[nodiscard]] std::uint16_t port() const;  // the scheme's where none is given
  [[nodiscard]] const std::string& path()
      const;  // percent-encoded, dot segments removed; at least "/"
  [[nodiscard]] const std::string& query() const;  // percent-encoded, without the "?"
  [[nodiscard]] bool has_userinfo() const;

  // "https://example.com:8443": what credentials belong to. The default port is left out.
  [[nodiscard]] const std::string& origin() const;
  // Scheme, host, port and path: fit for logs and messages.
  [[nodiscard]] std::string without_secrets() const;
  // The whole URL, fragment and userinfo left out.
  [[nodiscard]] std::string to_string() const;

  // The URL that `reference` (absolute or relative, as in a Location field) means when read here.
  // The userinfo is not carried over.
  [[nodiscard]] Result<Url> resolve(std::string_view reference) const;

  // For the transport.
  [[nodiscard]] const detail::UrlParts& parts() const { return *parts_; }

 private:
  explicit Url(std::shared_ptr<const detail::UrlParts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const detail::UrlParts> parts_;
};

// Percent-encodes everything but the unreserved characters of RFC 3986 (letters, digits, "-._~"):
// right for a path segment, and for the name or the value of a query item.
[[nodiscard]] HTTPRETRY_API std::string percent_encode(std::string_view text);

// `url` with "name=value", both encoded, added to its query and before its fragment.
[[nodiscard]] HTTPRETRY_API std::string with_query(std::string_view url, std::string_view name,
                                                   std::string_view value);

}  // namespace httpretry
