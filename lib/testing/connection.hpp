// Serves the connections of a server, each on a thread of its own.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/http/descriptor.hpp>
#include <lib/testing/certificates.hpp>
#include <lib/testing/step_queue.hpp>

#include <condition_variable>
#include <deque>

namespace httpretry::faults {

// The requests that a server received. Counts all of them and keeps the last `limit`.
class RequestLog {
 public:
  explicit RequestLog(std::size_t limit) : limit_(limit) {}

  void add(const SeenRequest& request) {
    const std::lock_guard lock(mutex_);
    ++count_;
    requests_.push_back(request);
    if (requests_.size() > limit_) requests_.pop_front();
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

// What all connections of a server share. Each member is safe to use on several threads.
struct Shared {
  Shared(Scenario scenario, const FaultServerOptions& chosen);

  void record(const SeenRequest& request) {
    if (options.on_request) options.on_request(request);
    log.add(request);
  }

  const FaultServerOptions options;
  StepQueue steps;
  const bool speaks_http2;
  RequestLog log;
  std::optional<Certificates> certificates;
};

// Serves the connection until it ends. `stop_fd` becomes readable when the server stops.
void serve_connection(Shared& shared, std::uint64_t number, Descriptor socket, int stop_fd);

}  // namespace httpretry::faults
