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

std::optional<OriginPattern> parse(std::string_view text) {
  std::string exact(text);
  const auto host = exact.find("://");
  if (host == std::string::npos) return std::nullopt;
  const bool suffix = exact.compare(host + 3, 2, "*.") == 0;
  if (suffix) exact.erase(host + 3, 2);
  if (exact.find_first_of("*/?#@", host + 3) != std::string::npos) return std::nullopt;
  auto url = Url::parse(exact);
  // "*.0.0.1" is not allowed, because the end of an IP address is not a domain.
  if (!url || (suffix && is_address(url->host()))) return std::nullopt;
  return OriginPattern{*std::move(url), suffix};
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
