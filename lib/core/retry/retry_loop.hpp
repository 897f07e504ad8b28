// RetryLoop, and the steps and facts that it exchanges with its users.
#pragma once

#include <httpretry/http/response.hpp>
#include <httpretry/retry/decide.hpp>
#include <httpretry/retry/retry_account.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// The next thing that the caller of RetryLoop must do.
struct RetryStep {
  enum class Kind : std::uint8_t { Send, Wait, Stop };

  Kind kind = Kind::Stop;
  bool fresh_connection = false;  // Send: do not use a pooled connection
  int number = 0;                 // Send: Attempt::number
  Time until = kNever;            // Send: the deadline of the attempt; Wait: the end of the wait
  Time respond_by = kNever;       // Send: the deadline for the response headers
};

// The sends of an attempt that was hedged. Their numbers are consecutive.
struct HedgedSends {
  // These three describe the send whose outcome the attempt has.
  int number = 0;
  Time began{};
  std::shared_ptr<const Hedge> hedge;
  bool won = false;             // this send decided the race
  std::vector<Attempt> others;  // ordered by number; all are Race::Lost
};

// Copies the outcome into `attempt`: its exchange, status and error. Does not set its class.
void set_outcome(Attempt& attempt, const Outcome& outcome);

// Describes an attempt that has ended, from the caller's point of view.
struct EndedAttempt {
  Time now{};
  WallTime wall_now{};
  double random = 0;                 // in [0, 1)
  const Outcome* outcome = nullptr;  // nullptr if the attempt called a function
  bool begun = true;                 // whether the transport began an exchange
  bool replayable = true;            // RetryState::replayable
  bool streaming = false;            // RetryState::streaming
  bool progressed = false;           // brought a download at least 64 KiB further
  bool names_url = false;            // the response is pending and names the URL to poll
  HedgedSends* hedged = nullptr;     // nullptr if there was one send; `others` is moved from
};

// The part that one call has taken of the RetryAccount that it shares with other calls. However the
// call ends, the claim settles with the account exactly once, in the destructor at the latest.
class RetryClaim {
 public:
  // `account` is nullptr if nothing limits the call. `adaptive` applies the account's send rate.
  RetryClaim(std::shared_ptr<RetryAccount> account, bool adaptive, Time now);
  ~RetryClaim();
  RetryClaim(const RetryClaim&) = delete;
  RetryClaim& operator=(const RetryClaim&) = delete;

  // Returns zero if the attempt may begin now. Otherwise takes nothing and returns the time after
  // which to try again.
  Duration begin_attempt(Time now);
  // Takes the cost of a retry. Closes the claim if the call ends with this attempt, either because
  // `next` is Stop or because the retry is not allowed.
  RetryPermit end_attempt(const Classified& classified, AfterAttempt next, Time now);
  // Ends the call after a wait that was cut short, and gives back the cost of the retry that was
  // not made.
  void cancel(Time now);
  // Ends the call with an attempt that has sent nothing. If it was a retry, gives its cost back.
  void cancel_attempt(Time now);
  // Takes the cost of a hedge, or returns why it cannot be taken.
  std::optional<HedgeRefused> take_hedge(Time now);
  // Gives back the cost of the latest hedge, which was not sent.
  void give_back_hedge(Time now);
  // Reports that a hedge has ended.
  void end_hedge(Time now);
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  const std::shared_ptr<RetryAccount> account_;
  BudgetClaim claim_;
  const bool adaptive_;
  bool paid_ = false;          // the cost of a retry that has not begun was taken
  bool attempt_paid_ = false;  // the attempt that begin_attempt allowed is such a retry
  bool closed_ = false;        // the call has ended
  Time last_;                  // the latest time passed in; the destructor has no clock
};

// The type of RetryOptions::backoff: the user's function that replaces the backoff of the policy.
using BackoffFunction =
    std::function<Duration(const RetryPolicy&, const Classified&, const RetryState&, double)>;

// RetryLoop decides, for one call, when to send and when to stop. It is the only place that knows
// the order in which attempts are judged, paid for, recorded and followed by a wait. It neither
// sends nor waits: it is pure, like the rest of this module, and its user provides the time and the
// random numbers. The users are the `retry` middleware (RequestAttempts), and retry_call and
// co_retry_call.
//
//   auto step = loop.begin(now);
//   while (step.kind != RetryStep::Kind::Stop) {
//     if (step.kind == RetryStep::Kind::Send) {
//       const EndedAttempt ended = send(step);
//       const auto resend = loop.resend(ended);  // only if a request was sent, not for functions
//       step = resend ? *resend : loop.end(ended, classify(ended), rule);
//     } else if (wait_until(step.until)) {
//       step = loop.begin(now);
//     } else {
//       return loop.cancel(now);  // the wait was cut short
//     }
//   }
//
// If `begin` has returned Send, exactly one of a successful `resend`, `end` and `refuse` must
// follow.
class RetryLoop {
 public:
  struct Options {
    Time call_started{};  // Attempt::start counts from here
    Time started{};       // max_elapsed_time counts from here
    Time deadline = kNever;
    bool repeatable = true;  // Request::repeatable()
    // The method is safe, like GET, so an earlier attempt cannot be the cause of a later status.
    // The 404 after a repeated DELETE may have such a cause (Attempt::ambiguous).
    bool changes_nothing = false;
    int attempts_before = 0;  // attempts of the call for other requests, before a redirect
    const BackoffFunction* backoff = nullptr;  // replaces the policy's backoff; may be nullptr
  };

  // `policy` and `history` must outlive the loop. The loop adds each attempt and the reason for the
  // end to `history`. `account` has the retry budget and the send rate that the call shares with
  // others; it is nullptr if there are none.
  RetryLoop(const RetryPolicy& policy, std::shared_ptr<RetryAccount> account, History& history,
            const Options& options);

  // Called before each attempt. Returns Send, which begins the attempt; or Wait, if the send rate
  // (RetryPolicy::adaptive) allows no attempt yet; or Stop, if it allows one only when it is too
  // late for the call. After the wait, call `begin` again.
  [[nodiscard]] RetryStep begin(Time now);
  // Called after each attempt that sent a request, before `end`. If the attempt failed because the
  // server had closed an idle pooled connection, the request itself has not failed. It is then sent
  // again at once on a new connection, which does not count as a retry and costs nothing. Records
  // the attempt and returns a Wait that is over already. Returns nullopt, and does nothing, in all
  // other cases: this has happened before in the call, or the request must not be executed twice,
  // or its body cannot be read again. Then call `end`.
  [[nodiscard]] std::optional<RetryStep> resend(const EndedAttempt& ended);
  // Called after each attempt that `resend` has not ended. Decides whether a retry follows, charges
  // the account for it, and records the attempt. Returns Wait if a retry or a poll follows,
  // otherwise Stop. `rule` becomes Attempt::rule.
  [[nodiscard]] RetryStep end(const EndedAttempt& ended, const Classified& classified,
                              std::string rule);
  // Returns whether a retry would follow if the attempt ended like this. Does not ask the budget
  // and the user's backoff.
  [[nodiscard]] bool would_retry(const EndedAttempt& ended, const Classified& classified) const;
  // Called instead of `end` if a stage below, such as guards(), held the request back and nothing
  // was sent. `refusal` is its error. Records no attempt, and ends the call with the reason of the
  // error.
  void refuse(const Error& refusal, Time now);
  // Called instead of `begin` if the wait was cut short. Ends the call with Reason::Canceled.
  void cancel(Time now);

  // Returns whether an earlier attempt has been recorded. During an attempt, this means that the
  // attempt is not the first one of this loop.
  [[nodiscard]] bool is_retry() const { return recorded_ != 0; }
  // Returns Options::attempts_before.
  [[nodiscard]] int attempts_before() const { return options_.attempts_before; }
  // Returns how many hedges max_attempts still allows in the current attempt, which itself counts
  // as one send. nullopt means no limit.
  [[nodiscard]] std::optional<int> sends_left() const;
  // What this call has taken from the account. The hedges of the current attempt take their cost
  // there.
  [[nodiscard]] RetryClaim& claim() { return claim_; }
  // Returns the last recorded attempt. If it was hedged, that is the send whose outcome was used.
  [[nodiscard]] const Attempt& last_attempt() const {
    return history_.attempts[static_cast<std::size_t>(recorded_) - 1];
  }

 private:
  [[nodiscard]] RetryState counted(const EndedAttempt& ended, Class cls) const;
  [[nodiscard]] Clocks clocks_at(const EndedAttempt& ended) const {
    return {ended.now, options_.started, options_.deadline, ended.wall_now};
  }
  void count_hedges(const HedgedSends& hedged);
  void begin_polling_url();
  void ask_users_backoff(const Classified& classified, double random);
  void remember(const Classified& classified, const Decision& decision);
  void set_maybe_executed();
  Attempt& record(const EndedAttempt& ended, Class cls, std::string rule,
                  std::optional<std::int64_t> budget_left);
  RetryStep stop(const Decision& decision);
  static RetryStep retry(Attempt& attempt, Duration backoff, Duration wait, Time now);

  const RetryPolicy& policy_;
  History& history_;
  Options options_;
  RetryClaim claim_;
  RetryState state_;
  // Failures and polls have separate backoffs, and each grows from its own last wait.
  Duration last_backoff_{};
  Duration last_poll_backoff_{};
  Time began_{};  // when the current attempt began
  int recorded_ = 0;
  bool in_attempt_ = false;
  bool fresh_connection_ = false;  // for the next attempt
  bool resent_ = false;
};

}  // namespace httpretry
