// Patterns of hosts and paths: parsing and checking.
#include "endpoint_pattern.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/http/headers.hpp>

#include <idn2.h>

#include <algorithm>

namespace httpretry {
namespace policy {
namespace {

constexpr std::size_t kMaxLabel = 63;  // bytes; the limit of DNS

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
}

// Replaces the dots of other scripts (RFC 3490 section 3.1) with ".". Returns nullopt if the text
// is not UTF-8.
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

// Converts a label to ASCII by UTS 46, non-transitional, as browsers do. A label that would be too
// long becomes one that is refused for its length.
std::string punycode(const std::string& label) {
  const std::string too_long(kMaxLabel + 1, 'x');
  if (label.size() > 4 * kMaxLabel) return too_long;  // a character has four bytes at most
  std::uint8_t* converted = nullptr;
  const auto code = idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(label.c_str()), &converted,
                                   IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  const std::unique_ptr<std::uint8_t, void (*)(void*)> owner(converted, idn2_free);
  if (code == IDN2_TOO_BIG_LABEL || code == IDN2_TOO_BIG_DOMAIN) return too_long;
  // A name that cannot be converted stays as it is, and libcurl refuses it.
  return code == IDN2_OK ? reinterpret_cast<const char*>(converted) : label;
}

// Returns the labels of a name. There is at least one.
std::vector<std::string> labels_of(std::string_view name) {
  std::vector<std::string> labels;
  for (;;) {
    const auto dot = name.find('.');
    labels.emplace_back(name.substr(0, dot));
    if (dot == name.npos) return labels;
    name.remove_prefix(dot + 1);
  }
}

// Returns a name in ASCII and lower case, or nullopt if it is not UTF-8. libcurl also converts
// names, but only if the program's locale is UTF-8, and the meaning of a policy file must not
// depend on the locale.
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

// Returns why a text is not the name of a host, or "" if it is one. Labels may be "*". The address
// in brackets is not checked.
std::string problem_of_name(std::string_view name) {
  if (name.empty()) return "it has no name";
  if (name.front() == '[') {
    if (name.back() != ']') return "its bracket is not closed, or something follows it";
    return name.find('%') == name.npos ? "" : "a zone is not looked at";
  }
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

// Returns what is wrong with a "*" in a name. The labels do not include a leading "*.".
std::string problem_of_stars(const std::vector<std::string>& labels) {
  const auto wrong = std::any_of(labels.begin(), labels.end(), [](const std::string& label) {
    return label != "*" && label.find('*') != label.npos;
  });
  if (!wrong && labels.front() != "*" && labels.back() != "*") return {};
  return "a \"*\" is a whole label between fixed ones, or the leading \"*.\"";
}

// Returns whether libcurl, and therefore a request, leaves the name as it is. Addresses in any
// spelling are not plain.
bool is_plain(std::string_view name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  return name.find_first_not_of(kPlain) == name.npos && name.back() > '9';
}

// Returns whether libcurl would take the name for an IPv4 address, because of its last label.
bool is_ipv4(std::string_view name) {
  return name.find_first_not_of("0123456789", name.rfind('.') + 1) == name.npos;
}

bool encodes_byte(std::string_view text) {
  return text.size() >= 3 && text[0] == '%' && hex_value(text[1]) && hex_value(text[2]);
}

// Removes one byte of data, plain or encoded, from the front of a text. Returns it.
char take_byte(std::string_view& text) {
  const auto size = encodes_byte(text) ? 3U : 1U;
  const auto byte =
      size == 1 ? text[0] : static_cast<char>(*hex_value(text[1]) * 16 + *hex_value(text[2]));
  text.remove_prefix(size);
  return byte;
}

std::string data_of(std::string_view segment) {
  std::string data;
  while (!segment.empty()) data.push_back(take_byte(segment));
  return data;
}

enum class DotSegment : std::uint8_t { None, Same, Parent };

// Returns Same for ".", Parent for "..", in any spelling, and None for other segments.
DotSegment dot_segment(std::string_view segment) {
  if (segment.size() > std::string_view("%2E%2E").size()) return DotSegment::None;
  const auto data = data_of(segment);
  return data == "." ? DotSegment::Same : data == ".." ? DotSegment::Parent : DotSegment::None;
}

// Returns why a segment is not a literal one, or "" if it is.
std::string problem_of_literal(std::string_view segment) {
  if (segment.find_first_of("*{}") != std::string_view::npos) {
    return in_quotes(segment) +
           " is not a segment: it is \"*\", \"{name}\", or text, in which these"
           " signs are written \"%2A\", \"%7B\" and \"%7D\"";
  }
  for (auto at = segment.find('%'); at != std::string_view::npos; at = segment.find('%', at + 1)) {
    if (encodes_byte(segment.substr(at))) continue;
    return in_quotes(segment.substr(at, 3)) +
           " encodes nothing: two hexadecimal digits follow a \"%\"";
  }
  return {};
}

bool is_name(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}' &&
         segment.substr(1, segment.size() - 2).find_first_of("*{}%") == std::string_view::npos;
}

Step step_of(std::string_view segment) {
  if (segment == "**") return Step::Rest;
  return segment == "*" || is_name(segment) ? Step::One : Step::Literal;
}

// Returns why a text is not a path pattern, or "" if it is one.
std::string problem_of_path(std::string_view path) {
  if (path.empty() || path.front() != '/') return "it must start with \"/\"";
  if (path.find_first_of("?#") != std::string_view::npos) {
    return "query and fragment are not looked at";
  }
  const auto control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; };
  if (std::any_of(path.begin(), path.end(), control)) return "it holds a control byte";
  auto inner_rests = 0;  // the number of "**" before the end
  auto previous = Step::Literal;
  for (std::size_t begin = 1; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto segment = path.substr(begin, end - begin);
    const auto step = step_of(segment);
    if (step == Step::Rest && end != path.size() && ++inner_rests > 1) {
      return "one \"**\" is allowed before the end";
    }
    if (step == Step::Rest && previous == step) return "one \"**\" follows the other";
    const bool is_dots = dot_segment(segment) != DotSegment::None;
    if (inner_rests > 0 && is_dots) return in_quotes(segment) + " follows a \"**\"";
    if (step == Step::Literal) {
      if (auto problem = problem_of_literal(segment); !problem.empty()) return problem;
    }
    previous = step;
    begin = end + 1;
  }
  return {};
}

}  // namespace

// Parses a pattern of hosts: "*", an exact host, or a name in which labels are "*". Brings names
// and addresses into the form in which libcurl has those of requests. Sets `problem` if it fails.
HostPattern parse_host(std::string_view text) {
  HostPattern host;
  const auto ascii = ascii_host(text);
  if (!ascii) host.problem = "it is not UTF-8";
  if (!ascii || *ascii == "*") return host;
  auto& name = host.name;
  name = without_trailing_dots(*ascii);
  host.leading_star = name.starts_with("*.");
  if (host.leading_star) name.erase(0, 2);
  host.problem = problem_of_name(name);
  if (!host.problem.empty()) return host;
  const bool has_stars = name.find('*') != name.npos;
  host.kind =
      has_stars || host.leading_star ? HostPattern::Kind::Pattern : HostPattern::Kind::Exact;
  if (has_stars) host.problem = problem_of_stars(labels_of(name));
  if (!host.problem.empty()) return host;
  auto example = name;  // a host that the pattern matches, for libcurl to check
  std::replace(example.begin(), example.end(), '*', 'x');
  const bool is_ipv6 = name.front() == '[';
  if (!is_plain(example)) {
    const auto url = Url::parse("http://" + example + "/");
    if (!url) host.problem = is_ipv6 ? "it is not an IPv6 address" : "no host can have that name";
    if (url && !has_stars) name = url->host();
  }
  if (host.kind == HostPattern::Kind::Exact || !host.problem.empty()) return host;
  if (is_ipv6 || is_ipv4(name)) host.problem = "an address has no suffix";
  host.labels = labels_of(name);
  return host;
}

std::size_t HostPattern::fixed_count() const {
  return labels.size() - static_cast<std::size_t>(std::count(labels.begin(), labels.end(), "*"));
}

std::size_t HostPattern::suffix_count() const {
  const auto end = std::find(labels.rbegin(), labels.rend(), "*");
  return static_cast<std::size_t>(end - labels.rbegin());
}

// Compares the labels from the last one on. The rest of the longer name must fit a leading "*.".
bool can_overlap(const HostPattern& a, const HostPattern& b) {
  const auto can_match_same = [](const std::string& one, const std::string& other) {
    return one == other || one == "*" || other == "*";
  };
  const auto [end_in_a, end_in_b] = std::mismatch(
      a.labels.rbegin(), a.labels.rend(), b.labels.rbegin(), b.labels.rend(), can_match_same);
  const bool all_of_a = end_in_a == a.labels.rend();
  const bool all_of_b = end_in_b == b.labels.rend();
  if (all_of_a && all_of_b) return a.leading_star == b.leading_star;
  return (all_of_a && a.leading_star) || (all_of_b && b.leading_star);
}

bool Label::begins_with(std::string_view data, bool whole) const {
  if (!encoded) return whole ? text == data : text.starts_with(data);
  auto rest = text;
  for (const auto byte : data) {
    if (rest.empty() || take_byte(rest) != byte) return false;
  }
  return !whole || rest.empty();
}

// Returns the segments of a path, without its dot segments: "/a/./b/../c" has "a" and "c". Segments
// stay encoded.
Segments split_path(std::string_view path) {
  Segments segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  const bool encoded = path.find('%') != std::string_view::npos;
  const auto push = [&](std::string_view segment) {
    auto& [first, more, count] = segments;
    if (count < first.size()) {
      first[count] = Label(segment, encoded);
    } else {
      more.resize(count - first.size());  // ".." lowers only `count`
      more.emplace_back(segment, encoded);
    }
    ++count;
  };
  for (;;) {
    const auto end = path.find('/');
    const bool is_last = end == std::string_view::npos;
    const auto segment = path.substr(0, end);
    const auto dots = dot_segment(segment);
    if (dots == DotSegment::None) push(segment);
    if (dots == DotSegment::Parent && segments.count > 0) --segments.count;
    if (dots != DotSegment::None && is_last) push({});  // "/a/." is "/a/"
    if (is_last) return segments;
    path.remove_prefix(end + 1);
  }
}

// Parses a pattern of paths such as "/users/{id}/**". Sets `problem` if it fails.
PathPattern parse_path(std::string_view text) {
  PathPattern pattern;
  pattern.problem = problem_of_path(text);
  if (!pattern.problem.empty()) return pattern;
  const auto segments = split_path(text);
  if (segments.count > kMaxSegments) {
    pattern.problem = "it has " + std::to_string(segments.count) + " segments, at most " +
                      std::to_string(kMaxSegments) + " are allowed";
    return pattern;
  }
  for (std::size_t i = 0; i < segments.count; ++i) {
    const auto segment = segments[i].text;
    const auto step = step_of(segment);
    pattern.steps.push_back(step);
    pattern.literals.push_back(step == Step::Literal ? data_of(segment) : std::string());
  }
  return pattern;
}

}  // namespace policy
}  // namespace httpretry
