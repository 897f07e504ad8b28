#include "plan/table.hpp"

#include "cli/text.hpp"
#include "plan/schedule.hpp"

#include <algorithm>
#include <vector>

namespace httpretry::cli {
namespace {

using Row = std::vector<std::string>;

// Aligns columns to the right, the last one to the left.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += i + 1 == widths.size() ? row[i] : gap + row[i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string or_dash(const std::optional<Duration>& time) {
  return time ? duration_text(*time) : "-";
}

}  // namespace

std::string table_of_ranges(const RetryPolicy& policy, const Outcome& shortest,
                            const Outcome& middle, const Outcome& longest) {
  std::vector<Row> rows{{"attempt", "outcome", "least", "mean", "most", "total (mean)", ""}};
  for (const auto& [attempt, wait, total] : schedule_of_ranges(policy, shortest, middle, longest)) {
    Row row{std::to_string(attempt->number), attempt_text(*attempt)};
    if (attempt->retried) {
      row.insert(row.end(), {duration_text(wait.least), duration_text(wait.mean),
                             duration_text(wait.most), duration_text(total), ""});
    }
    rows.push_back(std::move(row));
  }
  auto text = aligned(rows);
  for (const auto& end : end_lines(shortest, middle, longest)) text += end + '\n';
  return text;
}

std::string table_of_decisions(const Outcome& outcome) {
  std::vector<Row> rows{
      {"attempt", "at", "outcome", "class", "server asks", "backoff", "wait", "budget", "rule"}};
  for (const auto& attempt : history_of(outcome).attempts) {
    rows.push_back({std::to_string(attempt.number), duration_text(attempt.start),
                    attempt_text(attempt), std::string(to_string(attempt.cls)),
                    or_dash(attempt.server_delay), or_dash(attempt.backoff), or_dash(attempt.wait),
                    attempt.budget_left ? std::to_string(*attempt.budget_left) : "-",
                    printable(attempt.rule)});
  }
  return aligned(rows) + "ends " + end_text(outcome) + '\n';
}

}  // namespace httpretry::cli
