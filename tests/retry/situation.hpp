// A call's situation, outcomes written as text, and the decision between them.
#pragma once

#include <httpretry/retry/decide.hpp>

#include <string>
#include <string_view>

namespace httpretry_test {

using namespace std::chrono_literals;
using namespace httpretry;  // NOLINT: these tests speak of little else

// Four attempts, waits of up to 100, 200, 400 ms, after a throttle of up to 1, 2, 4 s.
inline RetryPolicy quick_policy() {
  RetryPolicy policy;
  policy.max_attempts = 4;
  policy.backoff.jitter = policy.throttle_backoff->jitter = Backoff::Jitter::Full;
  policy.backoff.initial = 100ms;
  return policy;
}

struct Situation {
  RetryPolicy policy = quick_policy();
  RetryState facts;
  Clocks clocks{Time(10s), Time(10s), kNever, WallTime(1000s)};
};

// "503", "503; Retry-After: 7", or an error and what was sent: "receive maybe".
inline Outcome outcome_of(std::string_view text) {
  const auto space = text.find_first_of(" ;");
  const auto word = text.substr(0, space);
  if (word[0] >= '0' && word[0] <= '9') {
    Response response(std::stoi(std::string(word)));
    const auto field = text.find("; ");
    if (field != std::string_view::npos) {
      const auto colon = text.find(": ");
      response.headers.add(text.substr(field + 2, colon - field - 2), text.substr(colon + 2));
    }
    return response;
  }
  auto code = Errc::InvalidRequest;
  while (to_string(code) != word) code = static_cast<Errc>(static_cast<int>(code) + 1);
  Error error(code);
  if (text.ends_with("maybe")) error.exchange.sent = Sent::Maybe;
  if (text.ends_with("partial")) error.exchange.sent = Sent::Answered;
  error.partial = text.ends_with("partial");
  return error;
}

inline Decision decision_of(const Situation& situation, const Outcome& outcome, double u = 1) {
  const auto classified = classify(situation.policy, Observed(outcome, situation.clocks.wall_now));
  return decide(situation.policy, classified, situation.facts, situation.clocks, u);
}

inline std::string words(const Decision& decision) {
  if (!decision.retry) return std::string(to_string(decision.reason));
  return "retry after " + to_text(decision.wait);
}

}  // namespace httpretry_test
