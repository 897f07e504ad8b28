// RequestAttempts: the attempts of one request, as the middleware `retry` makes them. What
// RetryLoop is given, what is sent, and what the stages below may ask.
#pragma once

#include "budgets.hpp"
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

class RequestAttempts final : private CurrentAttempt {
 public:
  // `options`, `request` and `call` must outlive this. `budget`: that the request shares with
  // others; nullptr where there is none.
  RequestAttempts(const RetryOptions& options, ChosenPolicy chosen,
                  std::shared_ptr<RetryAccount> budget, const Request& request, Call& call);
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
  [[nodiscard]] Time wait_until() const { return wait_until_; }
  // What is below held the request back, and nothing was sent.
  [[nodiscard]] bool was_held_back(const Outcome& outcome) const;
  // Instead of `end`, after that. Returns the outcome of the call. `before`: of the attempt before
  // this one, if it was kept; where only retries ask the breaker, the call ends with it.
  Outcome refuse(Outcome refusal, Outcome* before);
  // As RetryLoop's. Returns the outcome of the call.
  Error cancel();

 private:
  const std::shared_ptr<const RetryPolicy>& policy() const override { return chosen_.shared(); }
  const std::shared_ptr<const ResolvedPolicy>& resolved() const override {
    return chosen_.resolved;
  }
  int number() const override { return sending_->number; }
  bool is_retry() const override { return kept_.recorded != 0; }
  ExchangeLimits limits() const override;
  Classified judge(const Outcome& outcome) const override;
  bool reads_body(int status, const Headers& headers) const override;
  bool may_be_hedged() const override;
  std::optional<int> sends_left() const override { return sending_->loop.sends_left(); }
  std::optional<HedgeRefused> pay_for_hedge(Time now) override {
    return budget_ ? budget_->take_hedge(now) : std::nullopt;
  }
  void give_back_hedge(Time now) override {
    if (budget_) budget_->give_back_hedge(now);
  }
  void end_hedge(Time now) override {
    if (budget_) budget_->end_hedge(now);
  }
  void sent_several(HedgedSends sends) override { sending_->hedged = std::move(sends); }

  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  [[nodiscard]] SharedLimits& shared_limits();
  // For one attempt.
  [[nodiscard]] RetryLoop retry_loop();
  void hold_back_what_rules_read();
  [[nodiscard]] Classified classified(const Outcome& outcome, WallTime wall_now) const;
  void tell_of_the_end(std::size_t recorded_before, const Attempt& last);

  // What is needed only while an attempt is under way. A call that waits is 280 bytes smaller by
  // it.
  struct Sending : detail::PooledFrame {
    Sending(Call of, const RetryLoop& by, const RetryStep& step, int exchanges)
        : branch(std::move(of)),
          loop(by),
          respond_by(step.respond_by),
          number(step.number),
          fresh_connection(step.fresh_connection),
          exchanges_before(exchanges) {}
    Call branch;  // that carries it out
    RetryLoop loop;
    const Time respond_by;  // the headers of the response
    const int number;
    const bool fresh_connection;
    const int exchanges_before;
    // Of the beginning of a body that then went to the sink.
    std::optional<Classified> judged;
    std::optional<HedgedSends> hedged;  // if there were several
  };

  // That is sent now.
  [[nodiscard]] const Request& request() const { return polls_ ? polls_->request() : first_; }
  [[nodiscard]] bool polls() const { return polls_ && polls_->polls(); }

  const RetryOptions& options_;
  const ChosenPolicy chosen_;
  const Request& first_;
  Call& call_;
  std::unique_ptr<PollUrl> polls_;
  std::unique_ptr<BudgetUse> budget_;  // nullptr: there are no limits
  RetryLoop::Kept kept_;
  Time wait_until_{};
  std::unique_ptr<Sending> sending_;
};

}  // namespace httpretry
