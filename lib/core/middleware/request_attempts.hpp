#pragma once

#include "poll_url.hpp"
#include "retry_policies.hpp"

#include "lib/core/chain/current_attempt.hpp"

#include <httpretry/chain/middleware.hpp>
#include <httpretry/middleware/retry.hpp>

#include <memory>
#include <optional>

namespace httpretry {

// RequestAttempts makes the attempts of one request for the `retry` middleware, which waits between
// them. RetryLoop decides; this class passes the request to the stages below, has the outcome
// classified, and notifies the observers. It is used on the thread that drives the call.
class RequestAttempts {
 public:
  // `options`, `request` and `call` must outlive this.
  RequestAttempts(const RetryOptions& options, ChosenPolicy chosen, const Request& request,
                  Call& call);
  RequestAttempts(const RequestAttempts&) = delete;
  RequestAttempts& operator=(const RequestAttempts&) = delete;

  // Returns the next step of RetryLoop. After Send, call `send`. After Wait, call `next_step`
  // again at the time `wait_until`. After Stop, the call ends with `last_outcome`.
  [[nodiscard]] RetryStep::Kind next_step();
  // Makes the attempt, notifies the observers, and returns the outcome of the attempt. Then call
  // `has_ended`. This is a separate coroutine, because a call that waits should not hold the memory
  // that only a running attempt needs.
  Task<Outcome> send(const Next& next);
  // After `send`: returns whether the call ends with its outcome. If not, call `keep` and wait.
  [[nodiscard]] bool has_ended() const { return step_.kind == RetryStep::Kind::Stop; }
  // After `send`: keeps its outcome for `last_outcome` if the policy may end the call during the
  // wait that follows (ChosenPolicy::may_end_with_last). Otherwise drops it.
  void keep(Outcome outcome);
  // Returns when to call `next_step` again.
  [[nodiscard]] Time wait_until() const { return step_.until; }
  // Ends the call during a wait, because it was canceled. Returns the outcome of the call.
  Error cancel();
  // After `next_step` has returned Stop: returns the outcome that was kept. If none was kept,
  // returns an Errc::Timeout whose message is History::detail.
  Outcome last_outcome();

 private:
  [[nodiscard]] Time now() const { return call_.scheduler().now(); }
  [[nodiscard]] RetryLoop::Options loop_options() const;
  [[nodiscard]] CurrentAttempt current_attempt();
  [[nodiscard]] ExchangeLimits limits() const;
  Task<Outcome> pass_on(Call& branch, const Next& next);
  void hold_back_body_until_judged(CurrentAttempt& attempt);
  [[nodiscard]] EndedAttempt facts_of(CurrentAttempt& attempt, const Outcome& outcome) const;
  [[nodiscard]] bool will_retry(CurrentAttempt& attempt, const Response& begun) const;
  void end(CurrentAttempt& attempt, Outcome& outcome, bool exchanged);
  RetryStep judge_and_decide(CurrentAttempt& attempt, Outcome& outcome, EndedAttempt ended);
  void refuse(Outcome& outcome);
  void notify_attempt_ended(std::size_t first_new_entry);

  // Returns the request to send now.
  [[nodiscard]] const Request& request() const { return poll_url_ ? poll_url_->request() : first_; }
  [[nodiscard]] bool is_polling() const { return poll_url_ && poll_url_->is_polling(); }

  const RetryOptions& options_;
  const ChosenPolicy chosen_policy_;
  const Request& first_;
  Call& call_;
  std::unique_ptr<PollUrl> poll_url_;
  RetryLoop loop_;
  RetryStep step_;
  std::optional<Outcome> last_;
};

}  // namespace httpretry
