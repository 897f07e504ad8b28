#include "plan/schedule.hpp"

#include "cli/text.hpp"

#include <httpretry/retry/decide.hpp>

namespace httpretry::cli {
namespace {

const Backoff& backoff_for(const RetryPolicy& policy, Class cls) {
  return cls == Class::Throttle && policy.throttle_backoff ? *policy.throttle_backoff
                                                           : policy.backoff;
}

Duration plus(Duration a, Duration b) { return kForever - a <= b ? kForever : a + b; }

}  // namespace

Schedule schedule_of_ranges(const RetryPolicy& policy, const Outcome& shortest,
                            const Outcome& middle, const Outcome& longest) {
  const Outcome* most_attempts = &middle;
  for (const auto* other : {&shortest, &longest}) {
    const auto count = history_of(*most_attempts).attempts.size();
    if (history_of(*other).attempts.size() > count) most_attempts = other;
  }
  Schedule schedule;
  DelayRange range;
  Duration total{};
  for (const auto& attempt : history_of(*most_attempts).attempts) {
    if (attempt.retried) {
      range = delay_range(backoff_for(policy, attempt.cls), attempt.number, range);
      total = plus(total, range.mean);
    }
    schedule.push_back({&attempt, attempt.retried ? range : DelayRange(), total});
  }
  return schedule;
}

Schedule schedule_of(const Outcome& outcome) {
  Schedule schedule;
  for (const auto& attempt : history_of(outcome).attempts) {
    const auto wait = attempt.wait.value_or(Duration{});
    const auto end = plus(plus(attempt.start, attempt.duration), wait);
    schedule.push_back({&attempt, DelayRange{wait, wait, wait}, end});
  }
  return schedule;
}

// Only the limit of simulated attempts cancels these calls.
std::string_view stop_reason_text(const History& history) {
  return history.stop_reason == Reason::Canceled ? "not finished" : to_string(history.stop_reason);
}

std::string end_text(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  auto text = "after attempt " + std::to_string(history.attempts.size()) + ", at " +
              precise(history.elapsed) + ": " + std::string(stop_reason_text(history));
  if (!history.detail.empty()) text += " (" + history.detail + ")";
  // Not `retry_at` itself: that is a virtual time.
  if (history.retry_at && history.attempts.back().server_delay) {
    text += ", the server asks for " + precise(*history.attempts.back().server_delay);
  }
  return text;
}

}  // namespace httpretry::cli
