#include "plan/schedule.hpp"

#include "cli/words.hpp"

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

// Nothing but the limit of attempts calls off what is only played.
std::string_view why_ended(const History& history) {
  return history.stop_reason == Reason::Canceled ? "not over" : to_string(history.stop_reason);
}

std::string ending(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  auto text = "after attempt " + std::to_string(history.attempts.size()) + ", at " +
              fine(history.elapsed) + ": " + std::string(why_ended(history));
  if (!history.detail.empty()) text += " (" + history.detail + ")";
  // Not the time to come back at: that is of a calendar that nobody lives by.
  if (history.retry_at && history.attempts.back().server_delay) {
    text += ", the server asks for " + fine(*history.attempts.back().server_delay);
  }
  return text;
}

}  // namespace httpretry::cli
