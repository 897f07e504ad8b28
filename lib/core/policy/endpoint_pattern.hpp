// Hosts and paths of patterns and requests, compared in their normal form.
#pragma once

#include <httpretry/policy/endpoint.hpp>

#include <array>

namespace httpretry::policy {

inline std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

struct HostPattern {
  enum class Kind : std::uint8_t { Any, Pattern, Exact };  // the most specific last
  Kind kind = Kind::Any;
  std::string name;                 // if it is exact
  std::vector<std::string> labels;  // of a Pattern; "*" is any one
  bool leading = false;             // a Pattern with one label more, or several, before these
  std::string problem;              // why it is not a pattern; empty otherwise

  [[nodiscard]] std::size_t fixed() const;   // labels
  [[nodiscard]] std::size_t suffix() const;  // fixed labels at the end
};
// Whether a host can match both.
bool can_meet(const HostPattern& a, const HostPattern& b);
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

  [[nodiscard]] bool is(std::string_view data) const { return begins_with(data, true); }
  // With `whole`, nothing may follow.
  [[nodiscard]] bool begins_with(std::string_view data, bool whole = false) const;

  std::string_view text;
  bool encoded = false;
};

inline constexpr std::size_t kMaxSegments = 16;

// The segments of a path without its dot segments (RFC 3986 section 5.2.4), encoded ones included.
struct Segments {
  [[nodiscard]] const Label& operator[](std::size_t i) const {
    return i < first.size() ? first[i] : more[i - first.size()];
  }

  std::array<Label, kMaxSegments + 1> first{};  // so that usual paths need no memory
  std::vector<Label> more;
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

// A condition on a header or on an item of the query. In EndpointPattern, "gold*" is a beginning.
struct Condition {
  Condition(bool of_header, std::string_view condition_name, std::string_view text);
  [[nodiscard]] bool holds(const Headers& headers, std::string_view query) const;
  // Returns whether no request fits both.
  [[nodiscard]] bool contradicts(const Condition& other) const;

  bool header;  // otherwise an item of the query
  std::string name;
  std::string value;
  bool begins;  // what follows does not matter
};
std::vector<Condition> conditions_of(const EndpointPattern& pattern);

}  // namespace httpretry::policy
