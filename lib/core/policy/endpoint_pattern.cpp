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
  // A name that cannot be converted stays as it is, and Url::parse refuses it.
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

// Returns a name in ASCII and lower case, or nullopt if it is not UTF-8.
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

// Returns whether a text was probably meant as a regular expression. None of these signs is in the
// hosts and paths of usual requests.
bool is_regex(std::string_view text) {
  constexpr std::string_view kSigns[] = {".+", "\\", "]+", "]*", "(?"};
  return text.starts_with('^') || text.starts_with(".*") ||
         std::ranges::any_of(
             kSigns, [text](std::string_view sign) { return text.find(sign) != text.npos; });
}

// Returns why a text cannot be the host of a pattern, or "" if nothing is wrong. The host is a name
// such as "api.example.com", in which a label may be "*", or an address. parse_host checks an
// address in brackets further, with libcurl.
std::string problem_of_name(std::string_view name) {
  if (name.empty()) return "it has no name";
  if (is_regex(name)) {  // such as "[a-z]+", but not "[::1]"
    return "regular expressions are not supported; write \"*.example.com\" for all names below "
           "example.com";
  }
  if (name.front() == '[') {  // an IPv6 address: "[::1]", or with a zone "[fe80::1%eth0]"
    if (name.back() != ']') return "its bracket is not closed, or text follows it";
    return name.find('%') == name.npos ? "" : "a zone is not supported";
  }
  if (const auto scheme_end = name.find("://"); scheme_end != name.npos) {
    // Suggests the host of the URL, without user, port and path.
    auto host = name.substr(scheme_end + 3);
    host = host.substr(0, host.find_first_of("/?#"));
    host.remove_prefix(host.rfind('@') + 1);  // 0 without a "@"
    if (!host.ends_with(']')) host = host.substr(0, host.rfind(':'));
    return "only a name belongs here; write " + in_quotes(host) +
           ", and \"scheme\": " + in_quotes(name.substr(0, scheme_end));
  }
  // The user has written more of a URL, such as "example.com/path", or has encoded the name.
  if (name.find_first_of("/?#@%") != name.npos) return "only a name belongs here";
  const auto colons = std::count(name.begin(), name.end(), ':');
  if (colons == 1) return "the port has its own key";  // "example.com:8080"
  if (colons != 0) return "an IPv6 address must be in brackets, as in \"[::1]\"";
  if (name.size() > kMaxHost) return "a name has at most 253 bytes";
  for (const auto& label : labels_of(name)) {
    if (label.empty()) return "it has an empty label";  // "a..b"
    if (label.size() > kMaxLabel) return "a label has at most 63 bytes";
  }
  return {};
}

// Returns what is wrong with the "*" in the host of a pattern, or "" if nothing is. A "*" must be a
// whole label, and may be neither the first nor the last one. `labels` does not include a leading
// "*.", which is allowed.
std::string problem_of_stars(const std::vector<std::string>& labels) {
  const auto mixes = std::any_of(labels.begin(), labels.end(), [](const std::string& label) {
    return label != "*" && label.find('*') != label.npos;
  });
  if (!mixes && labels.front() != "*" && labels.back() != "*") return {};
  return "a \"*\" must be a whole label between fixed ones, or the leading \"*.\"";
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
           " is not a segment: a segment is \"*\", \"{name}\", or text, in which these characters "
           "are written \"%2A\", \"%7B\" and \"%7D\"";
  }
  for (auto at = segment.find('%'); at != std::string_view::npos; at = segment.find('%', at + 3)) {
    if (encodes_byte(segment.substr(at))) continue;
    return in_quotes(segment.substr(at, 3)) +
           " encodes nothing: two hexadecimal digits must follow a \"%\"";
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

// Returns why a text is not a path pattern, or "" if it is one. A segment of a pattern is a text,
// "*" or "{name}" for any one segment, or "**" for any number of segments (Step::Rest). At most one
// "**" may stand before the end, so that matching stays fast.
std::string problem_of_path(std::string_view path) {
  if (is_regex(path) || path.find(".*") != path.npos) {
    return "regular expressions are not supported; write \"*\" for any one segment, and \"**\" for "
           "any number of them";
  }
  if (path.empty() || path.front() != '/') return "it must start with \"/\"";
  if (path.find_first_of("?#") != std::string_view::npos) {
    return "it must not contain a query or a fragment";
  }
  if (std::any_of(path.begin(), path.end(), is_control)) return "it contains a control byte";
  auto inner_rests = 0;           // the number of "**" before the end
  auto previous = Step::Literal;  // of the segment before; any step but Rest for the first one
  for (std::size_t begin = 1; begin <= path.size();) {  // 1 is behind the "/" at the front
    const auto end = std::min(path.find('/', begin), path.size());
    const auto segment = path.substr(begin, end - begin);
    const auto step = step_of(segment);
    const bool is_inner_rest = step == Step::Rest && end != path.size();
    if (is_inner_rest && ++inner_rests > 1) return "only one \"**\" is allowed before the end";
    if (step == Step::Rest && previous == Step::Rest) return "one \"**\" directly follows another";
    // A ".." would remove the last segment that the "**" matches, which a pattern does not know.
    // A "." is refused as well.
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

// Replaces a name by the form that libcurl gives to the host of a request: "[0:0::1]" becomes
// "[::1]". A name with a "*" stays as it is. Returns why it cannot be a host, or "" if it can.
std::string normalize_host(std::string& name) {
  auto example = name;  // a host that the pattern matches
  std::replace(example.begin(), example.end(), '*', 'x');
  if (is_plain(example)) return {};
  const auto url = Url::parse("http://" + example + "/");
  if (!url) return name[0] == '[' ? "it is not an IPv6 address" : "no host can have that name";
  if (example == name) name = url->host();
  return {};
}

}  // namespace

// Parses a pattern of hosts: "*" for any host, an exact host, a name in which labels are "*", or
// one with "*." in front. Names get the form that libcurl gives to those of requests, so that both
// can be compared. If the text is not valid, sets `problem` to the reason, and the pattern must not
// be used.
HostPattern parse_host(std::string_view text) {
  HostPattern host;
  const auto ascii = ascii_host(text);  // in lower case, with punycode for other characters
  if (!ascii) host.problem = "it is not UTF-8";
  if (!ascii || *ascii == "*") return host;  // Kind::Any is the default
  auto& name = host.name;
  name = without_trailing_dots(*ascii);
  // "*." in front stands for one or more labels, unlike a "*" between labels. Only the rest is the
  // name.
  host.leading_star = name.starts_with("*.");
  if (host.leading_star) name.erase(0, 2);
  host.problem = problem_of_name(name);
  if (!host.problem.empty()) return host;
  const bool has_stars = name.find('*') != name.npos;
  const bool is_exact = !has_stars && !host.leading_star;
  host.kind = is_exact ? HostPattern::Kind::Exact : HostPattern::Kind::Pattern;
  if (has_stars) host.problem = problem_of_stars(labels_of(name));
  if (host.problem.empty()) host.problem = normalize_host(name);  // also changes `name`
  if (is_exact || !host.problem.empty()) return host;             // an exact host needs no labels
  // An address has no labels for which a "*" could stand: "*.127.0.0.1" is refused.
  const bool is_address = name.front() == '[' || is_ipv4(name);
  if (is_address) host.problem = "an address has no suffix";
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

// Returns whether a host can match both patterns. Compares the labels from the last one on. If one
// pattern has more labels, the other needs a leading "*.", which matches the rest.
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

// Splits a path at each "/", and resolves "." and ".." (RFC 3986 section 5.2.4): "/a/./b/../c" has
// the segments "a" and "c". Segments are views into `path`, still percent-encoded.
Segments split_path(std::string_view path) {
  Segments segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  // One test for all segments: with a "%" in the path, each segment is decoded when it is compared.
  const bool path_has_percent = path.find('%') != std::string_view::npos;
  // Adds a segment: to the array `inline_segments`, or to the vector `overflow` if that is full.
  // Only the first `count` entries of both together are valid: a ".." lowers `count`, and leaves
  // the segment that it removes in place.
  const auto push = [&](std::string_view segment) {
    auto& [inline_segments, overflow, count] = segments;
    if (count < inline_segments.size()) {
      inline_segments[count] = Label(segment, path_has_percent);
    } else {
      overflow.resize(count - inline_segments.size());  // drops segments that a ".." has removed
      overflow.emplace_back(segment, path_has_percent);
    }
    ++count;
  };
  for (;;) {
    const auto end = path.find('/');
    const bool is_last = end == std::string_view::npos;
    const auto segment = path.substr(0, end);
    const auto dots = dot_segment(segment);
    if (dots == DotSegment::None) push(segment);
    // ".." removes the segment before it, and has no effect at the root.
    if (dots == DotSegment::Parent && segments.count > 0) --segments.count;
    // "/a/." means "/a/", whose last segment is empty.
    if (dots != DotSegment::None && is_last) push({});
    if (is_last) return segments;
    path.remove_prefix(end + 1);
  }
}

// Parses a pattern of paths such as "/users/{id}/**" into a step for each segment. If the text is
// not valid, sets `problem` to the reason, and the pattern must not be used.
PathPattern parse_path(std::string_view text) {
  PathPattern pattern;
  pattern.problem = problem_of_path(text);
  if (!pattern.problem.empty()) return pattern;
  const auto segments = split_path(text);
  if (segments.count > kMaxSegments) {  // the rank of a pattern has bits for no more
    pattern.problem = "it has " + std::to_string(segments.count) + " segments, at most " +
                      std::to_string(kMaxSegments) + " are allowed";
    return pattern;
  }
  for (std::size_t i = 0; i < segments.count; ++i) {
    const auto segment = segments[i].text;
    const auto step = step_of(segment);
    pattern.steps.push_back(step);
    // Each step has an element here: the decoded text of a literal, or "" for a step that is none.
    pattern.literals.push_back(step == Step::Literal ? data_of(segment) : std::string());
  }
  return pattern;
}

}  // namespace policy
}  // namespace httpretry
