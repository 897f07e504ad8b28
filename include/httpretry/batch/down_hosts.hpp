// DownHosts: the hosts of a run that do not respond as they should. With it a Runner has a rule for
// outages: while no send to a host has succeeded since a call began to retry there, no other call
// to it begins, and a few calls retry for all. If one of these gives up, the host is down: each
// call to it gets one send, until a send succeeds.
//
//   const auto down = std::make_shared<DownHosts>();
//   RetryOptions retrying;
//   retrying.budget = down;
//   RunnerOptions options;
//   options.down_hosts = down;
//
// As the budget of the middleware `retry` it forbids retries to hosts that are down, and no others.
#pragma once

#include <httpretry/middleware/retry.hpp>

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace httpretry::batch {

class HTTPRETRY_API DownHosts final : public RetryBudget {
 public:
  ~DownHosts() override;
  // False if the host of the request is down.
  bool take(const Request& request, const Classified& classified, Time now) override;
  void give_back(const Request& /*request*/, Time /*now*/) override {}
  void settle(const Request& /*request*/, bool /*success*/, Time /*now*/) override {}

  // `host`: "https://api.example.com". Used by the Runner.
  void set(std::string_view host, bool down);

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> hosts_;
};

}  // namespace httpretry::batch
