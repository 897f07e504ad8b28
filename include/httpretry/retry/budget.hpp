// Budgets: how many retries a client may make on top of its requests.
//
// When a server is down, every call fails, every call retries, and with three retries each it gets
// four times the load at the moment it can bear least: a retry storm. A budget is shared by the
// calls to one place and stops that: once it is spent, failures are returned as they come, and
// successes fill it again.
//
//   tokens  (AWS)             a retry costs tokens; a success gives back
//   ratio   (Finagle, Envoy)  retries may add at most a share of the requests of the last seconds
//   grpc                      each failure takes a token, each success gives a part of one; retries
//                             are allowed while more than half is left
//
// These are plain state machines: no clock, no lock; whoever shares one locks it. Amounts are
// integers, in thousandths, so that nothing drifts.
//
// What a call takes is counted when it is decided, not when the retry is sent: a thousand calls
// that fail together must not all find the budget full while they wait.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <variant>

namespace httpretry {

// What one call holds of a budget. It is the call's memory of what was taken, so that nothing is
// given back twice: begin with a new one, hand the same one to every function, settle it once.
struct BudgetClaim {
  std::int64_t last = 0;    // taken for the latest retry
  std::int64_t period = 0;  // when: for RatioBudget
  bool settled = false;     // the call has ended; nothing more happens
};

class HTTPRETRY_API TokenBudget {
 public:
  explicit TokenBudget(const BudgetPolicy& policy);

  // What a retry costs after an outcome of that class.
  [[nodiscard]] std::int64_t cost(Class cls, bool timeout) const;
  // false, and nothing taken, where there is not enough.
  bool take(BudgetClaim& claim, std::int64_t cost);
  // The retry that was paid for is not made after all.
  void cancel(BudgetClaim& claim);
  // The call is over. A success gives back the last cost it took, or `refill` if it never retried.
  void settle(BudgetClaim& claim, bool success);
  [[nodiscard]] std::int64_t left() const { return left_; }
  [[nodiscard]] bool full() const { return left_ == policy_.capacity; }

 private:
  void give(std::int64_t amount);

  BudgetPolicy policy_;
  std::int64_t left_;
};

class HTTPRETRY_API RatioBudget {
 public:
  explicit RatioBudget(const BudgetPolicy& policy);

  // A call begins: it deposits its share.
  void request(Time now);
  bool take(BudgetClaim& claim, Time now);
  void cancel(BudgetClaim& claim, Time now);
  // What may still be taken: the floor, the deposits of the window, less what was taken in it.
  [[nodiscard]] std::int64_t left(Time now) const;
  // As new: nothing happened within the window.
  [[nodiscard]] bool full(Time now) const;

 private:
  static constexpr std::int64_t kPeriods = 10;  // the window slides in tenths
  struct Period {
    std::int64_t number = -1;
    std::int64_t sum = 0;
    bool used = false;
  };
  [[nodiscard]] std::int64_t period(Time now) const;
  [[nodiscard]] bool current(const Period& period, std::int64_t now) const;
  void add(std::int64_t amount, std::int64_t period);

  BudgetPolicy policy_;
  std::array<Period, static_cast<std::size_t>(kPeriods)> periods_{};
};

class HTTPRETRY_API GrpcBudget {
 public:
  explicit GrpcBudget(const BudgetPolicy& policy);

  // An attempt failed in a way that could be retried: one token less, down to 0. True where a retry
  // is allowed.
  bool failed();
  void succeeded();
  [[nodiscard]] std::int64_t left() const { return left_; }
  [[nodiscard]] bool full() const { return left_ == policy_.capacity; }

 private:
  BudgetPolicy policy_;
  std::int64_t left_;
};

// Any of them, or none: what a call asks. A store of these needs no more than a map from the scope
// (host, endpoint or policy) to a Budget with a lock, and drops those that are `full` first: a new
// one is the same.
class HTTPRETRY_API Budget {
 public:
  explicit Budget(const BudgetPolicy& policy);

  // Once a call, before its first attempt.
  void begin(Time now);
  // After `decide` said yes and before the wait; not for a poll. False: no retry, the call is over,
  // and the reason is budget_exhausted.
  bool take(BudgetClaim& claim, Class cls, bool timeout, Time now);
  // The wait was cut short and the retry is not made.
  void cancel(BudgetClaim& claim, Time now);
  // The call is over, with an outcome of that class; however often it is called, only the first
  // counts.
  void settle(BudgetClaim& claim, Class last, Time now);
  // In thousandths; empty without a budget.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;
  [[nodiscard]] bool full(Time now) const;

 private:
  std::variant<std::monostate, TokenBudget, RatioBudget, GrpcBudget> state_;
};

// AWS's adaptive limit on sends: off until the server throttles for the first time, then it follows
// a cubic curve: down to 0.7 of the rate that was too much, quickly back to just under it, slowly
// past it, and then faster and faster.
class HTTPRETRY_API SendRate {
 public:
  explicit SendRate(Time start);

  // Zero: go. Otherwise nothing was taken; wait that long and ask again.
  Duration acquire(Time now);
  // An attempt ended; of every outcome, in the order of time.
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
