#include "budgets.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

namespace httpretry {

namespace {

// With the lock.
std::optional<std::int64_t> whole_tokens(const Budget& budget, Time now) {
  const auto thousandths = budget.left(now);
  return thousandths ? std::optional(*thousandths / 1000) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> SharedBudget::left(Time now) const {
  const std::lock_guard lock(mutex);
  return whole_tokens(budget, now);
}

BudgetUse::BudgetUse(std::shared_ptr<SharedBudget> shared, bool adaptive, Time now,
                     RetryBudget* own, const Request* request)
    : shared_(std::move(shared)),
      own_(own),
      request_(request),
      last_(now),
      adaptive_(adaptive && shared_ != nullptr) {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->budget.begin(now);
  shared_->last_used = now;
}

BudgetUse::~BudgetUse() {
  try {
    cancel(last_);
  } catch (...) {  // thrown by the user's own budget; there is nobody to report it to
  }
}

Duration BudgetUse::begin_attempt(Time now) {
  Duration wait{};
  if (adaptive_) {
    const std::lock_guard lock(shared_->mutex);
    wait = shared_->rate.acquire(now);
  }
  if (wait == Duration::zero()) paid_ = false;
  return wait;
}

SharedLimits::Permit BudgetUse::end_attempt(const Classified& classified, Next next, Time now) {
  last_ = now;
  Permit permit;
  if (shared_) permit = end_shared(classified, next, now);
  if (own_ != nullptr) permit = {ask_own(classified, next, now), {}};
  paid_ = next == Next::Retry && permit.allowed;
  closed_ = next == Next::Stop || !permit.allowed;
  return permit;
}

SharedLimits::Permit BudgetUse::end_shared(const Classified& classified, Next next, Time now) {
  const std::lock_guard lock(shared_->mutex);
  auto& budget = shared_->budget;
  const auto cls = classified.cls;
  if (adaptive_) shared_->rate.update(now, cls == Class::Throttle);
  Permit permit;
  if (own_ != nullptr) return permit;
  if (next == Next::Retry) permit.allowed = budget.take(claim_, cls, classified.timeout, now);
  if (next == Next::Stop || !permit.allowed) budget.settle(claim_, cls, now);
  permit.left = whole_tokens(budget, now);
  return permit;
}

bool BudgetUse::ask_own(const Classified& classified, Next next, Time now) {
  const bool allowed = next != Next::Retry || own_->take(*request_, classified, now);
  if (next == Next::Stop || !allowed) {
    closed_ = true;  // also where `settle` throws
    own_->settle(*request_, classified.cls == Class::Success, now);
  }
  return allowed;
}

void BudgetUse::cancel(Time now) {
  if (std::exchange(closed_, true)) return;
  const bool give_back = std::exchange(paid_, false);
  if (own_ != nullptr) {
    if (give_back) own_->give_back(*request_, now);
    own_->settle(*request_, false, now);
  } else if (shared_) {
    const std::lock_guard lock(shared_->mutex);
    if (give_back) shared_->budget.cancel(claim_, now);
    shared_->budget.settle(claim_, Class::Permanent, now);
  }
}

std::optional<std::int64_t> BudgetUse::left(Time now) const {
  return shared_ && own_ == nullptr ? shared_->left(now) : std::nullopt;
}

std::shared_ptr<SharedBudget> Budgets::at(std::string_view key, const BudgetPolicy& policy,
                                          Time now) {
  auto& part = parts_[TextHash()(key) % kParts];
  const std::lock_guard lock(part.mutex);
  // Two policies for one host may have different budgets.
  const auto [first, last] = part.budgets.equal_range(key);
  const auto found = std::find_if(
      first, last, [&](const auto& entry) { return entry.second->budget.policy() == policy; });
  if (found != last) return found->second;
  if (part.budgets.size() >= kMaxBudgets / kParts) make_room(part, now);
  return part.budgets.emplace(std::string(key), std::make_shared<SharedBudget>(policy, now))
      ->second;
}

// Drops all unused budgets that are as new, but at most half of the part, so that this is seldom
// done. Of the others it drops at most one, the one used longest ago, since its state is lost.
void Budgets::make_room(Part& part, Time now) {
  struct Unused {
    bool changed;  // a new one would not be the same
    Time last_used;
    decltype(part.budgets)::iterator entry;
    bool operator<(const Unused& other) const {
      return std::tie(changed, last_used) < std::tie(other.changed, other.last_used);
    }
  };
  std::vector<Unused> unused;
  for (auto entry = part.budgets.begin(); entry != part.budgets.end(); ++entry) {
    const auto& shared = *entry->second;
    if (entry->second.use_count() > 1) continue;
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
