#include "origins.hpp"

#include <optional>
#include <string>

namespace httpretry::policy {
namespace {

struct OriginPattern {
  Url url;  // of the host, or of the suffix after "*."
  bool suffix = false;
};

// Returns whether the host is an IP address. If the last label is a number, the host is IPv4.
bool is_address(std::string_view host) {
  const auto last = host.substr(host.rfind('.') + 1);
  return host.ends_with(']') || last.find_first_not_of("0123456789") == std::string_view::npos;
}

// Returns nullopt if the text is not an origin, "https://example.com:8443", or a pattern,
// "https://*.example.com".
std::optional<OriginPattern> parse(std::string_view text) {
  std::string origin(text);
  const auto scheme_end = origin.find("://");
  if (scheme_end == std::string::npos) return std::nullopt;
  const auto host_begin = scheme_end + 3;
  const bool has_wildcard = origin.compare(host_begin, 2, "*.") == 0;
  if (has_wildcard) origin.erase(host_begin, 2);
  if (origin.find_first_of("*/?#@", host_begin) != std::string::npos) return std::nullopt;
  auto url = Url::parse(origin);
  // "*.0.0.1" is not allowed, because the end of an IP address is not a domain.
  if (!url || (has_wildcard && is_address(url->host()))) return std::nullopt;
  return OriginPattern{.url = *std::move(url), .suffix = has_wildcard};
}

}  // namespace

bool is_origin_pattern(std::string_view text) { return parse(text).has_value(); }

bool fits_origin(std::string_view pattern, const Url& url) {
  const auto listed = parse(pattern);
  if (!listed) return false;
  if (!listed->suffix) return listed->url.origin() == url.origin();
  const auto suffix = "." + std::string(listed->url.host());
  return listed->url.scheme() == url.scheme() && listed->url.port() == url.port() &&
         url.host().size() > suffix.size() && url.host().ends_with(suffix);
}

}  // namespace httpretry::policy
