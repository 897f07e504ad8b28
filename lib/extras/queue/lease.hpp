// Lease is the time for which a job belongs to a worker. The server decides when it ends. A worker
// whose lease was not renewed for half of its length stops sending the job.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/http/time.hpp>

#include <atomic>
#include <memory>

namespace httpretry::queue {

// Thread-safe.
class Lease {
 public:
  // A lease counts from the time at which the worker requested it, `began`.
  Lease(Time began, Duration length) : half_(length / 2), renewed_(began) {}

  void renew(Time began) { renewed_ = began; }
  // Notes that another worker has the job.
  void lose() { lost_ = true; }
  [[nodiscard]] bool allows_sends(Time now) const {
    return !lost_ && now - renewed_.load() < half_;
  }

  // A job is idle between two sends. It does not count toward StoreOptions::parallel then.
  void set_idle(bool idle) { idle_ = idle; }
  [[nodiscard]] bool idle() const { return idle_; }

 private:
  const Duration half_;
  std::atomic<Time> renewed_;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> idle_ = false;
};

// The lease of a job, in the context of its request.
struct LeaseOfCall {
  std::shared_ptr<Lease> lease;
};

// Returns a middleware that refuses the sends that the lease does not allow, with Errc::Canceled.
// Each call must have a lease.
[[nodiscard]] MiddlewarePtr leased_sends();

}  // namespace httpretry::queue
