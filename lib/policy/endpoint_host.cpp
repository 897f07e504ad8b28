#include "endpoint_host.hpp"

#include <httpretry/http/url.hpp>

#include <algorithm>

namespace httpretry::policy {
namespace {

constexpr std::string_view kOneStar = "one leading \"*.\" is allowed";

std::string problem_of_address(std::string_view name) {
  if (name.back() != ']') return "its bracket is not closed, or something follows it";
  if (name.find('%') != std::string_view::npos) return "a zone is not looked at";
  return {};
}

std::string problem_of_labels(std::string_view name) {
  if (name.size() > kMaxHost) return "a name has at most 253 bytes";
  for (std::size_t begin = 0; begin <= name.size();) {
    const auto end = std::min(name.find('.', begin), name.size());
    if (end == begin) return "it has an empty label";
    if (end - begin > 63) return "a label has at most 63 bytes";
    begin = end + 1;
  }
  return {};
}

std::string problem_of_name(std::string_view name) {
  if (name.find('*') != std::string_view::npos) return std::string(kOneStar);
  if (name.find_first_of("/?#@%\\") != std::string_view::npos) return "only a name belongs here";
  const auto colons = std::count(name.begin(), name.end(), ':');
  if (colons == 1) return "the port has a key of its own";
  if (colons > 1) return "an IPv6 address stands in brackets, as in \"[::1]\"";
  return problem_of_labels(name);
}

// Whether libcurl would take the last label, and thereby the name, for an IPv4 address.
bool is_ipv4(std::string_view name) {
  const auto last = name.substr(name.rfind('.') + 1);
  return last.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_plain(std::string_view name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return name.find_first_not_of(kPlain) == std::string_view::npos &&
         name.back() > '9';  // may not be an address in any of its spellings
}

// As libcurl writes it, which is what requests come with.
HostPattern normalised(HostPattern host) {
  const bool address = host.name.front() == '[';
  host.problem = address ? problem_of_address(host.name) : problem_of_name(host.name);
  if (!host.problem.empty()) return host;
  if (!is_plain(host.name)) {
    const auto url = Url::parse("http://" + host.name + "/");
    if (!url) {
      host.problem = address ? "it is not an IPv6 address" : "no host can have that name";
      return host;
    }
    host.name = url->host();
  }
  if (host.kind != HostPattern::Kind::Suffix) return host;
  host.labels = static_cast<std::size_t>(std::count(host.name.begin(), host.name.end(), '.')) + 1;
  if (address || is_ipv4(host.name)) host.problem = "an address has no suffix";
  return host;
}

}  // namespace

HostPattern parse_host(std::string_view text) {
  HostPattern host;
  const auto ascii = ascii_host(text);
  if (!ascii) {
    host.problem = "it is not UTF-8";
    return host;
  }
  if (*ascii == "*") return host;
  auto name = without_trailing_dots(*ascii);
  host.kind = name.starts_with("*.") ? HostPattern::Kind::Suffix : HostPattern::Kind::Exact;
  if (host.kind == HostPattern::Kind::Suffix) name.remove_prefix(2);
  host.name = name;
  if (name == "*") {
    host.problem = kOneStar;
  } else if (name.empty()) {
    host.problem = "it has no name";
  }
  return host.problem.empty() ? normalised(std::move(host)) : host;
}

}  // namespace httpretry::policy
