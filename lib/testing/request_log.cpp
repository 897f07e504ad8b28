#include <lib/testing/request_log.hpp>

#include <utility>

namespace httpretry::faults {

void RequestLog::add(SeenRequest request) {
  {
    const std::lock_guard lock(mutex_);
    ++count_;
    requests_.push_back(std::move(request));
    if (requests_.size() > limit_) requests_.pop_front();
  }
  added_.notify_all();
}

std::vector<SeenRequest> RequestLog::all() const {
  const std::lock_guard lock(mutex_);
  return {requests_.begin(), requests_.end()};
}

std::size_t RequestLog::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

bool RequestLog::wait_for(std::size_t count, Duration limit) const {
  const auto deadline = later(std::chrono::steady_clock::now(), limit);
  std::unique_lock lock(mutex_);
  return added_.wait_until(lock, deadline, [&] { return count_ >= count; });
}

}  // namespace httpretry::faults
