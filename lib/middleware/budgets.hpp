// The budgets and send rates of a client: one for each place that calls share, whatever loop they
// are on.
#pragma once

#include <httpretry/budget.hpp>

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

  const BudgetPolicy policy;
  std::mutex mutex;  // guards what follows
  Budget budget;
  SendRate rate;
  Time last_used{};
};

// One call's share in it. What the call took it gives back exactly once, however the call ends:
// this object's end, at the latest, settles it as a failure.
class BudgetUse {
 public:
  BudgetUse() = default;
  BudgetUse(std::shared_ptr<SharedBudget> shared, Time now);
  ~BudgetUse();
  BudgetUse(const BudgetUse&) = delete;
  BudgetUse& operator=(const BudgetUse&) = delete;

  // How long to wait before the next send.
  [[nodiscard]] Duration wait_for_rate(Time now);
  void heard(Time now, bool throttled);
  bool take(Class cls, bool timeout, Time now);
  void cancel(Time now);
  void settle(bool success, Time now);
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  std::shared_ptr<SharedBudget> shared_;
  BudgetClaim claim_;
  Time last_{};
};

// From a place's name to what its calls share. Bounded: of places that nobody uses, those whose
// budget is full go first, for a new one is the same.
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
