// Admission: limits how many exchanges run at once, in all and with each origin, over all the loops
// of a client. More wait for a permit, first come first served.
#pragma once

#include "lib/core/base/text.hpp"
#include "lib/core/chain/current_attempt.hpp"

#include <httpretry/chain/shared.hpp>
#include <httpretry/chain/transport.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace httpretry::detail {

// The end of the chain where there are limits. It waits for a permit, then hands the exchange to
// the transport behind it.
class Admission final : public Transport, private SendGate {
 public:
  // 0: no limit. `transport` carries the exchanges; nullptr: that of the loop that the call is on.
  Admission(int in_all, int per_origin, Transport* transport);
  Task<Outcome> send(Request request, Call& call) override;

 private:
  class Permit;
  // By arrival. Each permit brings its node, so that nothing but entering takes memory.
  using Queue = std::map<std::uint64_t, Permit*>;
  struct Origin {
    int taken = 0;  // of its limit: by those that run and those in `open_`
    Queue queue;    // those that wait for its limit
  };
  using Origins = std::unordered_map<std::string, Origin, TextHash, std::equal_to<>>;
  // The right to run an exchange, or a place in a queue for it, for as long as this lives. It
  // happens when the right is given.
  class Permit final : public Event {
   public:
    Permit(Admission& admission, std::string_view origin);
    ~Permit() override;
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    friend class Admission;
    Admission& admission_;
    Origins::value_type* origin_ = nullptr;
    std::uint64_t arrival_ = 0;
  };

  // With the mutex held.
  void admit(Origin& origin);
  QueuedBy would_hold(const Request& request, const Call& call) override;

  const int in_all_;
  const int per_origin_;
  Transport* const transport_;
  std::mutex mutex_;  // guards the rest
  std::uint64_t arrivals_ = 0;
  int in_flight_ = 0;
  Origins origins_;  // only those in use
  Queue open_;       // those that wait only for the limit in all
};

}  // namespace httpretry::detail
