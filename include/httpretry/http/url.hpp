#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry {

// Url is a parsed absolute http or https URL.
//
// It is a cheap handle to shared immutable data, and safe to copy across threads. libcurl does the
// parsing, so policies match exactly the URL that libcurl connects to. The parts are views into one
// shared string that is valid as long as any copy of the Url. A moved-from Url may only be assigned
// or destroyed.
class HTTPRETRY_API Url {
 public:
  // Returns the URL, or Errc::InvalidRequest with the reason if the text is not an absolute http(s)
  // URL with a host. Spaces and control characters are errors. Bytes above 0x7F in path and query
  // are percent-encoded. Segments "." and ".." of the path are resolved, unless
  // `keep_dot_segments`.
  static Result<Url> parse(std::string_view text, bool keep_dot_segments = false);

  // `scheme` and `host` are in lower case, with international names in their ASCII form and IPv6
  // addresses in brackets.
  [[nodiscard]] std::string_view scheme() const;
  [[nodiscard]] std::string_view host() const;
  [[nodiscard]] std::uint16_t port() const;  // the scheme's default if the URL has no port
  // Percent-encoded, without dot segments unless they were kept; at least "/".
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string_view query() const;  // percent-encoded, without the "?"
  // Returns whether the URL has a user name or a password.
  [[nodiscard]] bool has_userinfo() const;

  // "https://example.com:8443", without a default port. Credentials are bound to an origin.
  [[nodiscard]] std::string_view origin() const;
  // Returns whether the URL has nothing but an origin: no userinfo, no path but "/", and no query.
  [[nodiscard]] bool is_origin() const;
  // Scheme, host, port and path, for logs and messages.
  [[nodiscard]] std::string without_secrets() const;
  // The URL without fragment and userinfo.
  [[nodiscard]] std::string to_string() const;

  // Resolves an absolute or relative reference, such as a Location header, against this URL. Spaces
  // in it are percent-encoded. The result has no userinfo.
  [[nodiscard]] Result<Url> resolve(std::string_view reference) const;

  // For transports.
  struct Parts;  // lib/core/curl/url_parts.hpp
  [[nodiscard]] const Parts& parts() const { return *parts_; }

 private:
  explicit Url(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// Percent-encodes everything except the unreserved characters of RFC 3986 (letters, digits,
// "-._~"). For a path segment, or the name or value of a query item.
[[nodiscard]] HTTPRETRY_API std::string percent_encode(std::string_view text);

// Returns `url` with "name=value" appended to its query, both percent-encoded.
[[nodiscard]] HTTPRETRY_API std::string with_query(std::string_view url, std::string_view name,
                                                   std::string_view value);

}  // namespace httpretry
