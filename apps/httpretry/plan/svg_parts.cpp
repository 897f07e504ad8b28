#include "plan/svg_parts.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace httpretry::cli {
namespace {

// The colors also differ for readers who cannot distinguish red and green.
constexpr const char* kStyle = R"(  <style>
    text { font: 13px sans-serif; fill: #1f2933; }
    .title { font-size: 15px; font-weight: bold; }
    .small { font-size: 11px; fill: #5a6672; }
    .page { fill: #ffffff; }
    .grid { stroke: #d5dbe1; }
    .bar { fill: #8fb8de; }
    .mean { stroke: #1b4f8a; stroke-width: 2.5; }
    .call { stroke: #64707d; stroke-width: 1.5; }
    .limit { stroke: #b3261e; stroke-dasharray: 4 3; }
    .mark { stroke: #ffffff; stroke-width: 1; }
    .time { fill-opacity: 0.45; }
    .success { fill: #1a7f37; }
    .pending { fill: #ffffff; stroke: #0969da; stroke-width: 2; }
    .throttle { fill: #d97706; }
    .transient { fill: #7c3aed; }
    .transport { fill: #c2185b; }
    .permanent { fill: #1f2933; stroke: #1f2933; stroke-width: 2.5; }
    .time.pending { fill: #0969da; }
    rect.time { stroke: none; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .small { fill: #9aa7b4; }
      .page { fill: #0d1117; }
      .grid { stroke: #30363d; }
      .bar { fill: #2f5d8c; }
      .mean { stroke: #a5d0ff; }
      .call { stroke: #8b949e; }
      .limit { stroke: #ff7b72; }
      .mark { stroke: #0d1117; }
      .success { fill: #3fb950; }
      .pending { fill: #0d1117; stroke: #58a6ff; }
      .throttle { fill: #e3a008; }
      .transient { fill: #b392f0; }
      .transport { fill: #ff6fa5; }
      .permanent { fill: #e6edf3; stroke: #e6edf3; }
      .time.pending { fill: #58a6ff; }
    }
  </style>
)";

// Returns the width of a character, in average letters.
double width_of(char c) {
  constexpr std::string_view kWide = "MW@%mw";
  const auto byte = static_cast<unsigned char>(c);
  const bool begins_utf8 = byte >= 0xC0;
  if (byte >= 0x80 && !begins_utf8) return 0;  // belongs to the previous character
  if (begins_utf8 || kWide.find(c) != std::string_view::npos) return 1.55;
  return c >= 'A' && c <= 'Z' ? 1.15 : 1;
}

// Returns how many bytes of the text fit into one line of the given width, at least 1. If the text
// is longer, the line ends after ", ", after a space, or after a separator in a URL, in this order
// of preference. A break in the first half of the line is not used, because it would leave the line
// too short; without another one, the line ends within a word.
std::size_t line_length(std::string_view text, double width) {
  std::array<std::size_t, 3> breaks{};  // the last possible end of each kind; 0: none
  double used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    used += width_of(text[i]);
    if (used > width) {
      const auto* best = std::ranges::find_if(breaks, [i](auto end) { return end > i / 2; });
      return std::max<std::size_t>(best == breaks.end() ? i : *best, 1);
    }
    const bool after_comma = i > 0 && text[i - 1] == ',';
    if (text[i] == ' ') breaks.at(after_comma ? 0 : 1) = i + 1;
    if (std::string_view("/&?").find(text[i]) != std::string_view::npos) breaks[2] = i + 1;
  }
  return text.size();
}

// Rounds up to 1, 2, 2.5, 5 or 10 times a power of ten.
double round_in_tens(double wanted) {
  const auto power = std::pow(10.0, std::floor(std::log10(wanted)));
  for (const double nice : {1.0, 2.0, 2.5, 5.0}) {
    if (nice * power >= wanted) return nice * power;
  }
  return 10 * power;
}

// Rounds up to one of the usual divisions of minutes, hours and days.
double round_in_minutes(double seconds) {
  for (const double nice : {30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 43200}) {
    if (nice >= seconds) return nice;
  }
  constexpr double kDay = 86400;
  return kDay * round_in_tens(seconds / kDay);
}

double as_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

std::string polygon(const std::vector<std::pair<double, double>>& points,
                    const std::string& names) {
  std::string text = "  <polygon points=\"";
  for (const auto& [x, y] : points) text += number(x) + "," + number(y) + " ";
  text.back() = '"';
  return text + " class=\"" + names + "\"/>\n";
}

std::string circle(double x, double y, const std::string& names) {
  return "  <circle cx=\"" + number(x) + "\" cy=\"" + number(y) + "\" r=\"4\" class=\"" + names +
         "\"/>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  std::string plain = text.data();
  return plain.ends_with(".0") ? plain.substr(0, plain.size() - 2) : plain;
}

std::string text_at(double x, double y, std::string_view text, std::string_view names,
                    Anchor anchor) {
  std::string more;
  if (!names.empty()) more = " class=\"" + std::string(names) + "\"";
  if (anchor == Anchor::Middle) more += " text-anchor=\"middle\"";
  if (anchor == Anchor::End) more += " text-anchor=\"end\"";
  return "  <text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + more + ">" + escaped(text) +
         "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, std::string_view names) {
  return "  <line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" class=\"" + std::string(names) + "\"/>\n";
}

std::string rectangle(double x, double y, double width, double height, std::string_view names) {
  return "  <rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
         "\" height=\"" + number(height) + "\" class=\"" + std::string(names) + "\"/>\n";
}

// Returns the lines of a text between the margins. `letter_width` is that of an average letter.
std::vector<std::string> wrapped(std::string_view text, double letter_width) {
  const auto width = (kWidth - 2 * kMargin) / letter_width;  // in letters
  std::vector<std::string> lines;
  const auto safe = printable(text);
  for (std::string_view rest = safe; !rest.empty();) {
    auto length = line_length(rest, width);
    // A line must not end within a UTF-8 character.
    while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xC0U) == 0x80U) {
      ++length;
    }
    lines.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return lines;
}

std::string mark(Class cls, double x, double y) {
  const auto names = "mark " + std::string(to_string(cls));
  switch (cls) {
    case Class::Success:
    case Class::Pending: return circle(x, y, names);
    case Class::Throttle: return polygon({{x - 5, y}, {x, y - 5}, {x + 5, y}, {x, y + 5}}, names);
    case Class::Transient: return rectangle(x - 4, y - 4, 8, 8, names);
    case Class::Transport: return polygon({{x - 5, y + 4}, {x, y - 5}, {x + 5, y + 4}}, names);
    case Class::Permanent:
      return line(x - 4, y - 4, x + 4, y + 4, names) + line(x - 4, y + 4, x + 4, y - 4, names);
  }
  return {};
}

std::string opening(std::string_view title, int height) {
  const auto width = std::to_string(kWidth);
  const auto high = std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + high +
         "\" viewBox=\"0 0 " + width + " " + high + "\" role=\"img\">\n  <title>" + escaped(title) +
         "</title>\n" + kStyle + "  <rect width=\"100%\" height=\"100%\" class=\"page\"/>\n";
}

Axis::Axis(Duration longest) {
  if (longest <= Duration::zero()) return;
  constexpr double kTicks = 4;
  // A step is at least a nanosecond. With a smaller one, two ticks would show the same time. The
  // 0.999, and the 1e-9 below, keep a rounding error from making the step or the axis longer.
  const auto wanted = std::max(as_seconds(longest) / kTicks * 0.999, 1e-9);
  step_ = wanted > 20 ? round_in_minutes(wanted) : round_in_tens(wanted);
  ticks_ = std::max(static_cast<int>(std::ceil(as_seconds(longest) / step_ - 1e-9)), 1);
}

double Axis::x(Duration time) const { return x(as_seconds(time)); }

double Axis::x(double in_seconds) const {
  if (ticks_ == 0) return kLeft;
  return kLeft + (kRight - kLeft) * std::min(in_seconds / (step_ * ticks_), 1.0);
}

std::string Axis::grid(int top, int bottom) const {
  std::string text;
  for (int i = 0; i <= ticks_; ++i) {
    const auto at = step_ * i;
    constexpr double kMost = 9e9;  // seconds; a Duration cannot hold more
    const auto time = std::chrono::duration<double>(std::min(at, kMost));
    text += line(x(at), top, x(at), bottom, "grid");
    text += text_at(x(at), bottom + 14,
                    duration_text(std::chrono::round<std::chrono::nanoseconds>(time)), "small",
                    Anchor::Middle);
  }
  return text;
}

}  // namespace httpretry::cli
