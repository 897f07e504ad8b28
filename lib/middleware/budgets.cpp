#include "budgets.hpp"

#include <algorithm>
#include <vector>

namespace httpretry {

BudgetUse::BudgetUse(std::shared_ptr<SharedBudget> shared, Time now)
    : shared_(std::move(shared)), last_(now) {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->budget.begin(now);
  shared_->last_used = now;
}

BudgetUse::~BudgetUse() { settle(false, last_); }

Duration BudgetUse::wait_for_rate(Time now) {
  if (!shared_) return {};
  const std::lock_guard lock(shared_->mutex);
  return shared_->rate.acquire(now);
}

void BudgetUse::heard(Time now, bool throttled) {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->rate.update(now, throttled);
}

bool BudgetUse::take(Class cls, bool timeout, Time now) {
  last_ = now;
  if (!shared_) return true;
  const std::lock_guard lock(shared_->mutex);
  return shared_->budget.take(claim_, cls, timeout, now);
}

void BudgetUse::cancel(Time now) {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->budget.cancel(claim_, now);
}

void BudgetUse::settle(bool success, Time now) {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->budget.settle(claim_, success, now);
}

std::optional<std::int64_t> BudgetUse::left(Time now) const {
  if (!shared_) return std::nullopt;
  const std::lock_guard lock(shared_->mutex);
  return shared_->budget.left(now);
}

std::shared_ptr<SharedBudget> Budgets::at(const std::string& place, const BudgetPolicy& policy,
                                          Time now) {
  auto& part = parts_[std::hash<std::string>()(place) % kParts];
  const std::lock_guard lock(part.mutex);
  // Two policies with budgets of their own may speak of one host.
  const auto [first, last] = part.places.equal_range(place);
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second->policy == policy; });
  if (found != last) return found->second;
  if (part.places.size() >= kMostPlaces / kParts) make_room(part, now);
  auto fresh = std::make_shared<SharedBudget>(policy, now);
  part.places.emplace(place, fresh);
  return fresh;
}

// Frees half of the part, so that this is seldom done.
void Budgets::make_room(Part& part, Time now) {
  using Place = decltype(part.places)::iterator;
  struct Candidate {
    bool in_debt;
    Time last_used;
    Place place;
  };
  std::vector<Candidate> unused;
  for (auto place = part.places.begin(); place != part.places.end(); ++place) {
    if (place->second.use_count() > 1) continue;
    const std::lock_guard lock(place->second->mutex);
    unused.push_back({!place->second->budget.full(now), place->second->last_used, place});
  }
  std::sort(unused.begin(), unused.end(), [](const Candidate& a, const Candidate& b) {
    return a.in_debt != b.in_debt ? b.in_debt : a.last_used < b.last_used;
  });
  const auto count = std::min(unused.size(), part.places.size() / 2);
  for (std::size_t i = 0; i < count; ++i) part.places.erase(unused[i].place);
}

}  // namespace httpretry
