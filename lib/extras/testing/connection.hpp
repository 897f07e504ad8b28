// Serves the connections of a FaultServer. Each connection has its own thread.
#pragma once

#include <httpretry/testing/testing.hpp>
#include <lib/core/base/descriptor.hpp>
#include <lib/extras/testing/certificates.hpp>
#include <lib/extras/testing/step_queue.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>

namespace httpretry::faults {

// The state that all connections of a server share.
struct Shared {
  Shared(Scenario scenario, const FaultServerOptions& chosen);

  void record(const SeenRequest& request) {
    if (options.on_request) options.on_request(request);
    const std::lock_guard lock(mutex);
    ++count;
    seen.push_back(request);
    if (seen.size() > options.max_seen) seen.pop_front();
    recorded.notify_all();
  }

  const FaultServerOptions options;
  StepQueue steps;
  const bool speaks_http2;
  std::optional<Certificates> certificates;

  std::mutex mutex;  // guards the rest
  std::condition_variable recorded;
  std::deque<SeenRequest> seen;  // the latest `max_seen` requests
  std::size_t count = 0;         // of all requests
};

// Serves the connection until it ends. `stop_fd` becomes readable when the server stops.
void serve_connection(Shared& shared, std::uint64_t number, Descriptor socket, int stop_fd);

}  // namespace httpretry::faults
