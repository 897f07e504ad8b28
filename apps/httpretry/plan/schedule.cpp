#include "plan/schedule.hpp"

#include "cli/text.hpp"

#include <httpretry/retry/decide.hpp>

namespace httpretry::cli {
namespace {

const Backoff& backoff_for(const RetryPolicy& policy, Class cls) {
  return cls == Class::Throttle && policy.throttle_backoff ? *policy.throttle_backoff
                                                           : policy.backoff;
}

Duration plus(Duration a, Duration b) { return kForever - a <= b ? kForever : Duration(a + b); }

// Returns the time at which the wait after an attempt ends.
Duration end_of_wait(const Attempt& attempt) {
  return plus(plus(attempt.start, attempt.duration), attempt.wait.value_or(Duration{}));
}

}  // namespace

// Returns what `plan` shows for a policy without a scenario: each attempt with the range of the
// wait after it, and the time at which that wait ends if every wait has its mean length. `calls`
// has three simulations of the call: with the shortest, the mean and the longest waits. The
// attempts are those of the simulation that made the most, because max_elapsed_time may end the
// others earlier.
Schedule schedule_of_ranges(const RetryPolicy& policy, const Extremes& calls) {
  const Outcome* shown_call = &calls.mean;  // the one with the most attempts
  for (const auto* call : {&calls.shortest, &calls.longest}) {
    const auto count = history_of(*shown_call).attempts.size();
    if (history_of(*call).attempts.size() > count) shown_call = call;
  }
  const auto& mean_attempts = history_of(calls.mean).attempts;
  Schedule schedule;
  DelayRange previous;  // the wait before, on which the next one may depend
  Duration total{};     // since the start of the call
  for (const auto& attempt : history_of(*shown_call).attempts) {
    DelayRange wait;  // zero if no retry follows
    if (attempt.retried) {
      wait = delay_range(backoff_for(policy, attempt.cls), attempt.number, previous);
      previous = wait;
    }
    // While the call with the mean waits has attempts, it gives the exact total. The sum of the
    // mean waits is not exact with decorrelated jitter: each wait depends on the one before it.
    const auto index = schedule.size();
    total =
        index < mean_attempts.size() ? end_of_wait(mean_attempts[index]) : plus(total, wait.mean);
    schedule.push_back({.attempt = &attempt, .wait = wait, .total = total});
  }
  return schedule;
}

Schedule schedule_of(const Outcome& outcome) {
  Schedule schedule;
  for (const auto& attempt : history_of(outcome).attempts) {
    const auto wait = attempt.wait.value_or(Duration{});
    schedule.push_back({&attempt, DelayRange{wait, wait, wait}, end_of_wait(attempt)});
  }
  return schedule;
}

// Only the limit on simulated attempts cancels these calls.
std::string_view stop_reason_text(const History& history) {
  return history.stop_reason == Reason::Canceled ? "not finished" : to_string(history.stop_reason);
}

std::string end_text(const Outcome& outcome) {
  const auto& history = history_of(outcome);
  const auto count = history.attempts.size();
  auto text = (count == 0 ? "before it is sent" : "after attempt " + std::to_string(count)) +
              ", at " + duration_text(history.elapsed) + ": " +
              std::string(stop_reason_text(history));
  if (!history.detail.empty()) text += " (" + history.detail + ")";
  // `retry_at` itself is a virtual time, which would mean nothing to the user.
  const auto* last = history.last();
  if (history.retry_at && last != nullptr && last->server_delay) {
    text += ", the server asks for " + duration_text(*last->server_delay);
  }
  return text;
}

std::vector<std::string> end_lines(const Extremes& calls) {
  std::vector<std::string> lines{"ends " + end_text(calls.mean)};
  const auto& usual = history_of(calls.mean);
  for (const auto& [outcome, which] :
       {std::pair(&calls.shortest, "shortest"), std::pair(&calls.longest, "longest")}) {
    const auto& other = history_of(*outcome);
    if (other.stop_reason == usual.stop_reason && other.attempts.size() == usual.attempts.size()) {
      continue;
    }
    lines.push_back(std::string("with the ") + which + " waits " + end_text(*outcome));
  }
  return lines;
}

}  // namespace httpretry::cli
