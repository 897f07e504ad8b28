#include "lib/policy/changed_budgets.hpp"

#include "lib/policy/policy_set_data.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace httpretry::policy_file {
namespace {

constexpr std::size_t kMostChanges = 100;

using PoliciesByName = std::unordered_map<std::string_view, const RetryPolicy*>;

PoliciesByName named_policies(const PolicySet& set) {
  PoliciesByName policies;
  for (const auto& one : set.data().policies) policies.emplace(one.name, one.policy.get());
  return policies;
}

PoliciesByName policies_of_entries(const PolicySet& set) {
  PoliciesByName policies;
  for (const auto& one : set.data().entries) {
    policies.emplace(one.resolved.identity, one.resolved.policy.get());
  }
  return policies;
}

class Changes {
 public:
  explicit Changes(std::vector<ChangedBudget>& all) : all_(all), known_(all.size()) {}

  void compare(const PoliciesByName& before, const PoliciesByName& after) {
    for (const auto& [name, policy] : after) {
      if (const auto found = before.find(name); found != before.end()) {
        compare(*found->second, *policy);
      }
    }
  }
  void compare(const RetryPolicy& before, const RetryPolicy& after) {
    const auto& old = before.budget;
    const auto& now = after.budget;
    if (old == now || old.kind != now.kind || old.scope != now.scope) return;
    const ChangedBudget change(old, now);
    const auto first = all_.begin() + static_cast<std::ptrdiff_t>(known_);
    if (all_.size() - known_ == kMostChanges ||
        std::find(first, all_.end(), change) != all_.end()) {
      return;
    }
    all_.push_back(change);
  }

 private:
  std::vector<ChangedBudget>& all_;
  const std::size_t known_;  // of those before
};

}  // namespace

void add_changed_budgets(std::vector<ChangedBudget>& changes, const PolicySet& before,
                         const PolicySet& after) {
  Changes added(changes);
  added.compare(*before.data().fallback.policy, *after.data().fallback.policy);
  added.compare(named_policies(before), named_policies(after));
  added.compare(policies_of_entries(before), policies_of_entries(after));
  if (changes.size() > kMostChanges) {
    changes.erase(changes.begin(), changes.end() - kMostChanges);
  }
}

}  // namespace httpretry::policy_file
