// Hosts and paths of patterns and requests, compared in their normal form.
#pragma once

#include <httpretry/policy/endpoint.hpp>

#include <array>

namespace httpretry::policy {

// A step of a look-up. Only tests count them.
#ifdef HTTPRETRY_COUNT_STEPS
inline thread_local std::size_t steps = 0;
inline void count_step() { ++steps; }
#else
inline void count_step() {}
#endif

inline std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

struct HostPattern {
  enum class Kind : std::uint8_t { Any, Suffix, Exact };  // the most specific last
  Kind kind = Kind::Any;
  std::string name;     // the suffix without its "*."
  std::string problem;  // why it is not a pattern; empty otherwise
};
HostPattern parse_host(std::string_view text);

inline constexpr std::size_t kMaxHost = 253;  // bytes, in DNS

// The host without the dot of a name that is written to its root; nothing else ends in one.
inline std::string_view without_trailing_dots(std::string_view host) {
  return host.substr(0, host.find_last_not_of('.') + 1);
}

// A part of a request.
struct Label {
  Label() = default;
  // Encoded: "%41" is "A". A "%" that encodes nothing is itself.
  explicit Label(std::string_view label_text, bool encoded_text = false)
      : text(label_text), encoded(encoded_text) {}

  [[nodiscard]] bool is(std::string_view data) const;
  [[nodiscard]] std::uint64_t hash() const;  // of the data; worked out once

  std::string_view text;
  bool encoded = false;
  mutable std::uint64_t known_hash = 0;
};

inline constexpr std::size_t kMaxSegments = 16;

// The segments of a path without its dot segments (RFC 3986 section 5.2.4), encoded ones included.
// No pattern tells paths apart that differ only after what is kept.
struct Segments {
  std::array<Label, kMaxSegments + 1> kept{};
  std::size_t count = 0;  // of all of them
};
Segments split_path(std::string_view path);

// A segment of a pattern; the most specific last.
enum class Step : std::uint8_t { Rest, One, Literal };

struct PathPattern {
  std::vector<Step> steps;
  std::vector<std::string> literals;  // the data of each step; empty where it is not literal
  std::string problem;                // why it is not a pattern; empty otherwise
};
PathPattern parse_path(std::string_view text);

}  // namespace httpretry::policy
