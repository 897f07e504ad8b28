// The parts of endpoint patterns and requests: hosts, paths and conditions, in normal form.
#pragma once

#include <httpretry/policy/endpoint.hpp>

#include <array>

namespace httpretry::policy {

inline std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

struct HostPattern {
  enum class Kind : std::uint8_t { Any, Pattern, Exact };  // the most specific last
  Kind kind = Kind::Any;
  std::string name;                 // without a leading "*."; empty if the kind is Any
  std::vector<std::string> labels;  // of a Pattern; "*" matches any single label
  bool leading_star = false;        // for a Pattern: one or more labels precede `labels`
  std::string problem;              // why the text is not a pattern; empty otherwise

  [[nodiscard]] std::size_t fixed_count() const;   // the number of labels that are not "*"
  [[nodiscard]] std::size_t suffix_count() const;  // the number of fixed labels at the end
};
// Returns whether a host can match both.
bool can_overlap(const HostPattern& a, const HostPattern& b);
// Parses an exact host, "*", or a name with labels that are "*". Sets `problem` if it is neither.
HostPattern parse_host(std::string_view text);

inline constexpr std::size_t kMaxHost = 253;  // bytes; the limit of DNS

// Returns the host without the dot of the DNS root: "example.com." is "example.com".
inline std::string_view without_trailing_dots(std::string_view host) {
  return host.substr(0, host.find_last_not_of('.') + 1);
}

// A part of a request that is compared with the data of a pattern.
struct Label {
  Label() = default;
  // In an encoded text, "%41" stands for "A". A "%" that encodes nothing stands for itself.
  explicit Label(std::string_view label_text, bool encoded_text = false)
      : text(label_text), encoded(encoded_text) {}

  [[nodiscard]] bool is(std::string_view data) const { return begins_with(data, /*whole=*/true); }
  // With `whole`, returns whether the label equals `data`.
  [[nodiscard]] bool begins_with(std::string_view data, bool whole = false) const;

  std::string_view text;
  bool encoded = false;
};

inline constexpr std::size_t kMaxSegments = 16;

// The segments of a path after its dot segments, plain or encoded, were removed (RFC 3986 section
// 5.2.4).
struct Segments {
  [[nodiscard]] const Label& operator[](std::size_t i) const {
    return i < inline_segments.size() ? inline_segments[i] : overflow[i - inline_segments.size()];
  }

  std::array<Label, kMaxSegments + 1> inline_segments{};  // so that usual paths do not allocate
  std::vector<Label> overflow;                            // the segments after these
  std::size_t count = 0;                                  // of all segments
};
Segments split_path(std::string_view path);

// The kind of a segment of a pattern, the most specific last.
enum class Step : std::uint8_t { Rest, One, Literal };

struct PathPattern {
  std::vector<Step> steps;
  std::vector<std::string> literals;  // the data of each step; empty for other kinds of steps
  std::string problem;                // why the text is not a pattern; empty otherwise
};
PathPattern parse_path(std::string_view text);

// A condition on a header or on an item of the query. A text such as "gold*" in EndpointPattern
// matches all values that begin with "gold".
struct Condition {
  enum class Source : std::uint8_t { Header, Query };

  Condition(Source from, std::string_view item_name, std::string_view text);
  [[nodiscard]] bool holds(const Headers& headers, std::string_view query) const;
  // Returns whether no request fits both.
  [[nodiscard]] bool contradicts(const Condition& other) const;

  Source source;
  std::string name;
  std::string value;
  bool is_prefix;  // `value` is the beginning of the values that match
};
std::vector<Condition> conditions_of(const EndpointPattern& pattern);

}  // namespace httpretry::policy
