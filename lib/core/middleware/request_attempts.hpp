// RequestAttempts: the attempts of one request, as the middleware `retry` makes them. What
// RetryLoop is given, what is sent, and what the stages below may ask.
#pragma once

#include "poll_url.hpp"

#include "lib/core/chain/current_attempt.hpp"

#include <httpretry/chain/middleware.hpp>
#include <httpretry/middleware/retry.hpp>

#include <memory>
#include <optional>

namespace httpretry {

// The policy of a request.
struct ChosenPolicy {
  std::shared_ptr<const ResolvedPolicy> resolved;  // nullptr if the request brought its own policy
  std::shared_ptr<const RetryPolicy> policy;  // differs from that in `resolved` without retries
  std::shared_ptr<RetryAccount> account;      // nullptr if nothing limits the retries

  // A call that waits holds no response, but for these two: a breaker that holds back retries ends
  // the call with the outcome before, and so does a send rate.
  [[nodiscard]] bool may_end_with_last() const { return policy->adaptive || only_retries_ask(); }
  [[nodiscard]] bool only_retries_ask() const {
    const auto& breaker = policy->guards.breaker;
    return breaker && breaker->applies_to == BreakerPolicy::AppliesTo::Retries;
  }
};

class RequestAttempts {
 public:
  // `options`, `request` and `call` must outlive this.
  RequestAttempts(const RetryOptions& options, ChosenPolicy chosen, const Request& request,
                  Call& call);
  RequestAttempts(const RequestAttempts&) = delete;
  RequestAttempts& operator=(const RequestAttempts&) = delete;

  // Returns what comes next, as RetryLoop says it. After Send: `send`. After Wait: `begin` again,
  // when it is `wait_until`. After Stop: `last_outcome`.
  [[nodiscard]] RetryStep::Kind begin();
  // Makes the attempt, and tells the observers. A coroutine of its own, because a call that waits
  // should not hold what only a running attempt needs.
  Task<Outcome> send(const Next& next);
  // Returns whether the call ends with the outcome of `send`.
  [[nodiscard]] bool ended() const { return step_.kind == RetryStep::Kind::Stop; }
  // Keeps the outcome of an attempt, if the call may yet end with it.
  void keep(Outcome outcome);
  [[nodiscard]] Time wait_until() const { return step_.until; }
  // Ends the call, because its wait was cut short. Returns the outcome of the call.
  Error cancel();
  // Returns the outcome of a call that ended before another attempt.
  Outcome last_outcome();

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  [[nodiscard]] RetryLoop::Options loop_options() const;
  [[nodiscard]] CurrentAttempt current_attempt();
  [[nodiscard]] ExchangeLimits limits() const;
  Task<Outcome> pass_on(Call& branch, const Next& next);
  void hold_back_what_rules_read(CurrentAttempt& attempt);
  void end(CurrentAttempt& attempt, Outcome& outcome, bool exchanged);
  void refuse(Outcome& outcome);
  void tell_of_the_end(std::size_t recorded_before);

  // That is sent now.
  [[nodiscard]] const Request& request() const { return polls_ ? polls_->request() : first_; }
  [[nodiscard]] bool polls() const { return polls_ && polls_->polls(); }

  const RetryOptions& options_;
  const ChosenPolicy chosen_;
  const Request& first_;
  Call& call_;
  std::unique_ptr<PollUrl> polls_;
  RetryLoop loop_;
  RetryStep step_;
  std::optional<Outcome> last_;
};

}  // namespace httpretry
