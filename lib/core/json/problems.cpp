#include "lib/core/json/detail/json.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace httpretry {
namespace {

constexpr std::size_t kLongest = 48;  // a longer word is not a misspelled name
constexpr std::size_t kMostNames = 200;

using Row = std::array<std::size_t, kLongest + 1>;

// Returns how many insertions, deletions, substitutions and swaps of neighbors turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  Row before{};
  Row last{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto other = a[i - 1] == b[j - 1] ? 0U : 1U;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + other});
      const auto swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  std::string_view best;
  if (word.size() > kLongest) return best;
  // A third of the letters may be wrong, but at least one.
  auto least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const auto name : names.subspan(0, std::min(names.size(), kMostNames))) {
    const auto apart = std::max(name.size(), word.size()) - std::min(name.size(), word.size());
    if (name.empty() || name.size() > kLongest || apart >= least) continue;
    if (const auto steps = distance(word, name); steps < least && steps < name.size()) {
      least = steps;
      best = name;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const auto name = nearest(word, names);
  return name.empty() ? std::string() : "; did you mean \"" + std::string(name) + "\"?";
}

std::string to_string(const Problem& problem) {
  auto line = problem.file;
  if (problem.line > 0) {
    line += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
  }
  line += problem.warning ? ": warning: " : ": ";
  if (!problem.pointer.empty()) line += one_line(problem.pointer) + ": ";
  return line + problem.message;
}

Problem Problems::place_of(Position position, std::string pointer) const {
  Problem problem;
  problem.file = file_;
  problem.line = position.line;
  problem.column = position.column;
  problem.pointer = std::move(pointer);
  return problem;
}

void Problems::add(Position position, std::string pointer, std::string message, bool warning) {
  failed_ = failed_ || !warning;
  more_ = more_ || full();
  if (full()) return;
  auto& problem = problems_.emplace_back(place_of(position, std::move(pointer)));
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
