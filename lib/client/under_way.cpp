#include "under_way.hpp"

namespace httpretry::detail {

UnderWay::Ticket UnderWay::begin_call() {
  if ((state_.fetch_add(kOne, std::memory_order_acq_rel) & kDrains) == 0) return Ticket(this);
  leave();
  return nullptr;
}

UnderWay::Ticket UnderWay::begin_work() {
  state_.fetch_add(kOne, std::memory_order_acq_rel);
  return Ticket(this);
}

void UnderWay::leave() noexcept {
  if (state_.fetch_sub(kOne, std::memory_order_acq_rel) == kOne + kDrains) {
    nothing_left_.request_stop();
  }
}

void UnderWay::drain() {
  if (state_.fetch_or(kDrains, std::memory_order_acq_rel) < kOne) nothing_left_.request_stop();
}

void UnderWay::count(const Outcome& outcome) {
  const bool canceled = !outcome && outcome.error().code == Errc::Canceled;
  auto& counter = canceled ? canceled_ : succeeded(outcome) ? succeeded_ : failed_;
  counter.fetch_add(1, std::memory_order_relaxed);
}

DrainResult UnderWay::result() const {
  DrainResult result;
  result.succeeded = succeeded_.load(std::memory_order_relaxed);
  result.failed = failed_.load(std::memory_order_relaxed);
  result.canceled = canceled_.load(std::memory_order_relaxed);
  return result;
}

}  // namespace httpretry::detail
