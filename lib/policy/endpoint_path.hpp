// Paths, cut into segments and compared in their normal form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::policy {

inline constexpr std::size_t kMaxSegments = 16;

// A name as it is asked for.
struct Label {
  std::string_view text;
  bool encoded = false;  // the text has percent-encoded bytes, or may have

  [[nodiscard]] bool is(std::string_view data) const;
};

// The segments of a path without its dot segments (RFC 3986 section 5.2.4), encoded ones included.
// No pattern tells paths apart that differ only after what is kept.
struct Segments {
  std::array<Label, kMaxSegments + 1> kept{};
  std::size_t count = 0;  // of all of them
};
Segments split_path(std::string_view path);

// Takes one byte of data off a segment: "%41" is "A". A "%" that encodes nothing is itself.
char take_byte(std::string_view& segment);

// A segment of a pattern.
enum class Step : std::uint8_t { Literal, One, Rest };

struct PathPattern {
  std::vector<Step> steps;
  std::vector<std::string> literals;  // the data of each step; empty where it is not literal
  std::string problem;                // why it is none; empty otherwise
};
PathPattern parse_path(std::string_view text);

}  // namespace httpretry::policy
