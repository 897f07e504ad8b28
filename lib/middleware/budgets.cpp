#include "budgets.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace httpretry {

std::optional<std::int64_t> SharedBudget::left(Time now) const {
  const std::lock_guard lock(mutex);
  const auto thousandths = budget.left(now);
  return thousandths ? std::optional(*thousandths / 1000) : std::nullopt;
}

BudgetUse::BudgetUse(std::shared_ptr<SharedBudget> shared, Time now)
    : shared_(std::move(shared)), last_(now) {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->budget.begin(now);
  shared_->last_used = now;
}

BudgetUse::BudgetUse(std::shared_ptr<SharedBudget> shared, RetryBudget* own, const Request& request,
                     Time now)
    : BudgetUse(std::move(shared), now) {
  own_ = own;
  request_ = &request;
}

BudgetUse::~BudgetUse() {
  try {
    cancel(last_);
  } catch (...) {  // from a budget of the user's: the call has ended and hears of nothing any more
  }
}

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

bool BudgetUse::take(const Classified& classified, Time now) {
  last_ = now;
  if (own_ != nullptr) {
    owed_ = own_->take(*request_, classified, now);
  } else if (shared_) {
    const std::lock_guard lock(shared_->mutex);
    owed_ = shared_->budget.take(claim_, classified.cls, classified.timeout, now);
  } else {
    owed_ = true;
  }
  return owed_;
}

void BudgetUse::cancel(Time now) {
  if (std::exchange(owed_, false)) {
    if (own_ != nullptr) {
      own_->give_back(*request_, now);
    } else if (shared_) {
      const std::lock_guard lock(shared_->mutex);
      shared_->budget.cancel(claim_, now);
    }
  }
  settle(Class::Permanent, now);
}

void BudgetUse::settle(Class last, Time now) {
  if (std::exchange(settled_, true)) return;
  owed_ = false;
  if (own_ != nullptr) return own_->settle(*request_, last == Class::Success, now);
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->budget.settle(claim_, last, now);
}

std::optional<std::int64_t> BudgetUse::left(Time now) const {
  return shared_ && own_ == nullptr ? shared_->left(now) : std::nullopt;
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

// Frees up to half of the part, so that this is seldom done; of places that are not as new, no more
// than one, for what they know is lost.
void Budgets::make_room(Part& part, Time now) {
  using Place = decltype(part.places)::iterator;
  struct Candidate {
    bool as_new;
    Time last_used;
    Place place;
  };
  std::vector<Candidate> unused;
  for (auto place = part.places.begin(); place != part.places.end(); ++place) {
    auto& shared = *place->second;
    if (place->second.use_count() > 1) continue;
    const std::lock_guard lock(shared.mutex);
    const bool as_new = shared.budget.full(now) && !shared.rate.enabled();
    unused.push_back({as_new, shared.last_used, place});
  }
  std::sort(unused.begin(), unused.end(), [](const Candidate& a, const Candidate& b) {
    return a.as_new != b.as_new ? a.as_new : a.last_used < b.last_used;
  });
  const auto as_new =
      std::count_if(unused.begin(), unused.end(), [](const Candidate& one) { return one.as_new; });
  const auto most = std::clamp(static_cast<std::size_t>(as_new), std::size_t{1},
                               std::max(part.places.size() / 2, std::size_t{1}));
  unused.resize(std::min(unused.size(), most));
  for (const auto& one : unused) part.places.erase(one.place);
}

}  // namespace httpretry
