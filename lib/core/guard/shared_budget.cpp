#include "lib/core/guard/detail/shared_budget.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace httpretry {

namespace {

// Returns this policy and the ones that it replaced step by step, the latest first. `changes` are
// those of the policy file, the latest last.
std::vector<BudgetPolicy> versions_of(const BudgetPolicy& policy,
                                      std::span<const ChangedBudget> changes) {
  std::vector<BudgetPolicy> versions{policy};
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    const bool led_here = std::ranges::find(versions, change->after) != versions.end();
    if (led_here) versions.push_back(change->before);
  }
  return versions;
}

}  // namespace

// Returns the budget of the key (such as a host) and the policy, and makes it if necessary.
// `changes` are the budgets that changed when a policy file was read again: a new budget may
// continue that of the policy's earlier version.
std::shared_ptr<SharedBudget> Budgets::at(std::string_view key, const BudgetPolicy& policy,
                                          Time now, std::span<const ChangedBudget> changes) {
  // The map is divided into parts, each with its own mutex, so that threads rarely wait for it.
  auto& part = parts_[TextHash()(key) % kParts];
  const std::lock_guard lock(part.mutex);
  // Two policies for one host may have different budgets.
  const auto [first, last] = part.budgets.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& entry) {
    return entry.second.shared->budget.policy() == policy;
  });
  return found != last ? found->second.shared : make_budget(part, key, policy, now, changes);
}

// Adds the budget of `policy` for the key (a host, an endpoint or a policy), which has none with
// these numbers yet. If the policy file was edited, the budget of the policy's earlier version
// continues with the new numbers. If another policy has already taken that budget over, a separate
// budget begins with the same share of its tokens left. Otherwise a new budget begins in its
// initial state. Requires the part's mutex.
std::shared_ptr<SharedBudget> Budgets::make_budget(Part& part, std::string_view key,
                                                   const BudgetPolicy& policy, Time now,
                                                   std::span<const ChangedBudget> changes) {
  const auto versions = versions_of(policy, changes);  // of `policy`, the latest first
  const auto [first, last] = part.budgets.equal_range(key);
  for (const auto& version : versions) {  // looks for the budget of an earlier version
    for (auto entry = first; entry != last; ++entry) {
      auto& shared = *entry->second.shared;
      if (shared.budget.policy() != version) continue;
      entry->second.replaced = std::make_unique<const BudgetPolicy>(version);
      const std::lock_guard lock(shared.mutex);
      shared.budget.change(policy, now);
      return entry->second.shared;
    }
  }
  std::shared_ptr<SharedBudget> new_budget;
  // Looks for a budget that has replaced a version of `policy` by another policy.
  for (auto entry = first; entry != last && !new_budget; ++entry) {
    const auto* const replaced = entry->second.replaced.get();
    if (!replaced || std::ranges::find(versions, *replaced) == versions.end()) continue;
    const auto& shared = *entry->second.shared;
    const std::lock_guard lock(shared.mutex);
    new_budget = std::make_shared<SharedBudget>(shared.budget.split(policy, now), shared.rate, now);
  }
  if (!new_budget) new_budget = std::make_shared<SharedBudget>(policy, now);
  if (part.budgets.size() >= kMaxBudgets / kParts) drop_unused(part, now);
  Entry entry{.shared = std::move(new_budget), .replaced = nullptr};
  return part.budgets.emplace(std::string(key), std::move(entry))->second.shared;
}

// Makes room in a part of the map that is full. Drops the budgets that no call uses and that are in
// their initial state, because that loses nothing, but at most half of the part. If there are none,
// drops only the least recently used of the other budgets that no call uses: its state is lost.
void Budgets::drop_unused(Part& part, Time now) {
  struct Unused {
    bool changed;  // its state differs from that of a new budget, so it should be kept
    Time last_used;
    decltype(part.budgets)::iterator entry;
  };
  std::vector<Unused> unused;
  for (auto entry = part.budgets.begin(); entry != part.budgets.end(); ++entry) {
    const auto& shared = *entry->second.shared;
    if (entry->second.shared.use_count() > 1) continue;  // a call uses it
    const std::lock_guard lock(shared.mutex);
    // `rate` is enabled once the server has throttled. The rate of a new budget is not.
    const bool changed = !shared.budget.full(now) || shared.rate.enabled();
    unused.push_back({.changed = changed, .last_used = shared.last_used, .entry = entry});
  }
  // The unchanged ones come first, and among these and among the others the least recently used.
  std::ranges::sort(unused, {},
                    [](const Unused& one) { return std::pair(one.changed, one.last_used); });
  const auto half = std::max(part.budgets.size() / 2, std::size_t{1});
  std::size_t dropped = 0;
  for (const auto& budget : unused) {
    if (dropped == half || (dropped > 0 && budget.changed)) break;
    part.budgets.erase(budget.entry);
    ++dropped;
  }
}

}  // namespace httpretry
