// Admission: limits how many exchanges a client has in flight, in total and per origin, across all
// its loops. The others wait for a permit in FIFO order.
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

// The end of the chain if the client has limits. It waits for a permit, and then passes the
// exchange to the transport behind it. Thread-safe.
class Admission final : public Transport, private SendGate {
 public:
  // A limit of 0 means no limit. `transport` carries out the exchanges. If it is nullptr, the loop
  // of each call does.
  Admission(int in_all, int per_origin, Transport* transport);
  Task<Outcome> send(Request request, Call& call) override;

 private:
  class Permit;
  // Permits in the order of arrival. A permit allocates its own node, so moving it between queues
  // allocates nothing.
  using Queue = std::map<std::uint64_t, Permit*>;
  struct Origin {
    int taken = 0;  // permits that count against the limit per origin: in flight, or in `open_`
    Queue queue;    // permits that wait for this limit
  };
  using Origins = std::unordered_map<std::string, Origin, TextHash, std::equal_to<>>;
  // A place in a queue, and once it is granted, the right to run an exchange. The destructor gives
  // up either.
  class Permit final : public Event {
   public:
    Permit(Admission& admission, std::string_view origin);
    ~Permit() override;
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    [[nodiscard]] bool is_granted() const { return happened(); }

   private:
    friend class Admission;
    Admission& admission_;
    Origins::value_type* origin_ = nullptr;
    std::uint64_t arrival_ = 0;
  };

  // Grants permits after something of the limits may have become free. Requires the mutex.
  void admit(Origin& origin);
  QueuedBy would_hold(const Request& request, const Call& call) override;

  const int in_all_;
  const int per_origin_;
  Transport* const transport_;
  std::mutex mutex_;  // guards the rest
  std::uint64_t arrivals_ = 0;
  int in_flight_ = 0;
  Origins origins_;  // origins with a permit
  Queue open_;       // permits that wait only for the total limit
};

}  // namespace httpretry::detail
