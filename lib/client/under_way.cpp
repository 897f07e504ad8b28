#include "under_way.hpp"

namespace httpretry::detail {

UnderWay::Ticket UnderWay::begin(bool always) {
  const std::lock_guard lock(mutex_);
  if (drains_ && !always) return nullptr;
  ++count_;
  return Ticket(this);
}

void UnderWay::leave() noexcept {
  std::unique_lock lock(mutex_);
  const bool none_left = --count_ == 0 && drains_;
  lock.unlock();  // what waits for this may go on at once
  if (none_left) nothing_left_.request_stop();
}

void UnderWay::drain() {
  std::unique_lock lock(mutex_);
  drains_ = true;
  const bool none_left = count_ == 0;
  lock.unlock();
  if (none_left) nothing_left_.request_stop();
}

bool UnderWay::drains() const {
  const std::lock_guard lock(mutex_);
  return drains_;
}

void UnderWay::ended(const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  if (!drains_) return;
  const bool canceled = !outcome && outcome.error().code == Errc::Canceled;
  ++(canceled ? result_.canceled : succeeded(outcome) ? result_.succeeded : result_.failed);
}

DrainResult UnderWay::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

}  // namespace httpretry::detail
