// Lease: until when a worker may count on having a job. The server decides; a worker that has not
// been told for half a lease sends nothing more of the job.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/http/time.hpp>

#include <atomic>
#include <memory>

namespace httpretry::queue {

// Safe to use from many threads at once.
class Lease {
 public:
  // Asked for at `began`, and granted.
  Lease(Time began, Duration length) : half_(length / 2), renewed_(began) {}

  void renew(Time began) { renewed_ = began; }
  // Another worker has the job.
  void lose() { lost_ = true; }
  [[nodiscard]] bool allows_sends(Time now) const {
    return !lost_ && now - renewed_.load() < half_;
  }

  // Between two sends; then the job does not count for StoreOptions::parallel.
  void set_idle(bool idle) { idle_ = idle; }
  [[nodiscard]] bool idle() const { return idle_; }

 private:
  const Duration half_;
  std::atomic<Time> renewed_;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> idle_ = false;
};

// In the context of a request.
struct LeaseOfCall {
  std::shared_ptr<Lease> lease;
};

// Refuses sends that the lease does not allow: the call is canceled. Each call must have a lease.
[[nodiscard]] MiddlewarePtr leased_sends();

}  // namespace httpretry::queue
