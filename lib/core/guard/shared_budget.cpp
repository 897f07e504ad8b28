#include "lib/core/guard/detail/shared_budget.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace httpretry {

namespace {

// Returns this policy and the ones that it replaced step by step, the latest first.
std::vector<BudgetPolicy> versions_of(const BudgetPolicy& policy,
                                      std::span<const ChangedBudget> changes) {
  std::vector<BudgetPolicy> versions{policy};
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    const bool known = std::find(versions.begin(), versions.end(), change->after) != versions.end();
    if (known) versions.push_back(change->before);
  }
  return versions;
}

}  // namespace

std::shared_ptr<SharedBudget> Budgets::at(std::string_view key, const BudgetPolicy& policy,
                                          Time now, std::span<const ChangedBudget> changes) {
  auto& part = parts_[TextHash()(key) % kParts];
  const std::lock_guard lock(part.mutex);
  // Two policies for one host may have different budgets.
  const auto [first, last] = part.budgets.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    return entry.second.shared->budget.policy() == policy;
  });
  return found != last ? found->second.shared : make_budget(part, key, policy, now, changes);
}

// Makes the budget of a policy that has none yet: continues the budget of an earlier version,
// splits one that was changed, or starts a new one. Requires the part's mutex.
std::shared_ptr<SharedBudget> Budgets::make_budget(Part& part, std::string_view key,
                                                   const BudgetPolicy& policy, Time now,
                                                   std::span<const ChangedBudget> changes) {
  const auto versions = versions_of(policy, changes);
  const auto [first, last] = part.budgets.equal_range(key);
  for (const auto& version : versions) {
    for (auto one = first; one != last; ++one) {
      auto& shared = *one->second.shared;
      if (shared.budget.policy() != version) continue;
      one->second.before = std::make_unique<const BudgetPolicy>(version);
      const std::lock_guard lock(shared.mutex);
      shared.budget.change(policy, now);
      return one->second.shared;
    }
  }
  std::shared_ptr<SharedBudget> fresh;
  for (auto one = first; one != last && !fresh; ++one) {
    const auto& before = one->second.before;
    if (!before || std::find(versions.begin(), versions.end(), *before) == versions.end()) continue;
    const auto& shared = *one->second.shared;
    const std::lock_guard lock(shared.mutex);
    fresh = std::make_shared<SharedBudget>(shared.budget.split(policy, now), shared.rate, now);
  }
  if (!fresh) fresh = std::make_shared<SharedBudget>(policy, now);
  if (part.budgets.size() >= kMaxBudgets / kParts) drop_unused(part, now);
  return part.budgets.emplace(std::string(key), Entry{std::move(fresh), nullptr})->second.shared;
}

// Drops the unused budgets in their initial state, but at most half of the part. If there are none,
// drops only the least recently used budget, because its state is lost.
void Budgets::drop_unused(Part& part, Time now) {
  struct Unused {
    bool changed;  // its state differs from that of a new budget
    Time last_used;
    decltype(part.budgets)::iterator entry;
    bool operator<(const Unused& other) const {
      return std::tie(changed, last_used) < std::tie(other.changed, other.last_used);
    }
  };
  std::vector<Unused> unused;
  for (auto entry = part.budgets.begin(); entry != part.budgets.end(); ++entry) {
    const auto& shared = *entry->second.shared;
    if (entry->second.shared.use_count() > 1) continue;
    const std::lock_guard lock(shared.mutex);
    const bool as_new = shared.budget.full(now) && !shared.rate.enabled();
    unused.push_back({!as_new, shared.last_used, entry});
  }
  std::sort(unused.begin(), unused.end());
  const auto half = std::max(part.budgets.size() / 2, std::size_t{1});
  std::size_t dropped = 0;
  for (const auto& one : unused) {
    if (dropped == half || (dropped > 0 && one.changed)) break;
    part.budgets.erase(one.entry);
    ++dropped;
  }
}

}  // namespace httpretry
