#include "chart.hpp"

#include "text.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry::simulation {
namespace {

constexpr double kRounding = 1e-9;  // a difference that only rounding causes

// Returns the distance between two lines of a grid: the smallest that is at least `least` and is 1,
// 2, 2.5 or 5 times a power of ten.
double round_step(double least) {
  if (!(least > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= least * (1 - kRounding)) return factor * power;
  }
  return 10 * power;
}

// Returns a usual step of time, in seconds, that is at least `least`.
double time_step(double least) {
  for (const double step : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0,
                            600.0, 1800.0, 3600.0}) {
    if (step >= least) return step;
  }
  return round_step(least / 3600) * 3600;
}

// Returns "0.5", "2500", "15k" or "1.5M", for example.
std::string amount(double value) {
  if (value >= 1e6) return number(value / 1e6, std::fmod(value, 1e6) == 0 ? 0 : 1) + "M";
  if (value >= 10'000) return number(value / 1000, 0) + "k";  // the lines are whole thousands
  return number(value, value == std::floor(value) ? 0 : 1);
}

std::string place(double value) { return number(value, 1); }

std::string line_between(double x1, double y1, double x2, double y2, std::string_view cls) {
  return "<line x1=\"" + place(x1) + "\" y1=\"" + place(y1) + "\" x2=\"" + place(x2) + "\" y2=\"" +
         place(y2) + "\" class=\"" + std::string(cls) + "\"/>\n";
}

constexpr double kSampleSeconds =
    std::chrono::duration<double>(kSamplePeriod) / std::chrono::seconds(1);

}  // namespace

// Returns the style sheet of the drawings and pages. First come the colors, as CSS variables for
// light and for dark mode, and then the classes of SVG elements: texts (.small to .no), the
// background (.paper), the time of a trigger (.band), the lines of a grid (.grid, .axis), and the
// curves and areas of charts.
std::string_view style() {
  return R"(:root { --paper: #ffffff; --ink: #1c2330; --faint: #5c6675; --grid: #dfe3e8; --band: #f3dfc4;
  --sent: #c2570c; --good: #2b6cb0; --good-area: #a9cdec; --offered: #1c2330; --failed: #b3261e;
  --yes: #1b6e3c; --no: #b3261e; --box: #f5f7f9; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181e; --ink: #e8ecf1; --faint: #a3adba;
  --grid: #333b46; --band: #4a3a22; --sent: #f6a04d; --good: #7db8f0; --good-area: #2f6299;
  --offered: #e8ecf1; --failed: #f58b84; --yes: #6fd08c; --no: #f58b84; --box: #1d232b; } }
svg { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
svg text { fill: var(--ink); } svg .small { fill: var(--faint); font-size: 11.5px; }
svg .name { font-weight: 600; font-size: 14px; }
svg .big { font-weight: 600; font-size: 17px; }
svg .yes { fill: var(--yes); font-weight: 600; } svg .no { fill: var(--no); font-weight: 600; }
svg .paper { fill: var(--paper); } svg .band { fill: var(--band); }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--faint); }
svg .sent { stroke: var(--sent); stroke-width: 2; fill: none; }
svg .offered { stroke: var(--offered); stroke-width: 1.4; stroke-dasharray: 4 3; fill: none; }
svg .good { stroke: var(--good); stroke-width: 1.5; fill: none; }
svg .good-area { fill: var(--good-area); }
svg .failed { stroke: var(--failed); stroke-width: 1.6; fill: none; }
svg .plain { stroke: var(--ink); stroke-width: 1.6; fill: none; }
)";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string text_at(double x, double y, std::string_view text, std::string_view cls,
                    Anchor anchor) {
  std::string out = "<text x=\"" + place(x) + "\" y=\"" + place(y) + '"';
  if (!cls.empty()) out += " class=\"" + std::string(cls) + '"';
  if (anchor == Anchor::Middle) out += " text-anchor=\"middle\"";
  if (anchor == Anchor::End) out += " text-anchor=\"end\"";
  return out + ">" + escaped(text) + "</text>\n";
}

// After the last call has begun, the charts go on for at most a quarter of the duration, because a
// few calls may wait for minutes. If all calls begin at once, the charts show everything.
Pieces::Pieces(const SimulationReport& report) {
  constexpr double kMostPieces = 120;
  double last = kSampleSeconds;
  for (const auto& run : report.runs) {
    last = std::max(last, static_cast<double>(run.samples.size()) * kSampleSeconds);
  }
  if (report.load.kind != Load::Kind::Once) {
    last = std::min(last, 1.25 * std::chrono::duration<double>(report.duration).count());
  }
  length = std::max(time_step(last / kMostPieces), kSampleSeconds);
  end = std::ceil(last / length - kRounding) * length;
}

std::size_t Pieces::samples() const {
  return static_cast<std::size_t>(length / kSampleSeconds + 0.5);
}

// Returns how many of the events that `field` counts happened in each piece, per second.
Curve Pieces::rate(const SimulationRun& run, std::uint32_t SimulationSample::*field) const {
  Curve curve(count());
  for (std::size_t i = 0; i < run.samples.size() && i / samples() < curve.size(); ++i) {
    curve[i / samples()] += run.samples[i].*field / length;
  }
  return curve;
}

// Returns `value_of` the last sample of each piece. Pieces after the end of the run repeat the
// latest value.
template <class ValueOf>
Curve Pieces::at_ends(const SimulationRun& run, ValueOf value_of) const {
  Curve curve(count());
  double latest = 0;
  for (std::size_t piece = 0; piece < curve.size(); ++piece) {
    const auto last_sample = (piece + 1) * samples() - 1;
    if (last_sample < run.samples.size()) latest = value_of(run.samples[last_sample]);
    curve[piece] = latest;
  }
  return curve;
}

// Returns the calls in flight at the end of each piece. After the run, only the calls that never
// end are in flight.
Curve Pieces::in_flight(const SimulationRun& run) const {
  auto curve = at_ends(run, [](const SimulationSample& sample) { return sample.in_flight; });
  const auto pieces_of_run = (run.samples.size() + samples() - 1) / samples();  // rounded up
  const auto first_after = std::min(pieces_of_run, curve.size());
  std::fill(curve.begin() + static_cast<std::ptrdiff_t>(first_after), curve.end(),
            static_cast<double>(run.unfinished));
  return curve;
}

Curve Pieces::budget(const SimulationRun& run) const {
  return at_ends(run, [](const SimulationSample& sample) { return sample.budget; });
}

double most(const Curve& curve) {
  return curve.empty() ? 0 : *std::max_element(curve.begin(), curve.end());
}

// The grid has one to three lines above 0, and a little space above `top`.
Chart::Chart(double x, double y, double width, double height, const Pieces& pieces, double top)
    : x_(x),
      y_(y),
      width_(width),
      height_(height),
      pieces_(pieces),
      step_(round_step(top / 3.5)),
      top_(std::max(top, step_) * 1.04) {}

double Chart::right_of(double seconds) const { return x_ + width_ * seconds / pieces_.end; }
double Chart::up_to(double value) const { return y_ + height_ * (1 - std::min(value / top_, 1.0)); }

// Returns the axes of the chart as SVG: a horizontal line with its value for each multiple of
// `step_` up to the highest value, `top_`, and on request the times below the chart. up_to()
// returns the vertical position of a value, and right_of() the horizontal position of a time.
std::string Chart::axes(Times times) const {
  std::string text;
  for (double value = 0; value <= top_; value += step_) {
    text += line_between(x_, up_to(value), x_ + width_, up_to(value), value == 0 ? "axis" : "grid");
    text += text_at(x_ - 6, up_to(value) + 4, amount(value), "small", Anchor::End);
  }
  if (times == Times::Hide) return text;
  constexpr double kTimeWidth = 90;  // at least, for one time and the space around it
  const double step = time_step(pieces_.end / (width_ / kTimeWidth));  // in seconds
  // kRounding keeps the errors of the sum from leaving out the last time.
  for (double time = 0; time <= pieces_.end * (1 + kRounding); time += step) {
    text +=
        text_at(right_of(time), y_ + height_ + 15,
                number(time, step < 1 ? 1 : 0) + (time == 0 ? "" : " s"), "small", Anchor::Middle);
  }
  return text;
}

// Draws a rectangle behind the time of each trigger, as far as the chart shows that time.
std::string Chart::bands(const std::vector<Trigger>& triggers) const {
  std::string text;
  for (const auto& trigger : triggers) {
    const double from = right_of(std::chrono::duration<double>(trigger.at).count());
    const double to = right_of(std::chrono::duration<double>(trigger.end()).count());
    if (from >= x_ + width_) continue;
    text += "<rect x=\"" + place(from) + "\" y=\"" + place(y_) + "\" width=\"" +
            place(std::min(to, x_ + width_) - from) + "\" height=\"" + place(height_) +
            "\" class=\"band\"/>\n";
  }
  return text;
}

// Each value belongs to a whole piece, so the line goes through the middle of the piece.
std::string Chart::points(const Curve& curve) const {
  std::string text;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    text += (i == 0 ? "" : " ") + place(right_of((static_cast<double>(i) + 0.5) * pieces_.length)) +
            "," + place(up_to(curve[i]));
  }
  return text;
}

std::string Chart::line(const Curve& curve, std::string_view cls) const {
  return "<polyline points=\"" + points(curve) + "\" class=\"" + std::string(cls) + "\"/>\n";
}

std::string Chart::area(const Curve& curve, std::string_view cls) const {
  if (curve.empty()) return "";
  const auto base = place(up_to(0));
  const auto first = place(right_of(0.5 * pieces_.length));
  const auto last = place(right_of((static_cast<double>(curve.size()) - 0.5) * pieces_.length));
  return "<polygon points=\"" + first + "," + base + " " + points(curve) + " " + last + "," + base +
         "\" class=\"" + std::string(cls) + "\"/>\n";
}

}  // namespace httpretry::simulation
