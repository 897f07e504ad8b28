// Outages tracks the hosts to which no send has succeeded since a call began to retry there. It is
// a plain state machine without clock or lock. DownHosts states the rule.
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
  // The number of calls that retry on behalf of all. If no call is on the wire, up to this many may
  // begin although a host fails, so that single failures do not hold back other calls.
  static constexpr std::size_t kScouts = 3;

  // The event that a call waits for.
  class Change final : public httpretry::detail::Event {
   public:
    using Event::happen;
  };

  void send_began(std::string_view host);
  void send_ended(std::string_view host);
  // Notes that a send to the host has succeeded. Returns true if `down(host)` may have changed.
  bool succeeded(std::string_view host);
  // Notes that a send has failed and that the call will retry it.
  void will_retry(std::string_view host, const Flight& call);
  // Notes that a call has ended. `gave_up`: it ended because the host failed. Returns true if
  // `down(host)` may have changed.
  bool ended(std::string_view host, const Flight& call, bool gave_up);

  // Returns whether a call gave up and no send has succeeded since.
  [[nodiscard]] bool down(std::string_view host) const;
  // Returns null if the call may send now. Otherwise other calls retry on its behalf, and it must
  // wait for the change that is returned.
  [[nodiscard]] std::shared_ptr<const Change> others_retry(std::string_view host,
                                                           const Flight& call) const;
  // Returns the hosts at which no other call may begin.
  [[nodiscard]] std::vector<std::string> blocked_hosts() const;

 private:
  struct Host {
    std::size_t sends = 0;                // on the wire
    std::vector<const Flight*> in_retry;  // since the last success, in order
    bool down = false;
    std::shared_ptr<Change> change;  // happens at the end of the outage
  };
  using Hosts = std::map<std::string, Host, std::less<>>;

  static void end_outage(Host& host);
  void forget_if_idle(Hosts::iterator host);

  Hosts hosts_;
};

}  // namespace httpretry::batch
