// RequestLog: the requests that a server received. Counts all of them and keeps the last `limit`.
#pragma once

#include <httpretry/testing/testing.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace httpretry::faults {

class RequestLog {
 public:
  explicit RequestLog(std::size_t limit) : limit_(limit) {}

  void add(SeenRequest request) {
    {
      const std::lock_guard lock(mutex_);
      ++count_;
      requests_.push_back(std::move(request));
      if (requests_.size() > limit_) requests_.pop_front();
    }
    added_.notify_all();
  }

  [[nodiscard]] std::vector<SeenRequest> all() const {
    const std::lock_guard lock(mutex_);
    return {requests_.begin(), requests_.end()};
  }

  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

  [[nodiscard]] bool wait_for(std::size_t count, Duration limit) const {
    const auto deadline = later(std::chrono::steady_clock::now(), limit);
    std::unique_lock lock(mutex_);
    return added_.wait_until(lock, deadline, [&] { return count_ >= count; });
  }

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  mutable std::condition_variable added_;
  std::deque<SeenRequest> requests_;
  std::size_t count_ = 0;
};

}  // namespace httpretry::faults
