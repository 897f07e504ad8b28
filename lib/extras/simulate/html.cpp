// The report as one HTML page, without scripts and external files.
#include "chart.hpp"
#include "page.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry {
namespace simulation {
namespace {

using Sample = SimulationSample;

constexpr std::string_view kPageStyle = R"(html { color-scheme: light dark; }
body { margin: 0 auto; padding: 1.5rem; max-width: 62rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p { margin: .3rem 0; } .faint { color: var(--faint); }
svg { display: block; width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--grid); }
td { white-space: nowrap; } td:first-child { white-space: normal; min-width: 9rem; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
th { font-weight: 600; color: var(--faint); } .yes { color: var(--yes); } .no { color: var(--no); }
.wide { overflow-x: auto; } .wide svg { min-width: 40rem; }
pre { background: var(--box); padding: .7rem .9rem; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere; font-size: .88rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .5rem 0; }
dt { color: var(--faint); } dd { margin: 0; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } h2, h3 { break-after: avoid; }
  svg, tr, section { break-inside: avoid; } .wide { overflow: visible; } .wide svg { min-width: 0; }
  table { font-size: 8pt; } th, td { padding: .2rem .25rem; } td:first-child { min-width: 0; } }
)";

// Escapes a text that may wrap, except within "1 000" or "14 s".
std::string prose(std::string_view text) {
  std::string out;
  for (const char c : escaped(text)) {
    const bool after_digit = !out.empty() && out.back() >= '0' && out.back() <= '9';
    out += c == ' ' && after_digit ? std::string("&nbsp;") : std::string(1, c);
  }
  return out;
}

// Returns whether run `a` is better than run `b`: by the server's state at the end, the calls that
// succeed, the time until the recovery and the sends per call, in this order. Tiny differences do
// not count.
bool is_better(const SimulationRun& a, const SimulationRun& b) {
  constexpr double kNever = 1e9;  // in seconds
  if (is_down(a) != is_down(b)) return is_down(b);
  const double gain = a.success_ratio() - b.success_ratio();
  if (std::abs(gain) > 0.001) return gain > 0;
  if (a.recovered_after != b.recovered_after) {
    return a.recovered_after.value_or(kNever) < b.recovered_after.value_or(kNever);
  }
  return a.sends_per_call() < 0.98 * b.sends_per_call();
}

// Returns "a", "a and b" or "a, b and c".
std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::string brief(const SimulationRun& run) {
  return verdict_text(run) + ", " + percent(run.success_ratio()) + " of calls succeed with " +
         number(run.sends_per_call(), 2) + " sends each";
}

// Returns the row of the table for a run. Without a call that succeeded, there are no percentiles.
std::string table_row(const SimulationRun& run) {
  const auto cell = [](const std::string& text) { return "<td>" + escaped(text) + "</td>"; };
  const auto count = [](std::uint64_t value) { return grouped(static_cast<double>(value)); };
  const bool has_times = run.succeeded > 0;
  return "<tr>" + cell(run.policy) + cell(count(run.calls)) + cell(percent(run.success_ratio())) +
         cell(number(run.sends_per_call(), 2)) + cell(grouped(run.peak_sends_per_second)) +
         cell(has_times ? milliseconds(run.p50_ms) : "-") +
         cell(has_times ? milliseconds(run.p99_ms) : "-") + cell(count(run.wasted)) +
         cell(count(run.budget_refusals)) + cell(count(run.not_sent)) + "<td class=\"" +
         (is_down(run) ? "no" : "yes") + "\">" + escaped(verdict_text(run)) + "</td></tr>\n";
}

std::string table(const SimulationReport& report) {
  std::string text =
      "<div class=\"wide\"><table>\n<tr><th>policy</th><th>calls</th><th>succeed</th>"
      "<th>sends a call</th><th>peak a second</th><th>p50</th><th>p99</th>"
      "<th>arrived too late</th><th>budget spent</th><th>held back</th>"
      "<th>verdict</th></tr>\n";
  for (const auto& run : report.runs) text += table_row(run);
  return text + "</table></div>\n";
}

// The tops of the three small charts of each policy (failed, in flight, budget). All policies have
// the same scales.
struct Tops {
  explicit Tops(const SimulationReport& report, const Pieces& pieces) {
    for (const auto& run : report.runs) {
      failed = std::max(failed, most(pieces.rate(run, &Sample::failed)));
      in_flight = std::max(in_flight, most(pieces.in_flight(run)));
      if (run.has_budget) budget = std::max(budget, most(pieces.budget(run)));
    }
  }
  double failed = 1;
  double in_flight = 1;
  double budget = 1;
};

// Returns the section on one policy: the verdict, the bounds on its load, and three charts side by
// side: the calls that failed, the calls in flight, and the budget. `pieces` divides the time into
// the steps of the curves. `tops` has the highest value of each chart over all policies, so that
// the charts of all policies have the same scale.
std::string details(const SimulationRun& run, const SimulationReport& report, const Pieces& pieces,
                    const Tops& tops) {
  // The left edges of the charts.
  constexpr double kFailed = 50;
  constexpr double kInFlight = 370;
  constexpr double kBudget = 690;
  constexpr double kTitleBaseline = 14;
  // Draws one chart, with its title above it, and bands for the times of the triggers. `cls` is the
  // CSS class of its curve.
  const auto chart_at = [&](double left, std::string_view title, const Curve& curve, double top,
                            std::string_view cls) {
    const Chart chart(left, /*y=*/22, /*width=*/250, /*height=*/80, pieces, top);
    return text_at(left, kTitleBaseline, title, "small") + chart.bands(report.model.triggers) +
           chart.axes() + chart.line(curve, cls);
  };
  auto charts =
      chart_at(kFailed, "calls that failed, a second", pieces.rate(run, &Sample::failed),
               tops.failed, "failed") +
      chart_at(kInFlight, "calls in flight", pieces.in_flight(run), tops.in_flight, "plain");
  charts += run.has_budget ? chart_at(kBudget, "budget: tokens left, mean of the clients",
                                      pieces.budget(run), tops.budget, "good")
                           : text_at(kBudget, kTitleBaseline, "no budget", "small");
  return "<section>\n<h3>" + escaped(run.policy) + "</h3>\n<p>" + prose(verdict_sentence(run)) +
         ".</p>\n<p class=\"faint\">" + prose(describe(run.bounds)) +
         ".</p>\n<div class=\"wide\"><svg viewBox=\"0 0 960 124\" role=\"img\" "
         "aria-label=\"failed, in flight and budget of " +
         escaped(run.policy) + "\">\n" + charts + "</svg></div>\n</section>\n";
}

std::string entry(std::string_view name, const std::string& value) {
  return "<dt>" + std::string(name) + "</dt><dd>" + prose(value) + "</dd>\n";
}

std::string what_was_simulated(const SimulationReport& report) {
  return "<dl>\n" + entry("server", describe(report.model)) + entry("load", describe(report.load)) +
         entry("clients", grouped(report.clients) + ", each with its own budget and guards") +
         entry("time", to_text(report.duration) + "; calls in flight then run to their end") +
         entry("seed", std::to_string(report.seed)) + "</dl>\n";
}

}  // namespace

// Returns which policies do best, and which does worst; the verdict if there is only one policy.
std::string headline(const SimulationReport& report) {
  const auto& runs = report.runs;
  if (runs.empty()) return "no policy";
  if (runs.size() == 1) return runs.front().policy + ": " + brief(runs.front());
  // In this order, a better run comes later.
  const auto [worst, best] = std::minmax_element(
      runs.begin(), runs.end(), [](const auto& a, const auto& b) { return is_better(b, a); });
  std::vector<std::string> winners;  // the best run, and those that are as good
  for (const auto& run : runs) {
    if (!is_better(*best, run)) winners.push_back(run.policy);
  }
  if (winners.size() == runs.size()) return "all do the same: " + brief(*best) + ".";
  return join_names(winners) + (winners.size() == 1 ? " does" : " do") + " best: " + brief(*best) +
         ". " + worst->policy + " does worst: " + brief(*worst) + ".";
}

}  // namespace simulation

// Returns the report as one HTML page, which needs no other files: the headline, a chart of each
// policy for comparison, a table of numbers, a section on each policy, and `command`, the command
// line that repeats the simulation. prose() escapes like escaped(), and keeps a number and its
// unit, such as "14 s", on one line.
std::string html_of(const SimulationReport& report, std::string_view command) {
  using namespace simulation;
  const Pieces pieces(report);      // divides the time into the steps of the curves
  const Tops tops(report, pieces);  // the highest values, for the same scale in all sections
  auto text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>" +
      escaped(headline(report)) + "</title>\n<style>\n" + std::string(style()) +
      std::string(kPageStyle) + "</style>\n</head>\n<body>\n<h1>" + prose(headline(report)) +
      "</h1>\n<p class=\"faint\">" + prose(describe(report.model)) + "; " +
      prose(describe(report.load)) + "; " + prose(grouped(report.clients)) +
      (report.clients == 1 ? " client" : " clients") +
      ". All charts have the same scale.</p>\n<div class=\"wide\">" +
      comparison(report, Drawing::Element) + "</div>\n";
  text += "<h2>Numbers</h2>\n" + table(report);
  text += "<h2>Each policy</h2>\n";
  for (const auto& run : report.runs) text += details(run, report, pieces, tops);
  text += "<h2>What was simulated</h2>\n" + what_was_simulated(report) +
          "<p>The clients are those of the library, with their retries, budgets and guards, in "
          "virtual time. Only the server and the network are models. The same command gives the "
          "same page:</p>\n<pre>" +
          escaped(command) + "</pre>\n</body>\n</html>\n";
  return text;
}

}  // namespace httpretry
