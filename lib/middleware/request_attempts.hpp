// RequestAttempts: the attempts of one request, as the middleware `retry` makes them. What
// RetryLoop is given, what is sent, and what the stages below may ask.
#pragma once

#include "poll_url.hpp"

#include "lib/flow/current_attempt.hpp"

#include <httpretry/flow/middleware.hpp>
#include <httpretry/middleware/retry.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace httpretry {

// The policy of a request.
struct ChosenPolicy {
  std::shared_ptr<const ResolvedPolicy> resolved;  // nullptr where the request brought its own
  // Followed instead of the one in `resolved`; nullptr for the many that do not have it.
  std::unique_ptr<const std::shared_ptr<const RetryPolicy>> own;
  void set_own(std::shared_ptr<const RetryPolicy> policy) {
    own = std::make_unique<const std::shared_ptr<const RetryPolicy>>(std::move(policy));
  }

  [[nodiscard]] const RetryPolicy& policy() const { return *shared(); }
  [[nodiscard]] const std::shared_ptr<const RetryPolicy>& shared() const {
    return own ? *own : resolved->policy;
  }
  // A call that waits holds no response, but for these two: a breaker that holds back retries ends
  // the call with the outcome before, and so does a send rate.
  [[nodiscard]] bool may_end_with_last() const { return policy().adaptive || only_retries_ask(); }
  [[nodiscard]] bool only_retries_ask() const {
    const auto& breaker = policy().guards.breaker;
    return breaker && breaker->applies_to == BreakerPolicy::AppliesTo::Retries;
  }
};

class RequestAttempts {
 public:
  // `options`, `request` and `call` must outlive this. `account`: that the request shares with
  // others; nullptr where there is none.
  RequestAttempts(const RetryOptions& options, ChosenPolicy chosen,
                  std::shared_ptr<RetryAccount> account, const Request& request, Call& call);
  RequestAttempts(const RequestAttempts&) = delete;
  RequestAttempts& operator=(const RequestAttempts&) = delete;

  [[nodiscard]] const ChosenPolicy& chosen() const { return chosen_; }
  // What comes next, as RetryLoop says it. After Send: `send` and `end`; after Wait: `begin` again,
  // when it is `wait_until`.
  [[nodiscard]] RetryStep::Kind begin();
  // Tells the observers.
  Task<Outcome> send(const Next& next);
  // Classifies the outcome and tells the observers. An error takes the place of a pending response
  // that names a URL where nothing is sent.
  [[nodiscard]] RetryStep::Kind end(Outcome& outcome);
  [[nodiscard]] Time wait_until() const { return step_.until; }
  // What is below held the request back, and nothing was sent.
  [[nodiscard]] bool was_held_back(const Outcome& outcome) const;
  // Instead of `end`, after that. Returns the outcome of the call. `before`: of the attempt before
  // this one, if it was kept; where only retries ask the breaker, the call ends with it.
  Outcome refuse(Outcome refusal, Outcome* before);
  // As RetryLoop's. Returns the outcome of the call.
  Error cancel();

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  [[nodiscard]] RetryLoop::Options loop_options() const;
  void begin_attempt(const RetryStep& step);
  [[nodiscard]] ExchangeLimits limits(Time respond_by) const;
  void hold_back_what_rules_read();
  void tell_of_the_end(std::size_t recorded_before);
  [[nodiscard]] bool exchanged() const;

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
  CurrentAttempt attempt_;
  std::optional<Call> branch_;  // that carries the attempt out
  int exchanges_before_ = 0;    // the attempt
};

}  // namespace httpretry
