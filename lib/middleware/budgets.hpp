// The budgets and send rates of a client: one for each place that calls share, whatever loop they
// are on.
#pragma once

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/retry/budget.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace httpretry {

// What the calls to one place have in common.
struct SharedBudget {
  SharedBudget(const BudgetPolicy& policy_, Time now)
      : policy(policy_), budget(policy_), rate(now) {}
  // In whole tokens.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

  const BudgetPolicy policy;
  mutable std::mutex mutex;  // guards what follows
  Budget budget;
  SendRate rate;
  Time last_used{};
};

// One call's share in it, or in a budget of the user's own. What the call took it gives back
// exactly once, however the call ends: this object's end, at the latest, does it.
class BudgetUse {
 public:
  BudgetUse(std::shared_ptr<SharedBudget> shared, Time now);
  // Asks `own` instead of the shared budget; of that, the send rate still counts. Both must outlive
  // this.
  BudgetUse(std::shared_ptr<SharedBudget> shared, RetryBudget* own, const Request& request,
            Time now);
  ~BudgetUse();
  BudgetUse(const BudgetUse&) = delete;
  BudgetUse& operator=(const BudgetUse&) = delete;

  // How long to wait before the next send.
  [[nodiscard]] Duration wait_for_rate(Time now);
  void heard(Time now, bool throttled);
  bool take(const Classified& classified, Time now);
  // The retry that was paid for is on its way: from here on nothing of it comes back by `cancel`.
  void begin_attempt() { owed_ = false; }
  // The call ends in a wait.
  void cancel(Time now);
  void settle(Class last, Time now);
  // In whole tokens; empty without a budget, and for one of the user's own.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  std::shared_ptr<SharedBudget> shared_;
  RetryBudget* own_ = nullptr;
  const Request* request_ = nullptr;
  BudgetClaim claim_;
  Time last_;
  bool owed_ = false;  // paid for a retry that has not begun
  bool settled_ = false;
};

// From a place's name to what its calls share. Bounded: of places that nobody uses, those that are
// as new go first, for a new one is the same.
class Budgets {
 public:
  std::shared_ptr<SharedBudget> at(const std::string& place, const BudgetPolicy& policy, Time now);

  static constexpr std::size_t kMostPlaces = 4096;

 private:
  // Several maps, so that loops seldom meet at one lock.
  struct Part {
    std::mutex mutex;
    std::unordered_multimap<std::string, std::shared_ptr<SharedBudget>> places;
  };
  static constexpr std::size_t kParts = 16;
  static void make_room(Part& part, Time now);

  std::array<Part, kParts> parts_;
};

}  // namespace httpretry
