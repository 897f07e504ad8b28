// Outages: the hosts to which no send has succeeded since a call began to retry there. A plain
// state machine, without clock and lock; DownHosts has the rule.
#pragma once

#include <httpretry/flow/detail/shared_work.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::batch {

struct Flight;

class Outages {
 public:
  // The number of calls that retry for all. If no call is on the wire, that many may begin before a
  // host counts as failing, so that single failures do not keep the others from being sent.
  static constexpr std::size_t kScouts = 3;

  // The event that a call waits for.
  class Change final : public detail::Event {
   public:
    using Event::happen;
  };

  void send_began(std::string_view host);
  void send_ended(std::string_view host);
  // Reports the result of a send. Returns true if `down(host)` may have changed.
  bool succeeded(std::string_view host);
  void will_retry(std::string_view host, const Flight& call);
  // A call to the host has ended. `gave_up`: because the host failed. Returns as above.
  bool ended(std::string_view host, const Flight& call, bool gave_up);

  // After a call gave up, until a send succeeds.
  [[nodiscard]] bool down(std::string_view host) const;
  // Empty: the call may send now. Otherwise others retry for it, until this happens.
  [[nodiscard]] std::shared_ptr<const Change> others_retry(std::string_view host,
                                                           const Flight& call) const;
  // Returns the hosts at which no other call may begin.
  [[nodiscard]] std::vector<std::string> left_alone() const;

 private:
  struct Host {
    std::size_t sends = 0;                // on the wire
    std::vector<const Flight*> in_retry;  // since the last success, the first first
    bool down = false;
    std::shared_ptr<Change> change;
  };
  using Hosts = std::map<std::string, Host, std::less<>>;

  static void end_outage(Host& host);
  void forget_if_idle(Hosts::iterator host);

  Hosts hosts_;
};

}  // namespace httpretry::batch
