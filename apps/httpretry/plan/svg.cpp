#include "plan/svg.hpp"

#include "cli/text.hpp"

#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace httpretry::cli {
namespace {

// All lengths are pixels of the drawing.
constexpr int kWidth = 760;
constexpr int kLeft = 112;   // where the bars begin
constexpr int kRight = 500;  // where they end
constexpr int kRow = 22;     // the height of a row
constexpr int kTop = 104;    // the middle of the first row
constexpr std::size_t kMostRows = 40;

constexpr const char* kInk = "#1f2933";
constexpr const char* kFaint = "#d5dbe1";
constexpr const char* kGrey = "#64707d";
constexpr const char* kBar = "#8fb8de";
constexpr const char* kMark = "#1b4f8a";
constexpr const char* kLimit = "#b3261e";

double as_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  std::string plain = text.data();
  return plain.ends_with(".0") ? plain.substr(0, plain.size() - 2) : plain;
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      default: safe += c;
    }
  }
  return safe;
}

std::string text_at(double x, double y, const std::string& text, const char* more = "") {
  return "  <text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + more + ">" + escaped(text) +
         "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& color,
                 const char* more = "") {
  return "  <line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) +
         "\" y2=\"" + number(y2) + "\" stroke=\"" + color + "\"" + more + "/>\n";
}

// The next larger of 1, 2, 2.5, 5, 10 times a power of ten.
double round_in_tens(double wanted) {
  const auto power = std::pow(10.0, std::floor(std::log10(wanted)));
  for (const double nice : {1.0, 2.0, 2.5, 5.0}) {
    if (nice * power >= wanted) return nice * power;
  }
  return 10 * power;
}

// The next larger of the usual divisions of minutes, hours and days.
double round_in_minutes(double seconds) {
  for (const double nice : {30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 43200}) {
    if (nice >= seconds) return nice;
  }
  constexpr double kDay = 86400;
  return kDay * round_in_tens(seconds / kDay);
}

// Maps times to pixels. Its end is a whole number of ticks.
class Axis {
 public:
  explicit Axis(Duration longest) {
    const auto wanted = std::max(as_seconds(longest), 1e-6) / 5 * 0.999;
    step_ = wanted > 20 ? round_in_minutes(wanted) : round_in_tens(wanted);
    ticks_ = static_cast<int>(std::ceil(as_seconds(longest) / step_ - 1e-9));
    ticks_ = std::max(ticks_, 1);
  }
  [[nodiscard]] double x(Duration time) const { return x(as_seconds(time)); }
  [[nodiscard]] double x(double in_seconds) const {
    return kLeft + (kRight - kLeft) * std::min(in_seconds / (step_ * ticks_), 1.0);
  }
  // Vertical lines from `top` to `bottom`, with their times below.
  [[nodiscard]] std::string grid(int top, int bottom) const {
    std::string text;
    for (int i = 0; i <= ticks_; ++i) {
      const auto time = std::chrono::duration<double>(step_ * i);
      text += line(x(time.count()), top, x(time.count()), bottom, kFaint);
      text += text_at(x(time.count()), bottom + 14,
                      to_text(std::chrono::round<std::chrono::microseconds>(time)),
                      " class=\"small\" text-anchor=\"middle\"");
    }
    return text;
  }

 private:
  double step_ = 1;
  int ticks_ = 1;
};

std::string limits_of(const RetryPolicy& policy) {
  auto text = "max_attempts " +
              (policy.max_attempts ? std::to_string(*policy.max_attempts) : std::string("none"));
  text += ", max_elapsed_time " + to_text(policy.max_elapsed_time);
  if (policy.attempt_timeout != kForever) {
    text += ", attempt_timeout " + to_text(policy.attempt_timeout);
  }
  if (policy.response_timeout != kForever) {
    text += ", response_timeout " + to_text(policy.response_timeout);
  }
  return text + ", server_delay.max " + to_text(policy.server_delay.max);
}

std::string row(const Planned& planned, const Axis& axis, int y) {
  const auto& [attempt, wait, total] = planned;
  auto text = text_at(16, y + 4, std::to_string(attempt->number)) +
              text_at(44, y + 4, attempt_text(*attempt));
  if (!attempt->retried) return text;
  const auto left = wait.least < wait.most ? axis.x(wait.least) : axis.x(Duration{});
  text += "  <rect x=\"" + number(left) + "\" y=\"" + number(y - 6) + "\" width=\"" +
          number(axis.x(wait.most) - left) + "\" height=\"12\" fill=\"" + kBar + "\"/>\n";
  text += line(axis.x(wait.mean), y - 8, axis.x(wait.mean), y + 8, kMark, " stroke-width=\"2.5\"");
  const auto range = wait.least == wait.most ? precise(wait.mean)
                                             : precise(wait.least) + " to " + precise(wait.most);
  return text + text_at(kRight + 130, y + 4, range, " text-anchor=\"end\"") +
         text_at(kWidth - 16, y + 4, precise(total), " text-anchor=\"end\"");
}

std::string column_titles(bool ranges) {
  const auto y = kTop - 24;
  return text_at(16, y, "attempt", " class=\"small\"") +
         text_at(kLeft, y, ranges ? "wait: its range, and the mean" : "wait", " class=\"small\"") +
         text_at(kRight + 130, y, "wait", " class=\"small\" text-anchor=\"end\"") +
         text_at(kWidth - 16, y, ranges ? "total (mean)" : "total",
                 " class=\"small\" text-anchor=\"end\"");
}

// The starts of a call's attempts, as dots on a line.
std::string run_line(const Run& run, const Axis& axis, int y) {
  const auto& history = history_of(*run.outcome);
  auto text = text_at(16, y + 4, run.name) +
              line(kLeft, y, axis.x(history.elapsed), y, kGrey, " stroke-width=\"1.5\"");
  std::string last;
  for (const auto& attempt : history.attempts) {
    auto x = number(axis.x(attempt.start));
    if (x == last) continue;  // the previous dot would hide it
    text +=
        "  <circle cx=\"" + x + "\" cy=\"" + number(y) + "\" r=\"3.5\" fill=\"" + kMark + "\"/>\n";
    last = std::move(x);
  }
  return text + text_at(kRight + 16, y + 4,
                        precise(history.elapsed) + ", " + std::string(stop_reason_text(history)));
}

std::string limit_line(Duration limit, const Axis& axis, int top, int bottom) {
  return line(axis.x(limit), top, axis.x(limit), bottom, kLimit, " stroke-dasharray=\"4 3\"") +
         text_at(axis.x(limit), top - 4, "max_elapsed_time " + to_text(limit),
                 " class=\"small\" text-anchor=\"end\"");
}

std::string timeline(const RetryPolicy& policy, const std::vector<Run>& runs, int top) {
  Duration longest{};
  for (const auto& run : runs) longest = std::max(longest, history_of(*run.outcome).elapsed);
  const auto limit = policy.max_elapsed_time;
  // With a distant limit the dots would be too close together.
  const bool near = limit != kForever && limit / 2 <= longest;
  const Axis axis(near ? std::max(limit, longest) : longest);
  const auto bottom = top + kRow * static_cast<int>(runs.size());
  auto text = text_at(16, top - 8, "attempts in time", " class=\"small\"") + axis.grid(top, bottom);
  int y = top + kRow / 2;
  for (const auto& run : runs) {
    text += run_line(run, axis, y);
    y += kRow;
  }
  return near ? text + limit_line(limit, axis, top, bottom) : text;
}

// What fits on a line; the whole text is in <title>.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 88;
  return text.size() <= kMost ? text : text.substr(0, kMost - 3) + "...";
}

std::string opening(const std::string& title, int height) {
  const auto size = std::to_string(kWidth) + "\" height=\"" + std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
         std::to_string(kWidth) + " " + std::to_string(height) + "\" role=\"img\">\n  <title>" +
         escaped(title) +
         "</title>\n"
         "  <style>text { font: 13px sans-serif; fill: " +
         kInk +
         "; } .title { font-size: 15px; font-weight: bold; } .small { font-size: 11px; fill: " +
         kGrey + "; }</style>\n  <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
}

}  // namespace

std::string svg(const std::string& title, const RetryPolicy& policy, const Schedule& schedule,
                const std::vector<Run>& runs) {
  const auto shown = std::min(schedule.size(), kMostRows);
  Duration longest{};
  for (std::size_t i = 0; i < shown; ++i) longest = std::max(longest, schedule[i].wait.most);
  const Axis axis(longest);
  const int bottom = kTop - kRow / 2 + kRow * static_cast<int>(shown);
  const int runs_top = bottom + 62;
  const int height = runs_top + kRow * static_cast<int>(runs.size()) + 52;

  auto text = opening(title, height) + text_at(16, 28, shortened(title), " class=\"title\"") +
              text_at(16, 50, limits_of(policy), " class=\"small\"") +
              column_titles(runs.size() > 1) + axis.grid(kTop - kRow / 2, bottom);
  int y = kTop;
  for (std::size_t i = 0; i < shown; ++i, y += kRow) text += row(schedule[i], axis, y);
  if (shown < schedule.size()) {
    text += text_at(16, bottom + 30, "and " + std::to_string(schedule.size() - shown) + " more",
                    " class=\"small\"");
  }
  text += timeline(policy, runs, runs_top);
  const auto& usual = *runs[runs.size() / 2].outcome;
  return text + text_at(16, height - 14, "Ends " + end_text(usual) + ".", " class=\"small\"") +
         "</svg>\n";
}

}  // namespace httpretry::cli
