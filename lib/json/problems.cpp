#include "lib/json/problems.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace httpretry {

std::string to_string(const Problem& problem) {
  auto line = problem.file;
  if (problem.line > 0) {
    line += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
  }
  line += problem.warning ? ": warning: " : ": ";
  if (!problem.pointer.empty()) line += one_line(problem.pointer) + ": ";
  return line + problem.message;
}

void Problems::error(const JsonNode& at, std::string message) {
  at.bad = true;
  add(at.position, &at, std::move(message), false);
}

void Problems::error_at_key(const JsonNode& at, std::string message) {
  at.bad = true;
  add(at.key_position, &at, std::move(message), false);
}

void Problems::warn(const JsonNode& at, std::string message) {
  add(at.position, &at, std::move(message), true);
}

void Problems::error(Position position, const JsonNode* inside, std::string message) {
  add(position, inside, std::move(message), false);
}

void Problems::error(Position position, std::string pointer, std::string message) {
  add(position, std::move(pointer), std::move(message), false);
}

void Problems::warn(Position position, std::string pointer, std::string message) {
  add(position, std::move(pointer), std::move(message), true);
}

std::string Problems::suggestion(std::string_view word,
                                 std::span<const std::string_view> names) const {
  return full() ? std::string() : did_you_mean(word, names);
}

// A pointer is worked out only for what is kept: very many may be asked for.
void Problems::add(Position position, const JsonNode* at, std::string message, bool warning) {
  const auto named = at != nullptr && !full();
  add(position, named ? pointer_to(*at) : std::string(), std::move(message), warning);
}

void Problems::add(Position position, std::string pointer, std::string message, bool warning) {
  failed_ = failed_ || !warning;
  if (full()) {
    more_ = true;
    return;
  }
  auto& problem = problems_.emplace_back();
  problem.file = file_;
  problem.line = position.line;
  problem.column = position.column;
  problem.pointer = std::move(pointer);
  problem.message = std::move(message);
  problem.warning = warning;
}

std::vector<Problem> Problems::take() {
  const auto key = [](const Problem& p) {
    return std::tie(p.line, p.column, p.pointer, p.message);
  };
  std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  problems_.erase(std::unique(problems_.begin(), problems_.end(),
                              [&](const Problem& a, const Problem& b) { return key(a) == key(b); }),
                  problems_.end());
  if (more_) {
    auto last = problems_.back();
    last.message = "there are more problems than these";
    last.pointer.clear();
    last.warning = !failed_;
    problems_.push_back(std::move(last));
  }
  return std::exchange(problems_, {});
}

std::string error_lines(const std::vector<Problem>& problems) {
  std::string lines;
  for (const auto& problem : problems) {
    if (problem.warning) continue;
    if (!lines.empty()) lines += '\n';
    lines += to_string(problem);
  }
  return lines;
}

}  // namespace httpretry
