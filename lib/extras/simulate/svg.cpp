// The comparison of policies as a drawing, with a row for each policy. All rows have the same axes.
#include "chart.hpp"
#include "page.hpp"
#include "text.hpp"

#include <algorithm>

namespace httpretry {
namespace simulation {
namespace {

constexpr double kWidth = 960;            // of the drawing
constexpr double kTextLeft = 20;          // left edge of the texts
constexpr double kLeft = 290;             // left edge of the charts
constexpr std::size_t kLongestName = 27;  // in bytes, fits to the left of a chart
constexpr double kRight = 945;            // right edge of the charts
constexpr double kRow = 124;              // height of a row
constexpr double kChart = 92;             // height of a chart

using Sample = SimulationSample;

std::string whole(double value) { return number(value, /*digits=*/0); }

// Returns the verdict with a cross or a check mark in front.
std::string mark(const SimulationRun& run) {
  return std::string(is_down(run) ? "\u2717 " : "\u2713 ") + verdict_text(run);
}

// Returns the legend above the charts: a sample of each line and area, with its meaning on the
// right. `y` is the baseline of the text. The color for triggers is explained only if there are
// triggers.
std::string legend(double y, const std::vector<Trigger>& triggers) {
  constexpr double kSampleWidth = 26;
  constexpr double kToText = 32;  // from the left edge of a sample to its text
  const auto line = [y](double x, std::string_view cls, std::string_view meaning) {
    const auto middle = whole(y - 4);  // of the height of the text
    return "<line x1=\"" + whole(x) + "\" y1=\"" + middle + "\" x2=\"" + whole(x + kSampleWidth) +
           "\" y2=\"" + middle + "\" class=\"" + std::string(cls) + "\"/>\n" +
           text_at(x + kToText, y, meaning, "small");
  };
  const auto area = [y](double x, std::string_view cls, std::string_view meaning) {
    return "<rect x=\"" + whole(x) + "\" y=\"" + whole(y - 11) + "\" width=\"" +
           whole(kSampleWidth) + "\" height=\"12\" class=\"" + std::string(cls) + "\"/>\n" +
           text_at(x + kToText, y, meaning, "small");
  };
  // The distances between the samples leave room for the texts.
  auto text = text_at(kTextLeft, y, "per second:", "small") +
              line(kLeft, "offered", "calls begun") + line(kLeft + 125, "sent", "requests sent") +
              area(kLeft + 260, "good-area", "calls that succeeded");
  if (!triggers.empty()) text += area(kLeft + 435, "band", "something is wrong");
  return text;
}

// Returns the row of one run at the height `y`: the numbers on the left, and the chart. `top` is
// the highest value of all charts.
std::string row_of(const SimulationRun& run, const SimulationReport& report, const Pieces& pieces,
                   double top, double y, Chart::Times times) {
  auto text =
      text_at(kTextLeft, y + 18, shortened(run.policy, kLongestName), "name") +
      text_at(kTextLeft, y + 38, mark(run), is_down(run) ? "no" : "yes") +
      text_at(kTextLeft, y + 58, percent(run.success_ratio()) + " of calls succeed", "") +
      text_at(kTextLeft, y + 76, number(run.sends_per_call(), 2) + " sends a call", "") +
      text_at(kTextLeft, y + 92,
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

// Returns the SVG drawing that compares the policies: the legend, and below it a row for each
// policy with a chart. All charts have the same scale.
std::string comparison(const SimulationReport& report, Drawing drawing) {
  constexpr double kLegendBaseline = 18;
  constexpr double kFirstRow = 34;
  constexpr double kBottomMargin = 6;
  const Pieces pieces(report);  // divides the time into the steps of the curves
  double top = 1;  // the highest rate of all charts; at least 1, so that empty charts have a scale
  for (const auto& run : report.runs) {
    top = std::max(top, most(pieces.rate(run, &Sample::sent)));
    top = std::max(top, most(pieces.rate(run, &Sample::offered)));  // the calls that began
  }
  const auto width = whole(kWidth);
  const auto height =
      whole(kFirstRow + kRow * static_cast<double>(report.runs.size()) + kBottomMargin);
  std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + width + " " +
                     height + "\" role=\"img\" aria-label=\"" + escaped(headline(report)) + "\"";
  // A file needs its own size, styles and background. An element of a page takes those of the page.
  text += drawing == Drawing::File
              ? " width=\"" + width + "\" height=\"" + height + "\">\n<style>\n" +
                    std::string(style()) + "</style>\n<rect width=\"" + width + "\" height=\"" +
                    height + "\" class=\"paper\"/>\n"
              : ">\n";
  text += legend(kLegendBaseline, report.model.triggers);
  double y = kFirstRow;
  for (const auto& run : report.runs) {
    // Only the last row shows the times, because all rows have the same axis of time.
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
