// Host patterns.
#include "lib/http/text.hpp"
#include "lib/policy/endpoint_pattern.hpp"

#include <idn2.h>

#include <algorithm>

namespace httpretry::policy {
namespace {

constexpr std::size_t kMaxLabel = 63;  // bytes, in DNS

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

// With the dots of other scripts (RFC 3490 section 3.1) as dots; empty where it is not UTF-8.
std::optional<std::string> with_plain_dots(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto character = text.substr(0, character_length(text));
    if (character.empty()) return std::nullopt;
    const auto dot = character == "\u3002" || character == "\uFF0E" || character == "\uFF61";
    plain += dot ? "." : character;
    text.remove_prefix(character.size());
  }
  return plain;
}

// UTS 46, non-transitional, as browsers do. A label that cannot be converted becomes one that is
// refused for its length.
std::string punycode(const std::string& label) {
  const std::string too_long(kMaxLabel + 1, 'x');
  if (label.size() > 4 * kMaxLabel) return too_long;  // a character has four bytes at most
  std::uint8_t* converted = nullptr;
  const auto code = idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(label.c_str()), &converted,
                                   IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  const std::unique_ptr<std::uint8_t, void (*)(void*)> owner(converted, idn2_free);
  if (code == IDN2_TOO_BIG_LABEL || code == IDN2_TOO_BIG_DOMAIN) return too_long;
  // The name stays as it is, and libcurl refuses it.
  return code == IDN2_OK ? reinterpret_cast<const char*>(converted) : label;
}

// The labels of a name, at least one.
std::vector<std::string> labels_of(std::string_view name) {
  std::vector<std::string> labels(1);
  for (const auto c : name) {
    if (c == '.') {
      labels.emplace_back();
    } else {
      labels.back() += c;
    }
  }
  return labels;
}

// A name as DNS has it, in lower case; empty where it is not UTF-8. libcurl makes names ASCII too,
// but only where the program's locale is UTF-8; a policy file must not mean different things in
// different locales.
std::optional<std::string> ascii_host(std::string_view text) {
  auto host = with_plain_dots(text);
  if (!host || is_ascii(*host)) return host ? std::optional(to_lower(*host)) : std::nullopt;
  std::string ascii;
  for (const auto& label : labels_of(*host)) {
    ascii += (is_ascii(label) ? label : punycode(label)) + '.';
  }
  ascii.pop_back();
  return to_lower(ascii);
}

std::string problem_of_name(std::string_view name) {
  if (name.empty()) return "it has no name";
  if (name.front() == '[') {
    if (name.back() != ']') return "its bracket is not closed, or something follows it";
    return name.find('%') == name.npos ? "" : "a zone is not looked at";
  }
  if (name.find('*') != name.npos) return "one leading \"*.\" is allowed";
  if (name.find_first_of("/?#@%\\") != name.npos) return "only a name belongs here";
  const auto colons = std::count(name.begin(), name.end(), ':');
  if (colons == 1) return "the port has a key of its own";
  if (colons > 1) return "an IPv6 address stands in brackets, as in \"[::1]\"";
  if (name.size() > kMaxHost) return "a name has at most 253 bytes";
  for (const auto& label : labels_of(name)) {
    if (label.empty()) return "it has an empty label";
    if (label.size() > kMaxLabel) return "a label has at most 63 bytes";
  }
  return {};
}

// A name that libcurl, and thereby a request, leaves as it is: no address in any spelling.
bool is_plain(std::string_view name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return name.find_first_not_of(kPlain) == name.npos && name.back() > '9';
}

// Whether libcurl would take the last label, and thereby the name, for an IPv4 address.
bool is_ipv4(std::string_view name) {
  return name.find_first_not_of("0123456789", name.rfind('.') + 1) == name.npos;
}

}  // namespace

HostPattern parse_host(std::string_view text) {
  HostPattern host;
  const auto ascii = ascii_host(text);
  if (!ascii) host.problem = "it is not UTF-8";
  if (!ascii || *ascii == "*") return host;
  auto& [kind, name, problem] = host;
  name = without_trailing_dots(*ascii);
  kind = name.starts_with("*.") ? HostPattern::Kind::Suffix : HostPattern::Kind::Exact;
  if (kind == HostPattern::Kind::Suffix) name.erase(0, 2);
  problem = problem_of_name(name);
  if (!problem.empty()) return host;
  const bool ipv6 = name.front() == '[';
  if (!is_plain(name)) {
    if (const auto url = Url::parse("http://" + name + "/")) {
      name = url->host();
    } else {
      problem = ipv6 ? "it is not an IPv6 address" : "no host can have that name";
    }
  }
  if (problem.empty() && kind == HostPattern::Kind::Suffix && (ipv6 || is_ipv4(name))) {
    problem = "an address has no suffix";
  }
  return host;
}

}  // namespace httpretry::policy
