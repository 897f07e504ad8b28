// RetryAccount: the budget for retries and the send rate of the calls that share a key. budget.hpp
// explains both.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/retry/budget.hpp>
#include <httpretry/retry/classify.hpp>

#include <cstdint>
#include <optional>

namespace httpretry {

// The next step of a call after an attempt. Only a retry costs something.
enum class AfterAttempt : std::uint8_t { Retry, Poll, Stop };

// The result of RetryAccount::end_attempt.
struct RetryPermit {
  bool allowed = true;               // false only for a retry; the call then ends
  std::optional<std::int64_t> left;  // Attempt::budget_left
};

// RetryAccount is the interface of a shared budget and send rate. Each function is one atomic step
// with plain values as arguments and results, so the state can be kept under a lock or in another
// process. A call passes the same `claim` to each function.
class HTTPRETRY_API RetryAccount {
 public:
  virtual ~RetryAccount();

  // The send rate, for calls with an adaptive policy:

  // Returns zero if the send may begin now. Otherwise takes nothing and returns the time after
  // which to call again.
  virtual Duration take_send(Time now) = 0;
  // Called after each attempt.
  virtual void count_attempt(bool throttled, Time now) = 0;

  // The budget:

  // Called once for each call. An `end_attempt` with Stop, or `cancel`, must follow.
  virtual void begin_call(Time now) = 0;
  // Called after each attempt with what the call will do next. For a retry, takes its cost.
  virtual RetryPermit end_attempt(BudgetClaim& claim, const Classified& classified,
                                  AfterAttempt next, Time now) = 0;
  // Called if the call ends without a further attempt. If `paid` is true, an attempt was paid for,
  // and its cost is returned.
  virtual void cancel(BudgetClaim& claim, bool paid, Time now) = 0;
  // Takes the cost of a hedge, just before it is sent. Returns false if nothing was taken.
  virtual bool take_hedge(BudgetClaim& claim, Time now) = 0;
  // Called if the latest hedge was not sent.
  virtual void give_back_hedge(BudgetClaim& claim, Time now) = 0;
  // Called when a hedge has ended, but only while the claim has extras.
  virtual void end_hedge(BudgetClaim& claim, Time now) = 0;
  // Returns what is left of the budget, as in Attempt::budget_left.
  [[nodiscard]] virtual std::optional<std::int64_t> left(Time now) const = 0;
};

}  // namespace httpretry
