// The report as a table.
#include "text.hpp"

#include <algorithm>

namespace httpretry {
namespace {

using namespace simulation;

using Row = std::vector<std::string>;

Row row_of(const SimulationRun& run) {
  return {run.policy,
          grouped(static_cast<double>(run.calls)),
          percent(run.success_ratio()),
          number(run.sends_per_call(), 2),
          grouped(run.peak_sends_per_second),
          run.succeeded > 0 ? milliseconds(run.p50_ms) : "-",
          run.succeeded > 0 ? milliseconds(run.p99_ms) : "-",
          number(run.finished_at_s, 1) + " s",
          verdict_text(run)};
}

// Returns the width in characters, not in bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
  }));
}

// Returns the rows, at least one, as lines with aligned columns. All rows have the same number of
// cells. The texts in the first and last column are aligned to the left, and the numbers between
// them to the right:
//   policy    calls  verdict
//   standard  1 000  stable
std::string aligned(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool to_the_left = i == 0 || i + 1 == row.size();
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (to_the_left ? row[i] + padding : padding + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);  // the padding of the last column
    text += line + '\n';
  }
  return text;
}

// Returns what the table does not show about a policy: its name, and below it indented lines with
// the verdict as a sentence, the bounds on its load, and a line for each problem that occurred, for
// example "12 calls ended because their budget was spent".
std::string notes_on(const SimulationRun& run) {
  const auto line = [](const std::string& text) { return "  " + text + '\n'; };
  auto text = run.policy + '\n' + line(verdict_sentence(run)) + line(describe(run.bounds));
  const auto add = [&](std::uint64_t count, std::string_view one, std::string_view many) {
    if (count > 0) text += line(counted(grouped(static_cast<double>(count)), one, many));
  };
  add(run.budget_refusals, "call ended because its budget was spent",
      "calls ended because their budget was spent");
  add(run.not_sent, "call was held back and never sent", "calls were held back and never sent");
  add(run.wasted, "response arrived after its client had given up",
      "responses arrived after their client had given up");
  add(run.unfinished,
      "call never ends: the server does not respond, and the policy has no time limit",
      "calls never end: the server does not respond, and the policy has no time limit");
  return text;
}

}  // namespace

// Returns the whole report as text: what was simulated, the table, and notes on each policy.
std::string table_of(const SimulationReport& report) {
  auto text = describe(report.model) + '\n' + describe(report.load) + "; " +
              counted(grouped(report.clients), "client", "clients") + ", " +
              to_text(report.duration) + ", seed " + std::to_string(report.seed) + "\n\n";
  std::vector<Row> rows{
      {"policy", "calls", "succeed", "sends/call", "peak/s", "p50", "p99", "ends", "verdict"}};
  for (const auto& run : report.runs) rows.push_back(row_of(run));
  text += aligned(rows);
  for (const auto& run : report.runs) text += '\n' + notes_on(run);
  return text;
}

}  // namespace httpretry
