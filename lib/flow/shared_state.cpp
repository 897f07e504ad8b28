#include <httpretry/flow/shared_state.hpp>

#include <algorithm>

namespace httpretry {

SendLimits::~SendLimits() = default;
RetryAccount::~RetryAccount() = default;
HedgeAccount::~HedgeAccount() = default;
SharedState::~SharedState() = default;

void SharedState::listen(const std::shared_ptr<const Listener>& listener) {
  const std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [](const auto& one) { return one.expired(); });
  listeners_.push_back(listener);
  others_.store(static_cast<int>(listeners_.size()) - 1, std::memory_order_relaxed);
}

void SharedState::tell_changed(Time now, const Listener* except) const {
  if (except != nullptr && others_.load(std::memory_order_relaxed) == 0) return;
  std::vector<std::shared_ptr<const Listener>> told;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& one : listeners_) {
      if (auto listener = one.lock(); listener && listener.get() != except) {
        told.push_back(std::move(listener));
      }
    }
  }
  for (const auto& listener : told) (*listener)(now);
}

}  // namespace httpretry
