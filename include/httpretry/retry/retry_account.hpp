// RetryAccount: the budget for retries and the send rate of those calls that share a key. What they
// do is in budget.hpp.
#pragma once

#include <httpretry/retry/budget.hpp>
#include <httpretry/retry/classify.hpp>

#include <cstdint>
#include <optional>

namespace httpretry {

// What a call wants to do after an attempt. Only a retry costs something.
enum class AfterAttempt : std::uint8_t { Retry, Poll, Stop };

struct RetryPermit {
  bool allowed = true;               // false only for a retry: then the call is over
  std::optional<std::int64_t> left;  // Attempt::budget_left
};

// Each function is one atomic step, with plain values in and out, so that the state behind it can
// be kept under a lock or in another process. `claim` is the call's, and is passed each time.
class HTTPRETRY_API RetryAccount {
 public:
  virtual ~RetryAccount();

  // Of the send rate, for calls whose policy is adaptive.

  // Zero: the send begins now. Otherwise nothing was taken: ask again after that time.
  virtual Duration take_send(Time now) = 0;
  // After each attempt.
  virtual void count_attempt(bool throttled, Time now) = 0;

  // Of the budget.

  // Once for each call. Either an `end_attempt` that stops it or `cancel` follows.
  virtual void begin_call(Time now) = 0;
  virtual RetryPermit end_attempt(BudgetClaim& claim, const Classified& classified,
                                  AfterAttempt next, Time now) = 0;
  // The call is over without a further attempt. `paid`: one was paid for, which is given back.
  virtual void cancel(BudgetClaim& claim, bool paid, Time now) = 0;
  // Takes what a hedge costs, right before it is sent. False: nothing was taken.
  virtual bool take_hedge(BudgetClaim& claim, Time now) = 0;
  // The latest hedge was not sent.
  virtual void give_back_hedge(BudgetClaim& claim, Time now) = 0;
  // A hedge has ended. Only called while the claim has extras.
  virtual void end_hedge(BudgetClaim& claim, Time now) = 0;
  [[nodiscard]] virtual std::optional<std::int64_t> left(Time now) const = 0;
};

}  // namespace httpretry
