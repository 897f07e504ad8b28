// RequestLog: the requests that a server received. Counts all of them and keeps the last `limit`.
#pragma once

#include <httpretry/testing/testing.hpp>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

namespace httpretry::faults {

class RequestLog {
 public:
  explicit RequestLog(std::size_t limit) : limit_(limit) {}

  void add(SeenRequest request);
  [[nodiscard]] std::vector<SeenRequest> all() const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] bool wait_for(std::size_t count, Duration limit) const;

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  mutable std::condition_variable added_;
  std::deque<SeenRequest> requests_;
  std::size_t count_ = 0;
};

}  // namespace httpretry::faults
