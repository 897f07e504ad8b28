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
//       return loop.cancel(now);
//     }
//   }
//
// Pure like the rest of this room: the caller brings the time, the random numbers and the waiting.
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

// What one call takes from the RetryAccount that it shares with others. However the call ends, what
// it took is given back once at most: at the latest by the destructor.
class RetryClaim {
 public:
  // `account`: nullptr where nothing limits the call. `adaptive`: the send rate counts.
  RetryClaim(std::shared_ptr<RetryAccount> account, bool adaptive, Time now);
  ~RetryClaim();
  RetryClaim(const RetryClaim&) = delete;
  RetryClaim& operator=(const RetryClaim&) = delete;

  // Zero: the attempt begins now. Otherwise nothing was taken: ask again after that time.
  Duration begin_attempt(Time now);
  // Takes what a retry costs. Where the call ends with this attempt, because it is the last or
  // because the retry is not allowed, the claim is closed.
  RetryPermit end_attempt(const Classified& classified, AfterAttempt next, Time now);
  // The call ended before the attempt that was paid for, which is given back.
  void cancel(Time now);
  // Takes what a hedge costs; the reason where that is not there.
  std::optional<HedgeRefused> take_hedge(Time now);
  // The latest hedge was not sent.
  void give_back_hedge(Time now);
  // A hedge has ended.
  void end_hedge(Time now);
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  const std::shared_ptr<RetryAccount> account_;
  BudgetClaim claim_;
  const bool adaptive_;
  bool paid_ = false;    // for a retry that has not begun
  bool closed_ = false;  // the call has ended
  Time last_;            // the latest time that this was given
};

using BackoffFunction =
    std::function<Duration(const RetryPolicy&, const Classified&, const RetryState&, double)>;

class RetryLoop {
 public:
  struct Options {
    Time call_started{};  // Attempt::start counts from here
    Time started{};       // max_elapsed_time counts from here
    Time deadline = kNever;
    bool repeatable = true;                    // Request::repeatable()
    bool changes_nothing = false;              // a GET: no later status is ambiguous
    const BackoffFunction* backoff = nullptr;  // instead of the policy's, where it is set
  };

  // `policy` and `history` must outlive the loop. `history` gets an Attempt for each attempt, and
  // the reason for the end. `account`: nullptr where the call shares no limits with others.
  RetryLoop(const RetryPolicy& policy, std::shared_ptr<RetryAccount> account, History& history,
            const Options& options);

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
  void cancel(Time now);

  // Whether an attempt was recorded before.
  [[nodiscard]] bool is_retry() const { return recorded_ != 0; }
  // Of the current attempt: how many more sends max_attempts allows. Empty: any.
  [[nodiscard]] std::optional<int> sends_left() const;
  // What hedges of the current attempt are paid from.
  [[nodiscard]] RetryClaim& claim() { return claim_; }
  // Attempt::number of the attempt that was last recorded, and that attempt.
  [[nodiscard]] int last_number() const { return recorded_; }
  [[nodiscard]] const Attempt& last_attempt() const {
    return history_.attempts[static_cast<std::size_t>(recorded_) - 1];
  }

 private:
  void count(const EndedAttempt& ended, Class cls);
  void count_hedges(const HedgedSends& hedged);
  void poll_url();
  void ask_own_backoff(const Classified& classified, double random);
  void remember(const Classified& classified, const Decision& decision);
  void set_maybe_executed();
  Attempt& record(const EndedAttempt& ended, Class cls, std::string rule,
                  std::optional<std::int64_t> budget_left);
  static RetryStep retry(Attempt& attempt, Duration backoff, Duration wait, Time now);

  const RetryPolicy& policy_;
  History& history_;
  Options options_;
  RetryClaim claim_;
  RetryState state_;
  // Failures and polls have backoffs of their own, each of which grows from its own last wait.
  Duration last_backoff_{};
  Duration last_poll_backoff_{};
  Time began_{};  // the current attempt
  int recorded_ = 0;
  bool in_attempt_ = false;
  bool fresh_connection_ = false;  // for the next attempt
  bool resent_ = false;
};

}  // namespace httpretry
