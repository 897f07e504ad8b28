// RetryLoop: the order in which attempts are made, judged, paid for, recorded and waited for. It is
// the only place that knows this order.
//
// Requests (the middleware `retry`) and functions (retry_call, co_retry_call) are retried by it.
//
//   auto step = loop.begin(now);
//   while (step.kind != RetryStep::Kind::Stop) {
//     if (step.kind == RetryStep::Kind::Send) {
//       step = loop.end(send(), ...);
//     } else if (wait_until(step.until)) {
//       step = loop.begin(now);
//     } else {
//       return RetryLoop::cancel(limits, history, now);
//     }
//   }
//
// Pure like the rest of this room: the caller brings the time, the random numbers and the waiting.
#pragma once

#include <httpretry/http/response.hpp>
#include <httpretry/retry/decide.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// Limits that several calls share, as one of these calls uses them: the budget for retries, the
// send rate. Each function is one atomic step, with plain values in and out, so that the state
// behind it can be kept under a lock or in another process.
class SharedLimits {
 public:
  // What the loop wants to do after an attempt.
  enum class Next : std::uint8_t { Retry, Poll, Stop };
  struct Permit {
    bool allowed = true;               // false only for Next::Retry
    std::optional<std::int64_t> left;  // Attempt::budget_left
  };

  virtual ~SharedLimits() = default;
  // Zero: the attempt begins now. Otherwise nothing was taken: ask again after that time.
  virtual Duration begin_attempt(Time now) = 0;
  // Takes what a retry costs. Where the call ends with this attempt, because it is the last or
  // because the retry is not allowed, the account of the call is closed.
  virtual Permit end_attempt(const Classified& classified, Next next, Time now) = 0;
  // The call ended before the attempt that was paid for, which is given back.
  virtual void cancel(Time now) = 0;
  [[nodiscard]] virtual std::optional<std::int64_t> left(Time now) const = 0;
};

// What to do next.
struct RetryStep {
  enum class Kind : std::uint8_t { Send, Wait, Stop };

  Kind kind = Kind::Stop;
  bool fresh_connection = false;  // Send: not on a pooled connection
  int number = 0;                 // Send: Attempt::number
  Time until = kNever;            // Send: the deadline of the attempt. Wait: the end of the wait.
  Time respond_by = kNever;       // Send: when the headers of the response must be there
};

// The sends of an attempt, where there were several. They have numbers in a row.
struct HedgedSends {
  // Of the one whose outcome the attempt has:
  int number = 0;
  Time began{};
  std::shared_ptr<const Hedge> hedge;
  bool won = false;             // it settled the matter
  std::vector<Attempt> others;  // in the order of their numbers; all are Race::Lost
};

// What the attempt came to, besides its class.
void set_outcome(Attempt& attempt, const Outcome& outcome);

// An attempt that has ended, as its caller sees it.
struct EndedAttempt {
  Time now{};
  WallTime wall_now{};
  double random = 0;                 // in [0, 1)
  const Outcome* outcome = nullptr;  // of a request
  bool begun = true;                 // the transport began an exchange
  bool replayable = true;            // RetryState::replayable
  bool streaming = false;            // RetryState::streaming
  bool names_url = false;            // it is a pending response that names the URL to poll
  HedgedSends* hedged = nullptr;     // if there were several sends; what it has is moved
};

using BackoffFunction =
    std::function<Duration(const RetryPolicy&, const Classified&, const RetryState&, double)>;

// What lasts from one attempt to the next is in its `Kept`: a call that waits holds only that. A
// loop may be made for each attempt.
class RetryLoop {
 public:
  struct Options {
    Time call_started{};  // Attempt::start counts from here
    Time deadline = kNever;
    const BackoffFunction* backoff = nullptr;  // instead of the policy's, where it is set
  };

  struct Kept {
    // Set by the user of the loop:
    Time started{};                // max_elapsed_time counts from here
    bool repeatable = true;        // Request::repeatable()
    bool changes_nothing = false;  // a GET: no later status is ambiguous

    // Set by the loop; many are as in RetryState:
    bool polls_url = false;
    bool once_used = false;
    bool maybe_executed = false;
    bool fresh_connection = false;
    bool resent = false;
    int failures = 0;
    int hedges = 0;
    int throttles = 0;
    int polls = 0;
    int recorded = 0;  // Attempt::number of the last one
    // Failures and polls have backoffs of their own, each of which grows from its own last wait.
    Duration last_backoff{};
    Duration last_poll_backoff{};
  };

  // All but `options` must outlive the loop. `history` gets an Attempt for each attempt, and the
  // reason for the end.
  RetryLoop(const RetryPolicy& policy, SharedLimits& limits, History& history,
            const Options& options, Kept& kept)
      : policy_(policy), limits_(limits), history_(history), options_(options), kept_(kept) {}

  // Before each attempt: Send; or Wait or Stop where the send rate says so.
  [[nodiscard]] RetryStep begin(Time now);
  // After each attempt: Wait or Stop. `rule` is Attempt::rule.
  [[nodiscard]] RetryStep end(const EndedAttempt& ended, const Classified& classified,
                              std::string rule);
  // Instead of `end`, for an attempt that failed because the server had closed a pooled connection
  // while it was idle. That is no failure of the request: once in a call it is sent again at once,
  // and that does not count as a retry. Empty where it must not; then call `end`.
  [[nodiscard]] std::optional<RetryStep> resend(const EndedAttempt& ended);
  // Instead of `end`, where the request was held back before anything was sent: no attempt was
  // made, and the call is over.
  void refuse(const Error& refusal, Time now);
  // Instead of `begin`, where the wait was cut short: the call is over.
  static void cancel(SharedLimits& limits, History& history, Time now);

  // Of the current attempt: how many more sends max_attempts allows. Empty: any.
  [[nodiscard]] std::optional<int> sends_left() const;
  // The attempt that was last recorded.
  [[nodiscard]] Attempt& recorded() const {
    return history_.attempts[static_cast<std::size_t>(kept_.recorded) - 1];
  }

 private:
  [[nodiscard]] RetryState state_after(const EndedAttempt& ended, Class cls) const;
  void count(Class cls);
  void count_hedges(const HedgedSends& hedged);
  void poll_url();
  void ask_own_backoff(const Classified& classified, double random, RetryState& state) const;
  void remember(const Classified& classified, const Decision& decision);
  void maybe_executed();
  Attempt& record(const EndedAttempt& ended, Class cls, std::string rule,
                  std::optional<std::int64_t> budget_left);
  static RetryStep retry(Attempt& attempt, Duration backoff, Duration wait, Time now);

  const RetryPolicy& policy_;
  SharedLimits& limits_;
  History& history_;
  Options options_;
  Kept& kept_;
  Time began_{};  // the current attempt
  bool in_attempt_ = false;
};

}  // namespace httpretry
