#pragma once

#include <httpretry/export.hpp>

#include <httpretry/middleware/retry.hpp>

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace httpretry::batch {

// DownHosts is the set of hosts that are down. It is thread-safe. It gives a Runner a rule for
// outages: once a call
// begins to retry at a host, no other call to that host begins until a send succeeds. Only a few of
// the calls in flight retry. If one of them gives up, the host is down: each call to it gets one
// send, until a send succeeds.
//
//   const auto down = std::make_shared<DownHosts>();
//   RetryOptions retrying;
//   retrying.budget = down;
//   RunnerOptions options;
//   options.down_hosts = down;
//
// As the budget of the middleware `retry`, it refuses retries at hosts that are down and allows all
// others.
class HTTPRETRY_API DownHosts final : public RetryBudget {
 public:
  ~DownHosts() override;
  // Returns false if the host of the request is down.
  bool take(const Request& request, const Classified& classified, Time now) override;
  void give_back(const Request& /*request*/, Time /*now*/) override {}
  void settle(const Request& /*request*/, bool /*success*/, Time /*now*/) override {}

  // Adds or removes a host, named by its origin: "https://api.example.com". Used by the Runner.
  void set(std::string_view host, bool down);

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> hosts_;
};

}  // namespace httpretry::batch
