#include "plan/svg.hpp"

#include "cli/text.hpp"
#include "plan/svg_parts.hpp"

#include <algorithm>
#include <set>

namespace httpretry::cli {
namespace {

constexpr int kRow = 22;               // height of a row
constexpr int kRunRow = 36;            // height of a call, which has two lines of text
constexpr int kTitlesHeight = 13;      // of the titles of the columns, above the first row
constexpr int kAxisLabelsHeight = 30;  // of the labels of the time axis, below the last row
constexpr int kTitleLine = 20;
constexpr int kSmallLine = 15;
constexpr int kBaseline = 4;          // from the middle of a row down to the baseline of its text
constexpr int kMarkX = 50;            // middle of the mark of an attempt
constexpr int kOutcomeX = 62;         // left edge of the outcomes
constexpr int kTookEnd = kLeft - 12;  // right edge of the durations of the attempts
constexpr int kWaitEnd = 640;         // right edge of the numbers of the waits
constexpr int kTotalEnd = kWidth - kMargin;
constexpr int kBarHeight = 12;   // of the bar of a wait
constexpr int kMeanReach = 8;    // the mean is a line that is higher than the bar
constexpr double kFullBar = 10;  // heights of the bar of an attempt
constexpr double kThinBar = 2;
constexpr std::size_t kMostRows = 40;

std::string limits_of(const RetryPolicy& policy) {
  const auto attempts =
      policy.max_attempts ? std::to_string(*policy.max_attempts) : std::string("unlimited");
  return "max_attempts " + attempts + ", max_elapsed_time " +
         duration_text(policy.max_elapsed_time) + ", attempt_timeout " +
         duration_text(policy.attempt_timeout) + ", response_timeout " +
         duration_text(policy.response_timeout) + ", server_delay.max " +
         duration_text(policy.server_delay.max);
}

std::string small_lines(const std::vector<std::string>& lines, int& y) {
  std::string text;
  for (const auto& each : lines) {
    text += text_at(kMargin, y, each, "small");
    y += kSmallLine;
  }
  return text;
}

// Returns the SVG elements of one row, whose middle is at `y`: the number, mark, outcome and
// duration of an attempt, a bar for the wait after it, and numbers for that wait and for the total
// time until its end. The bar reaches from the shortest to the longest wait, with a line at the
// mean. If the wait is exact, the bar begins at 0.
std::string attempt_row(const Planned& planned, const Axis& axis, int y) {
  const auto& [attempt, wait, total] = planned;
  const int baseline = y + kBaseline;  // of all texts
  auto text = text_at(kMargin, baseline, std::to_string(attempt->number)) +
              mark(attempt->cls, kMarkX, y) + text_at(kOutcomeX, baseline, attempt_text(*attempt)) +
              text_at(kTookEnd, baseline, duration_text(attempt->duration), "", Anchor::End);
  if (attempt->retried) {  // otherwise no wait follows
    const bool is_exact = wait.least == wait.most;
    const auto left = axis.x(is_exact ? Duration{} : wait.least);
    const auto mean = axis.x(wait.mean);
    const auto range = is_exact ? duration_text(wait.mean)
                                : duration_text(wait.least) + " to " + duration_text(wait.most);
    text += rectangle(left, y - kBarHeight / 2, axis.x(wait.most) - left, kBarHeight, "bar") +
            line(mean, y - kMeanReach, mean, y + kMeanReach, "mean") +
            text_at(kWaitEnd, baseline, range, "", Anchor::End);
  }
  return text + text_at(kTotalEnd, baseline, duration_text(total), "", Anchor::End);
}

std::string column_titles(bool ranges, int y) {
  return text_at(kMargin, y, "attempt", "small") +
         text_at(kTookEnd, y, "took", "small", Anchor::End) +
         text_at(kLeft, y, ranges ? "wait: its range, and the mean" : "wait", "small") +
         text_at(kWaitEnd, y, "wait", "small", Anchor::End) +
         text_at(kTotalEnd, y, ranges ? "total (mean)" : "total", "small", Anchor::End);
}

// Returns the SVG elements of the upper part of the drawing: titles, and a row for each attempt
// with the wait after it, for at most kMostRows attempts. `ranges` says whether the waits are
// ranges, for the titles. `y` is the top of this part and becomes the top of the next one.
std::string attempt_rows(const Schedule& schedule, bool ranges, int& y) {
  const auto shown = std::min(schedule.size(), kMostRows);
  Duration longest{};
  for (std::size_t i = 0; i < shown; ++i) longest = std::max(longest, schedule[i].wait.most);
  const Axis axis(longest);  // of the waits, from 0 to the longest
  const int rows_top = y + kTitlesHeight;
  const int rows_bottom = rows_top + kRow * static_cast<int>(shown);
  auto text = column_titles(ranges, y) + axis.grid(rows_top, rows_bottom);
  int middle = rows_top + kRow / 2;  // of the first row
  for (std::size_t i = 0; i < shown; ++i, middle += kRow) {
    text += attempt_row(schedule[i], axis, middle);
  }
  y = rows_bottom + kAxisLabelsHeight;
  if (shown == schedule.size()) return text;
  return text + small_lines({"and " + std::to_string(schedule.size() - shown) +
                             " more: " + counted(schedule.size(), "attempt") + " in all"},
                            y);  // moves `y` below the line
}

// Returns the track for the bar of each attempt. Bars that overlap in time get different tracks.
std::vector<int> tracks_of(const std::vector<Attempt>& attempts) {
  std::vector<Duration> ends;  // of the last bar in each track
  std::vector<int> tracks;
  for (const auto& attempt : attempts) {
    auto free_track = std::ranges::find_if(ends, [&](auto end) { return end <= attempt.start; });
    tracks.push_back(static_cast<int>(free_track - ends.begin()));
    if (free_track == ends.end()) free_track = ends.insert(ends.end(), Duration{});
    *free_track = attempt.start + attempt.duration;
  }
  return tracks;
}

// Returns the SVG elements of a call in time, around the height `y`: a line for the whole call, a
// bar for each attempt, a mark at the end of each attempt, and on the right a summary. If hedges
// make attempts overlap in time, all bars are thinner, and on several tracks, one below the other.
std::string run_line(const Run& run, const Axis& axis, int y) {
  const auto& history = history_of(*run.outcome);
  auto text = text_at(kMargin, y + kBaseline, run.name) +
              line(kLeft, y, axis.x(history.elapsed), y, "call");
  std::string previous_mark;
  const auto tracks = tracks_of(history.attempts);
  const auto track_count = tracks.empty() ? 1 : 1 + *std::ranges::max_element(tracks);
  // Several tracks together use 60 % of the height of the row, or more to keep the bars visible.
  const auto height = track_count == 1 ? kFullBar : std::max(kRunRow * 0.6 / track_count, kThinBar);
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const auto& attempt = history.attempts[i];
    // The bar begins after the time in which a limit held the attempt back.
    const auto begin = axis.x(attempt.start + attempt.exchange().timings.queued);
    const auto end = axis.x(attempt.start + attempt.duration);
    const auto cls = std::string(to_string(attempt.cls));
    // The tracks are centered around `y`.
    const auto middle = y + (tracks[i] - (track_count - 1) / 2.0) * height;
    if (end - begin >= 0.1) {  // a narrower bar is not visible
      text += rectangle(begin, middle - height / 2, end - begin, height, "time " + cls);
    }
    auto end_mark = mark(attempt.cls, end, middle);
    if (end_mark == previous_mark) continue;  // it would cover the previous mark exactly
    text += end_mark;
    previous_mark = std::move(end_mark);
  }
  const auto x = kRight + kMargin;  // of the summary, in two lines
  return text +
         text_at(x, y, counted(tracks.size(), "attempt") + ", " + duration_text(history.elapsed)) +
         text_at(x, y + 14, stop_reason_text(history), "small");
}

std::string limit_line(Duration limit, const Axis& axis, int top, int bottom) {
  const auto x = axis.x(limit);
  const auto anchor = x < (kLeft + kRight) / 2.0 ? Anchor::Start : Anchor::End;
  return line(x, top, x, bottom, "limit") +
         text_at(x, top - 4, "max_elapsed_time " + duration_text(limit), "small", anchor);
}

// Draws the meaning of each mark.
std::string legend(const std::vector<Run>& runs, const Schedule& schedule, int y) {
  std::set<Class> classes;
  for (const auto& planned : schedule) classes.insert(planned.attempt->cls);
  for (const auto& run : runs) {
    for (const auto& attempt : history_of(*run.outcome).attempts) classes.insert(attempt.cls);
  }
  std::string text;
  int x = kMargin + 6;
  for (const auto cls : classes) {
    text += mark(cls, x, y - 4) + text_at(x + 11, y, to_string(cls), "small");
    x += 105;
  }
  return text;
}

// Returns the SVG elements of the lower part of the drawing: a line in time for each call, and a
// vertical line at `limit`, which is max_elapsed_time. `y` is the top of this part and becomes the
// top of the next one.
std::string timeline(Duration limit, const std::vector<Run>& runs, int& y) {
  Duration longest{};
  for (const auto& run : runs) longest = std::max(longest, history_of(*run.outcome).elapsed);
  // A distant limit would draw the attempts too close together, so it is left out.
  const bool shows_limit = limit != kForever && limit / 2 <= longest;
  const Axis axis(shows_limit ? std::max(limit, longest) : longest);
  auto text = text_at(kMargin, y, "attempts over time", "small");
  const int top = y + 8;  // of the calls, below the title
  const auto bottom = top + kRunRow * static_cast<int>(runs.size());
  text += axis.grid(top, bottom);
  int middle = top + kRunRow / 2;  // of the first call
  for (const auto& run : runs) {
    text += run_line(run, axis, middle);
    middle += kRunRow;
  }
  y = bottom + 36;  // below the labels of the axis
  return shows_limit ? text + limit_line(limit, axis, top, bottom) : text;
}

std::string head(const std::string& title, const RetryPolicy& policy, int& y) {
  std::string text;
  for (const auto& each : wrapped(title, kTitleLetter)) {
    text += text_at(kMargin, y, each, "title");
    y += kTitleLine;
  }
  text += small_lines(wrapped(limits_of(policy), kSmallLetter), y);
  y += kSmallLine;
  return text;
}

}  // namespace

std::string svg_of_calls(const std::string& title, const RetryPolicy& policy,
                         const std::vector<Outcome>& outcomes) {
  const auto shown = std::min(outcomes.size(), kMostRows);
  std::vector<Run> runs;
  for (std::size_t i = 0; i < shown; ++i) {
    runs.push_back({"call " + std::to_string(i + 1), &outcomes[i]});
  }
  std::vector<std::string> ends;
  if (shown < outcomes.size()) {
    ends.push_back("and " + std::to_string(outcomes.size() - shown) + " more calls");
  }
  return svg(title, policy, /*schedule=*/nullptr, runs, ends);
}

std::string svg(const std::string& title, const RetryPolicy& policy, const Schedule* schedule,
                const std::vector<Run>& runs, const std::vector<std::string>& ends) {
  int y = 28;
  auto text = head(title, policy, y);
  if (schedule != nullptr) {
    const bool ranges = runs.size() > 1;  // the calls with the shortest, mean and longest waits
    text += attempt_rows(*schedule, ranges, y);
    y += kRow;
  }
  text += timeline(policy.max_elapsed_time, runs, y);
  text += legend(runs, schedule != nullptr ? *schedule : Schedule(), y);
  y += kRow;
  for (const auto& end : ends) text += small_lines(wrapped(end, kSmallLetter), y);
  return opening(title, y) + text + "</svg>\n";
}

}  // namespace httpretry::cli
