#include "lib/core/base/random.hpp"

#include <httpretry/guard/shared_state.hpp>

#include <algorithm>

namespace httpretry {

SendLimits::~SendLimits() = default;
HedgeAccount::~HedgeAccount() = default;
SharedState::~SharedState() = default;

SharedState::SharedState() : salt_(random_bits()) {}

std::shared_ptr<RetryAccount> SharedState::account_after(std::span<const ChangedBudget> /*changes*/,
                                                         const std::string& key,
                                                         const BudgetPolicy& policy, Time now) {
  return account(key, policy, now);
}

SharedStateChange SharedState::last_change() const {
  const std::lock_guard lock(mutex_);
  return last_change_;
}

void SharedState::set_last_change(SharedStateChange change) {
  const std::lock_guard lock(mutex_);
  change.number = last_change_.number + 1;
  last_change_ = std::move(change);
  changes_.store(last_change_.number, std::memory_order_relaxed);
}

void SharedState::listen(const std::shared_ptr<const Listener>& listener) {
  const std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
  listeners_.push_back(listener);
}

// Calls the listeners after the mutex is released, because they may use this object.
void SharedState::tell_changed(Time now, const Listener* except) const {
  std::vector<std::shared_ptr<const Listener>> listeners;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : listeners_) {
      if (auto listener = one.lock(); listener && listener.get() != except) {
        listeners.push_back(std::move(listener));
      }
    }
  }
  for (const auto& listener : listeners) (*listener)(now);
}

}  // namespace httpretry
