#include "cli/did_you_mean.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace httpretry::cli {
namespace {

// The number of insertions, deletions, substitutions and swaps of neighbors between two words.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  auto last = row;
  auto before = row;
  for (std::size_t i = 0; i < a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = last[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, last[j + 1] + 1, row[j] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view wrong, std::span<const std::string_view> words) {
  std::string_view best;
  // A third of the letters may differ, or two of six; more is a different word.
  const std::size_t few = wrong.size() > 5 ? 2 : 1;
  auto least = std::max(wrong.size() / 3, few) + 1;
  for (const auto word : words) {
    const auto far = distance(wrong, word);
    if (far >= least) continue;
    least = far;
    best = word;
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> words) {
  const auto near = nearest(wrong, words);
  return near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?";
}

}  // namespace httpretry::cli
