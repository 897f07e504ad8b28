#include "budgets.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace httpretry {

void SharedBudget::begin_call(Time now) {
  const std::lock_guard lock(mutex_);
  budget_.begin(now);
  last_used_ = now;
}

Duration SharedBudget::acquire_send(Time now) {
  const std::lock_guard lock(mutex_);
  return rate_.acquire(now);
}

void SharedBudget::update_rate(bool throttled, Time now) {
  const std::lock_guard lock(mutex_);
  rate_.update(now, throttled);
}

SharedLimits::Permit SharedBudget::end_attempt(BudgetClaim& claim, Class cls, bool timeout,
                                               SharedLimits::Next next, Time now) {
  const std::lock_guard lock(mutex_);
  SharedLimits::Permit permit;
  if (next == SharedLimits::Next::Retry) permit.allowed = budget_.take(claim, cls, timeout, now);
  if (next == SharedLimits::Next::Stop || !permit.allowed) budget_.settle(claim, cls, now);
  permit.left = whole_tokens(now);
  return permit;
}

void SharedBudget::cancel(BudgetClaim& claim, bool give_back, Time now) {
  const std::lock_guard lock(mutex_);
  if (give_back) budget_.cancel(claim, now);
  budget_.settle(claim, Class::Permanent, now);
}

std::optional<std::int64_t> SharedBudget::left(Time now) const {
  const std::lock_guard lock(mutex_);
  return whole_tokens(now);
}

std::optional<std::int64_t> SharedBudget::whole_tokens(Time now) const {
  const auto thousandths = budget_.left(now);
  return thousandths ? std::optional(*thousandths / 1000) : std::nullopt;
}

SharedBudget::Usage SharedBudget::usage(Time now) const {
  const std::lock_guard lock(mutex_);
  return {budget_.full(now) && !rate_.enabled(), last_used_};
}

BudgetUse::BudgetUse(std::shared_ptr<SharedBudget> shared, bool adaptive, Time now,
                     RetryBudget* own, const Request* request)
    : shared_(std::move(shared)),
      own_(own),
      request_(request),
      last_(now),
      adaptive_(adaptive && shared_ != nullptr) {
  if (shared_) shared_->begin_call(now);
}

BudgetUse::~BudgetUse() {
  try {
    cancel(last_);
  } catch (...) {  // thrown by the user's own budget; there is nobody to report it to
  }
}

Duration BudgetUse::begin_attempt(Time now) {
  const auto wait = adaptive_ ? shared_->acquire_send(now) : Duration::zero();
  if (wait == Duration::zero()) paid_ = false;
  return wait;
}

SharedLimits::Permit BudgetUse::end_attempt(const Classified& classified, Next next, Time now) {
  last_ = now;
  if (adaptive_) shared_->update_rate(classified.cls == Class::Throttle, now);
  Permit permit;
  if (own_ != nullptr) {
    permit.allowed = ask_own(classified, next, now);
  } else if (shared_) {
    permit = shared_->end_attempt(claim_, classified.cls, classified.timeout, next, now);
  }
  paid_ = next == Next::Retry && permit.allowed;
  closed_ = next == Next::Stop || !permit.allowed;
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
    shared_->cancel(claim_, give_back, now);
  }
}

std::optional<std::int64_t> BudgetUse::left(Time now) const {
  return shared_ && own_ == nullptr ? shared_->left(now) : std::nullopt;
}

std::shared_ptr<SharedBudget> Budgets::at(const std::string& key, const BudgetPolicy& policy,
                                          Time now) {
  auto& part = parts_[std::hash<std::string>()(key) % kParts];
  const std::lock_guard lock(part.mutex);
  // Two policies for one host may have different budgets.
  const auto [first, last] = part.budgets.equal_range(key);
  const auto found = std::find_if(
      first, last, [&](const auto& entry) { return entry.second->policy() == policy; });
  if (found != last) return found->second;
  if (part.budgets.size() >= kMaxBudgets / kParts) make_room(part, now);
  return part.budgets.emplace(key, std::make_shared<SharedBudget>(policy, now))->second;
}

// Drops all unused budgets that are as new, but at most half of the part, so that this is seldom
// done. Of the others it drops at most one, the one used longest ago, since its state is lost.
void Budgets::make_room(Part& part, Time now) {
  struct Unused {
    SharedBudget::Usage usage;
    decltype(part.budgets)::iterator entry;
  };
  std::vector<Unused> unused;
  for (auto entry = part.budgets.begin(); entry != part.budgets.end(); ++entry) {
    if (entry->second.use_count() == 1) unused.push_back({entry->second->usage(now), entry});
  }
  std::sort(unused.begin(), unused.end(), [](const Unused& a, const Unused& b) {
    if (a.usage.as_new != b.usage.as_new) return a.usage.as_new;
    return a.usage.last_used < b.usage.last_used;
  });
  const auto half = std::max(part.budgets.size() / 2, std::size_t{1});
  std::size_t dropped = 0;
  for (const auto& one : unused) {
    if (dropped == half || (dropped > 0 && !one.usage.as_new)) break;
    part.budgets.erase(one.entry);
    ++dropped;
  }
}

}  // namespace httpretry
