// Host patterns in their normal form.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry::policy {

struct HostPattern {
  enum class Kind { Exact, Suffix, Any };
  Kind kind = Kind::Any;
  std::string name;        // the suffix without its "*."
  std::size_t labels = 0;  // of a suffix
  std::string problem;     // why it is none; empty otherwise
};
HostPattern parse_host(std::string_view text);

// DNS allows 253 bytes, and thereby 127 labels.
inline constexpr std::size_t kMaxHost = 253;
inline constexpr std::size_t kMaxLabels = 127;

// The dot of a name that is written to its root; nothing else ends in one.
inline std::string_view without_trailing_dots(std::string_view host) {
  return host.substr(0, host.find_last_not_of('.') + 1);
}

// A name as DNS has it: punycode for labels that are not ASCII, letters in lower case,
// the dots of other scripts as dots. Empty where the text is no UTF-8.
std::optional<std::string> ascii_host(std::string_view text);

}  // namespace httpretry::policy
