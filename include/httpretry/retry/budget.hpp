#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace httpretry {

// BudgetClaim records what one call has taken from a budget, so that nothing is given back twice.
// Each call has its own and passes it to each function. After `cancel` or `settle` the functions
// have no effect.
struct BudgetClaim {
  // An amount that was taken from the budget, in thousandths, and the time.
  struct Taken {
    std::int64_t amount = 0;  // thousandths of a token
    Time when{};
  };
  Taken retry;              // for the latest retry
  Taken hedge;              // for the latest hedge
  std::int32_t extras = 0;  // for Concurrent: the retries and hedges of the call that are in flight
  bool settled = false;     // the call has ended
};

// Budget says how many retries the calls of a client may make in addition to its requests.
//
// When a server is down, every call fails and every call retries. With four retries each, the
// server gets five times the load at the moment when it can bear the least: a retry storm. A budget
// prevents this. The calls to one host share it. Once it is spent, failures are returned without a
// retry, and successes refill it.
//
//   tokens (AWS)        a retry costs tokens; a success gives them back
//   ratio (Finagle)     retries may add at most a share of the requests of the last seconds
//   grpc                each failure takes a token, each success returns a part of one; retries
//                       are allowed while more than half is left
//   concurrent (Envoy)  the retries and hedges in flight may be at most a share of the calls in
//                       flight; a few are always allowed
//
// Budget is a plain state machine without a clock and without a lock: code that shares one must
// lock it. Amounts are integers, in thousandths, so that rounding errors do not accumulate.
//
// A retry is counted when it is decided, not when it is sent. Otherwise a thousand calls that fail
// together would all find the budget full while they wait. In a concurrent budget, a retry is in
// flight from its decision until its attempt has ended.
class HTTPRETRY_API Budget {
 public:
  explicit Budget(const BudgetPolicy& policy);
  // Returns the numbers of the budget.
  [[nodiscard]] const BudgetPolicy& policy() const { return policy_; }

  // Replaces the numbers; the kind stays the same, and claims stay valid. Tokens and Grpc keep
  // their fill level, as in gRPC: a full budget stays full, and an empty one stays empty. Ratio
  // keeps what is still in its window. Retries and hedges in flight still count.
  void change(const BudgetPolicy& policy, Time now);
  // Returns a second budget with other numbers and the same fill level. Retries and hedges in
  // flight stay in this one.
  [[nodiscard]] Budget split(const BudgetPolicy& policy, Time now) const;

  // Called once for each call, before its first attempt. `settle` or `cancel` must follow.
  void begin(Time now);
  // Called after `decide` has decided to retry and before the wait, but not for a poll. If it
  // returns false, nothing was taken, and the call ends with budget_exhausted.
  bool take(BudgetClaim& claim, Class cls, bool timeout, Time now);
  // The same for a hedge, before it is sent. The cost is not refunded when the call ends. Grpc
  // takes nothing and only checks that more than half is left.
  bool take_hedge(BudgetClaim& claim, Time now);
  // Called if the latest hedge was not sent.
  void give_back_hedge(BudgetClaim& claim, Time now);
  // Called when a hedge has ended before its attempt.
  void end_hedge(BudgetClaim& claim);
  // Called after each attempt, before the next retry is taken: none of its sends is still in
  // flight.
  void end_attempt(BudgetClaim& claim);
  // Called if the wait was cut short, and the retry that was taken is not made.
  void cancel(BudgetClaim& claim, Time now);
  // Called when the call has ended with an outcome of class `last`. A success returns the cost of
  // the last retry, and at least `refill`.
  void settle(BudgetClaim& claim, Class last, Time now);

  // The balance in thousandths, for a budget from which others take as well. For Ratio it excludes
  // what a window always allows, and may be negative.
  [[nodiscard]] std::int64_t balance(Time now) const;
  // Sets the balance, for a budget whose balance is stored elsewhere.
  void set_balance(std::int64_t thousandths, Time now);

  // Returns what is left in thousandths (for Concurrent, of a send), or nullopt without a budget.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;
  // Returns whether the budget is in its initial state, so that a new one could replace it.
  [[nodiscard]] bool full(Time now) const;

  // For Concurrent: `calls` returns the calls in flight, `extras` the retries and hedges in flight,
  // and `most_extras` the maximum of the latter.
  [[nodiscard]] std::int64_t calls() const { return calls_; }
  [[nodiscard]] std::int64_t extras() const { return extras_; }
  [[nodiscard]] std::int64_t most_extras() const;

 private:
  static constexpr std::int64_t kPeriods = 10;  // the window of Ratio slides in steps of a tenth
  struct Period {
    std::int64_t number = -1;  // -1 if nothing was counted in it
    std::int64_t sum = 0;
  };
  [[nodiscard]] std::int64_t cost(Class cls, bool timeout) const;
  bool take_extra(BudgetClaim& claim, BudgetClaim::Taken& taken, std::int64_t tokens, Time now);
  bool pay(BudgetClaim::Taken& taken, std::int64_t price, Time now);
  void pay_back(BudgetClaim::Taken& taken, Time now);
  void end_extras(BudgetClaim& claim, std::int32_t number);
  void close(BudgetClaim& claim);
  void give(std::int64_t amount);
  bool count_failure();
  [[nodiscard]] Duration period_length() const;
  [[nodiscard]] std::int64_t period(Time now) const;
  [[nodiscard]] bool in_window(const Period& period, Time now) const;
  [[nodiscard]] std::int64_t sum_of_window(Time now) const;
  [[nodiscard]] std::int64_t left_in_window(Time now) const;
  void add(std::int64_t amount, std::int64_t period);
  void change_window(Duration window, Time now);

  BudgetPolicy policy_;
  std::int64_t left_;  // for Tokens and Grpc
  std::int64_t calls_ = 0;
  std::int64_t extras_ = 0;
  std::array<Period, static_cast<std::size_t>(kPeriods)> periods_{};  // for Ratio
};

// SendRate is AWS's adaptive limit on sends. It is off until the server throttles for the first
// time. Then it follows a cubic curve: down to 0.7 of the rate that was too high, quickly back to
// just below that rate, slowly past it, and then ever faster.
class HTTPRETRY_API SendRate {
 public:
  explicit SendRate(Time start);

  // Returns zero if the send may be made now. Otherwise takes nothing and returns the time after
  // which to call again.
  Duration acquire(Time now);
  // Called after each attempt, whatever its outcome, in the order of time.
  void update(Time now, bool throttled);

  // Returns whether the server has throttled, so that the limit applies.
  [[nodiscard]] bool enabled() const { return enabled_; }
  [[nodiscard]] double rate() const { return fill_rate_; }          // sends per second
  [[nodiscard]] double measured() const { return measured_rate_; }  // sends per second
  // Returns the tokens that the last `acquire` or `update` left. A send takes one.
  [[nodiscard]] double capacity() const { return capacity_; }

 private:
  [[nodiscard]] double seconds(Time now) const;
  void refill(double now);
  void measure(double now);

  Time start_;
  bool enabled_ = false;
  double fill_rate_ = 0.5;
  double max_capacity_ = 1;
  double capacity_ = 0;
  std::optional<double> refilled_;
  double measured_rate_ = 0;
  double last_bucket_ = 0;
  std::int64_t count_ = 0;
  double last_max_rate_ = 0;
  double throttled_at_ = 0;
};

}  // namespace httpretry
