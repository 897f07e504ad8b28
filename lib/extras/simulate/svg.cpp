// The comparison of policies as a drawing, with a row for each policy. All rows have the same axes.
#include "chart.hpp"
#include "page.hpp"
#include "text.hpp"

#include <algorithm>

namespace httpretry {
namespace simulation {
namespace {

constexpr double kLeft = 290;             // left edge of the charts
constexpr std::size_t kLongestName = 27;  // in bytes, fits to the left of a chart
constexpr double kRight = 945;            // right edge of the charts
constexpr double kRow = 124;              // height of a row
constexpr double kChart = 92;             // height of a chart

using Sample = SimulationSample;

// Returns the verdict with a cross or a check mark in front.
std::string mark(const SimulationRun& run) {
  return std::string(is_down(run) ? "\u2717 " : "\u2713 ") + verdict_text(run);
}

// Returns the line above the charts that explains their colors. There are bands only if there are
// triggers.
std::string legend(double y, const std::vector<Trigger>& triggers) {
  const auto key = [y](double x, std::string_view cls) {
    return "<line x1=\"" + number(x, 0) + "\" y1=\"" + number(y - 4, 0) + "\" x2=\"" +
           number(x + 26, 0) + "\" y2=\"" + number(y - 4, 0) + "\" class=\"" + std::string(cls) +
           "\"/>\n";
  };
  const auto box = [y](double x, std::string_view cls) {
    return "<rect x=\"" + number(x, 0) + "\" y=\"" + number(y - 11, 0) +
           "\" width=\"26\" height=\"12\" class=\"" + std::string(cls) + "\"/>\n";
  };
  auto text = text_at(20, y, "per second:", "small") + key(kLeft, "offered") +
              text_at(kLeft + 32, y, "calls begun", "small") + key(kLeft + 125, "sent") +
              text_at(kLeft + 157, y, "requests sent", "small") + box(kLeft + 260, "good-area") +
              text_at(kLeft + 292, y, "calls that succeeded", "small");
  if (!triggers.empty()) {
    text += box(kLeft + 435, "band") + text_at(kLeft + 467, y, "something is wrong", "small");
  }
  return text;
}

// Returns the row of one run at the height `y`: the numbers on the left, and the chart. `top` is
// the highest value of all charts.
std::string row_of(const SimulationRun& run, const SimulationReport& report, const Pieces& pieces,
                   double top, double y, Chart::Times times) {
  auto text =
      text_at(20, y + 18, shortened(run.policy, kLongestName), "name") +
      text_at(20, y + 38, mark(run), is_down(run) ? "no" : "yes") +
      text_at(20, y + 58, percent(run.success_ratio()) + " of calls succeed", "") +
      text_at(20, y + 76, number(run.sends_per_call(), 2) + " sends a call", "") +
      text_at(20, y + 92,
              run.succeeded == 0 ? "" : "half of them within " + milliseconds(run.p50_ms), "small");
  const Chart chart(kLeft, y, kRight - kLeft, kChart, pieces, top);
  text += chart.bands(report.model.triggers) + chart.axes(times) +
          chart.area(pieces.rate(run, &Sample::succeeded), "good-area") +
          chart.line(pieces.rate(run, &Sample::sent), "sent") +
          chart.line(pieces.rate(run, &Sample::offered), "offered");
  return text;
}

}  // namespace

bool is_down(const SimulationRun& run) {
  using Verdict = SimulationRun::Verdict;
  return run.verdict == Verdict::Metastable || run.verdict == Verdict::Overloaded ||
         run.succeeded == 0;
}

// Cuts a text that is longer than `most_bytes` between two UTF-8 characters.
std::string shortened(const std::string& text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  auto end = most_bytes - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "\u2026";
}

// Returns the drawing: the legend, and a row for each policy. Only the last row shows the times,
// because all rows have the same axes.
std::string comparison(const SimulationReport& report, Drawing drawing) {
  const Pieces pieces(report);
  double top = 1;
  for (const auto& run : report.runs) {
    top = std::max(top, most(pieces.rate(run, &Sample::sent)));
    top = std::max(top, most(pieces.rate(run, &Sample::offered)));
  }
  // The legend, the rows and a margin.
  const double height = 36 + kRow * static_cast<double>(report.runs.size()) + 4;
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 " +
                     number(height, 0) + "\" role=\"img\" aria-label=\"" +
                     escaped(headline(report)) + "\"";
  text += drawing == Drawing::File
              ? " width=\"960\" height=\"" + number(height, 0) + "\">\n<style>\n" +
                    std::string(style()) + "</style>\n<rect width=\"960\" height=\"" +
                    number(height, 0) + "\" class=\"paper\"/>\n"
              : ">\n";
  text += legend(18, report.model.triggers);
  double y = 34;
  for (const auto& run : report.runs) {
    const bool is_last = &run == &report.runs.back();
    text += row_of(run, report, pieces, top, y, is_last ? Chart::Times::Show : Chart::Times::Hide);
    y += kRow;
  }
  return text + "</svg>\n";
}

}  // namespace simulation

std::string svg_of(const SimulationReport& report) {
  return simulation::comparison(report, simulation::Drawing::File);
}

}  // namespace httpretry
