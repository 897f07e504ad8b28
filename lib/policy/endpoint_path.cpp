#include "lib/policy/endpoint_pattern.hpp"

#include "lib/http/text.hpp"

#include <algorithm>

namespace httpretry::policy {
namespace {

bool encodes_byte(std::string_view text) {
  return text.size() >= 3 && text[0] == '%' && hex_value(text[1]) && hex_value(text[2]);
}

// Takes one byte of data off a text.
char take_byte(std::string_view& text, bool encoded = true) {
  const auto size = encoded && encodes_byte(text) ? 3U : 1U;
  const auto byte =
      size == 1 ? text[0] : static_cast<char>(*hex_value(text[1]) * 16 + *hex_value(text[2]));
  text.remove_prefix(size);
  return byte;
}

// 1 for ".", 2 for "..", in any spelling; else 0.
int dots(std::string_view segment) {
  if (segment.empty() || segment.size() > 6) return 0;
  if (segment.front() != '.' && segment.front() != '%') return 0;
  int count = 0;
  while (!segment.empty()) {
    if (take_byte(segment) != '.') return 0;
    ++count;
  }
  return count <= 2 ? count : 0;
}

std::string data_of(std::string_view segment) {
  std::string data;
  while (!segment.empty()) data.push_back(take_byte(segment));
  return data;
}

std::string problem_of_literal(std::string_view segment) {
  if (segment.find_first_of("*{}") != std::string_view::npos) {
    return quoted(segment) +
           " is not a segment: it is \"*\", \"{name}\", or text, in which these"
           " signs are written \"%2A\", \"%7B\" and \"%7D\"";
  }
  for (auto at = segment.find('%'); at != std::string_view::npos; at = segment.find('%', at + 1)) {
    if (encodes_byte(segment.substr(at))) continue;
    return quoted(segment.substr(at, 3)) +
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

std::string problem_of_path(std::string_view path) {
  if (path.empty() || path.front() != '/') return "it must start with \"/\"";
  if (path.find_first_of("?#") != std::string_view::npos) {
    return "query and fragment are not looked at";
  }
  const auto control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7F; };
  if (std::any_of(path.begin(), path.end(), control)) return "it holds a control byte";
  for (std::size_t begin = 1; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto segment = path.substr(begin, end - begin);
    const auto step = step_of(segment);
    if (step == Step::Rest && end != path.size()) return "\"**\" is allowed at the end only";
    if (step == Step::Literal) {
      if (auto problem = problem_of_literal(segment); !problem.empty()) return problem;
    }
    begin = end + 1;
  }
  return {};
}

}  // namespace

std::uint64_t Label::hash() const {
  if (known_hash != 0) return known_hash;
  known_hash = 0xCBF29CE484222325;  // FNV-1a, whose constants these are
  for (auto rest = text; !rest.empty();) {
    known_hash =
        (known_hash ^ static_cast<unsigned char>(take_byte(rest, encoded))) * 0x100000001B3;
  }
  return known_hash;
}

bool Label::is(std::string_view data) const {
  if (!encoded) return text == data;
  auto rest = text;
  for (const auto byte : data) {
    if (rest.empty() || take_byte(rest) != byte) return false;
  }
  return rest.empty();
}

Segments split_path(std::string_view path) {
  Segments segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  const bool encoded = path.find('%') != std::string_view::npos;
  const auto push = [&](std::string_view segment) {
    auto& [kept, count] = segments;
    if (count < kept.size()) kept[count] = Label(segment, encoded);
    ++count;
  };
  for (;;) {
    const auto end = path.find('/');
    const bool last = end == std::string_view::npos;
    const auto segment = path.substr(0, end);
    const auto up = dots(segment);
    if (up == 0) push(segment);
    if (up == 2 && segments.count > 0) --segments.count;
    if (up != 0 && last) push({});  // "/a/." is "/a/"
    if (last) return segments;
    path.remove_prefix(end + 1);
  }
}

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
    const auto segment = segments.kept[i].text;
    const auto step = step_of(segment);
    pattern.steps.push_back(step);
    pattern.literals.push_back(step == Step::Literal ? data_of(segment) : std::string());
  }
  return pattern;
}

}  // namespace httpretry::policy
