#include "lib/core/json/detail/json.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace httpretry {
namespace {

constexpr std::size_t kMaxWord = 48;  // a longer word is not a misspelled name
constexpr std::size_t kMaxNames = 200;

using Row = std::array<std::size_t, kMaxWord + 1>;

// Returns the edit distance of two words (optimal string alignment): how many insertions,
// deletions, substitutions and swaps of neighboring letters turn `a` into `b`. Each word has at
// most kMaxWord letters. Works on the usual table: in row i, column j is the distance between the
// first i letters of `a` and the first j letters of `b`. Only the latest three rows are stored.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  Row before_previous{};
  Row previous{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;  // row 0: j insertions
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;  // i deletions
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto cost = a[i - 1] == b[j - 1] ? 0U : 1U;  // 0: the letter is kept, 1: substituted
      // The best of a deletion, an insertion, and a letter that is kept or substituted.
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + cost});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      // Both words end with the same two letters, but in the other order.
      if (is_swap) row[j] = std::min(row[j], before_previous[j - 2] + 1);
    }
    before_previous = previous;
    previous = row;
  }
  return previous[b.size()];  // the last row, which the loop has moved here
}

}  // namespace

// Returns the name that `word` is most likely a misspelling of, or "" if none is near. Up to a
// third of the word's letters may be wrong, or one in a short word, but never more than
// `most_wrong`.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names,
                         std::size_t most_wrong) {
  std::string_view best;
  if (word.size() > kMaxWord) return best;
  const auto wrong_letters = std::min(std::max<std::size_t>(word.size() / 3, 1), most_wrong);
  auto best_distance = wrong_letters + 1;  // a name must be nearer than this
  for (const auto name : names.subspan(0, std::min(names.size(), kMaxNames))) {
    if (name.empty() || name.size() > kMaxWord) continue;
    const auto [shorter, longer] = std::minmax({name.size(), word.size()});
    if (longer - shorter >= best_distance) continue;  // the distance is at least this difference
    const auto distance = edit_distance(word, name);
    const bool has_right_letter = distance < name.size();
    if (distance >= best_distance || !has_right_letter) continue;
    best_distance = distance;
    best = name;
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

// Adds a problem, or only notes that it was dropped if there are too many.
void Problems::add(Position position, std::string pointer, std::string message, Severity severity) {
  failed_ = failed_ || severity == Severity::Error;
  dropped_ = dropped_ || full();
  if (full()) return;
  auto& problem = problems_.emplace_back(place_of(position, std::move(pointer)));
  problem.message = std::move(message);
  problem.warning = severity == Severity::Warning;
}

// Moves the problems out, in the order of their positions in the file and without repetitions. If
// some were dropped because there were more than kMaxProblems, adds a problem that says so. Must
// be called only once.
std::vector<Problem> Problems::take() {
  const auto position = [](const Problem& p) { return std::tie(p.line, p.column); };
  // Stable, so that problems at one position stay in the order in which they were added.
  std::ranges::stable_sort(problems_, {}, position);
  std::vector<Problem> taken;
  for (auto& problem : problems_) {
    const auto is_same = [&](const Problem& earlier) {
      return position(earlier) == position(problem) && earlier.pointer == problem.pointer &&
             earlier.message == problem.message;
    };
    if (std::ranges::none_of(taken, is_same)) taken.push_back(std::move(problem));
  }
  problems_.clear();
  if (dropped_) {
    // The note has the file and the position of the last problem. There is one, because problems
    // are dropped only when there are kMaxProblems.
    auto note = taken.back();
    note.message = "there are more problems than these";
    note.pointer.clear();
    note.warning = !failed_;  // an error if any problem, even a dropped one, is an error
    taken.push_back(std::move(note));
  }
  return taken;
}

std::string detail::json::error_lines(const std::vector<Problem>& problems) {
  std::string lines;
  for (const auto& problem : problems) {
    if (problem.warning) continue;
    if (!lines.empty()) lines += '\n';
    lines += to_string(problem);
  }
  return lines;
}

}  // namespace httpretry
