#include "endpoint_host.hpp"

#include "lib/http/text.hpp"

#include <idn2.h>

#include <algorithm>
#include <memory>

namespace httpretry::policy {
namespace {

// libcurl makes names ASCII too, but only where the program's locale is UTF-8; a policy file must
// not mean different things in different locales.

// No label of DNS is longer; one character of a longer name has four bytes at most.
constexpr std::size_t kMaxLabel = 63;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

// The dots of other scripts (RFC 3490 section 3.1) as dots.
std::string with_plain_dots(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto character = text.substr(0, character_length(text));
    const auto dot = character == "\u3002" || character == "\uFF0E" || character == "\uFF61";
    plain += dot ? std::string_view(".") : character;
    text.remove_prefix(character.size());
  }
  return plain;
}

// UTS 46, non-transitional, as browsers do. A label that cannot be converted becomes one that is
// refused for its length.
std::string punycode(std::string_view label) {
  if (label.size() > 4 * kMaxLabel) return std::string(label.size(), 'x');
  const std::string text(label);
  std::uint8_t* converted = nullptr;
  const auto code = idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(text.c_str()), &converted,
                                   IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  const std::unique_ptr<std::uint8_t, void (*)(void*)> owner(converted, idn2_free);
  if (code == IDN2_TOO_BIG_LABEL || code == IDN2_TOO_BIG_DOMAIN) {
    return std::string(kMaxLabel + 1, 'x');
  }
  // The name stays as it is, and libcurl refuses it.
  return code == IDN2_OK ? reinterpret_cast<const char*>(converted) : text;
}

}  // namespace

std::optional<std::string> ascii_host(std::string_view text) {
  for (auto rest = text; !rest.empty(); rest.remove_prefix(character_length(rest))) {
    if (character_length(rest) == 0) return std::nullopt;
  }
  auto host = with_plain_dots(text);
  if (!is_ascii(host)) {
    std::string converted;
    for (std::size_t begin = 0; begin <= host.size();) {
      const auto end = std::min(host.find('.', begin), host.size());
      const auto label = std::string_view(host).substr(begin, end - begin);
      converted += is_ascii(label) ? std::string(label) : punycode(label);
      if (end < host.size()) converted += '.';
      begin = end + 1;
    }
    host = std::move(converted);
  }
  std::transform(host.begin(), host.end(), host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return host;
}

}  // namespace httpretry::policy
