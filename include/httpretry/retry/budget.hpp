// Budget: how many retries a client may make on top of its requests.
//
// When a server is down, every call fails, every call retries, and with four retries each it gets
// five times the load at the moment when it can bear least: a retry storm. Calls to one host share
// a budget, which stops that: once it is spent, failures are returned as they come, and successes
// fill it again.
//
//   tokens (AWS)        a retry costs tokens; a success gives them back
//   ratio (Finagle)     retries may add at most a share of the requests of the last seconds
//   grpc                each failure takes a token, each success gives a part of one; retries are
//                       allowed while more than half is left
//   concurrent (Envoy)  the retries and hedges under way may be at most a share of the calls under
//                       way; a few are always allowed
//
// A plain state machine, without clock and lock: whoever shares one locks it. Amounts are integers,
// in thousandths, so that nothing drifts.
//
// A retry is counted when it is decided, not when it is sent: a thousand calls that fail together
// must not all find the budget full while they wait. For a concurrent budget it is under way from
// then on until its attempt has ended.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace httpretry {

// What one call has taken of a budget, so that nothing is given back twice. Each call has its own,
// and passes it to each function; after `cancel` or `settle` nothing more happens.
struct BudgetClaim {
  struct Taken {
    std::int64_t amount = 0;
    Time when{};
  };
  Taken retry;              // for the latest
  Taken hedge;              // likewise
  std::int32_t extras = 0;  // concurrent: its retry and hedges under way
  bool settled = false;     // the call has ended
};

class HTTPRETRY_API Budget {
 public:
  explicit Budget(const BudgetPolicy& policy);
  [[nodiscard]] const BudgetPolicy& policy() const { return policy_; }

  // Other numbers of the same kind count from now on; claims stay valid. Of Tokens and Grpc as
  // large a part is left as before, as gRPC does it: a full budget stays full, and an empty one
  // empty. Ratio counts what is still in its window. What is under way is under way.
  void change(const BudgetPolicy& policy, Time now);
  // A second budget, with other numbers, of which as much is left. What is under way stays here.
  [[nodiscard]] Budget split(const BudgetPolicy& policy, Time now) const;

  // Once for each call, before its first attempt. `settle` or `cancel` must follow.
  void begin(Time now);
  // After `decide` said yes and before the wait; not for a poll. False: nothing was taken, and the
  // call is over, because of budget_exhausted.
  bool take(BudgetClaim& claim, Class cls, bool timeout, Time now);
  // The same for a hedge, before it is sent. It stays paid for, however the call ends. Grpc only
  // looks whether more than half is left.
  bool take_hedge(BudgetClaim& claim, Time now);
  // The latest hedge was not sent.
  void give_back_hedge(BudgetClaim& claim, Time now);
  // A hedge has ended, before its attempt.
  void end_hedge(BudgetClaim& claim);
  // After each attempt, before the next retry is taken for: none of its sends is under way.
  void end_attempt(BudgetClaim& claim);
  // The wait was cut short, and the retry that was taken for is not made.
  void cancel(BudgetClaim& claim, Time now);
  // The call is over, with an outcome of that class. A success gives back what the last retry cost,
  // but at least `refill`.
  void settle(BudgetClaim& claim, Class last, Time now);

  // For a budget that others take from, too, in thousandths. Of Ratio it leaves out what a window
  // always allows, and may be negative.
  [[nodiscard]] std::int64_t balance(Time now) const;
  void set_balance(std::int64_t thousandths, Time now);

  // In thousandths, of Concurrent of a send; empty without a budget.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;
  // The budget is as new: it may be replaced by a new one.
  [[nodiscard]] bool full(Time now) const;

  // Of Concurrent: calls, retries and hedges under way, and how many of these may be.
  [[nodiscard]] std::int64_t calls() const { return calls_; }
  [[nodiscard]] std::int64_t extras() const { return extras_; }
  [[nodiscard]] std::int64_t most_extras() const;

 private:
  static constexpr std::int64_t kPeriods = 10;  // the window of `ratio` slides in tenths
  struct Period {
    std::int64_t number = -1;  // -1: nothing was counted in it
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
  std::int64_t left_;  // tokens and grpc
  std::int64_t calls_ = 0;
  std::int64_t extras_ = 0;
  std::array<Period, static_cast<std::size_t>(kPeriods)> periods_{};  // ratio
};

// AWS's adaptive limit on sends. It is off until the server throttles for the first time, and then
// follows a cubic curve: down to 0.7 of the rate that was too much, quickly back to just below it,
// slowly past it, and then faster and faster.
class HTTPRETRY_API SendRate {
 public:
  explicit SendRate(Time start);

  // Zero: send now. Otherwise nothing was taken: ask again after that time.
  Duration acquire(Time now);
  // After each attempt, whatever its outcome, in the order of time.
  void update(Time now, bool throttled);

  [[nodiscard]] bool enabled() const { return enabled_; }
  [[nodiscard]] double rate() const { return fill_rate_; }          // sends a second
  [[nodiscard]] double measured() const { return measured_rate_; }  // sends a second
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
