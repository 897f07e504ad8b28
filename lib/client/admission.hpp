// Admission: limits how many exchanges run at once, in all and with each origin, over all the loops
// of a client. More wait for a permit, first come first served.
#pragma once

#include <httpretry/flow/shared.hpp>
#include <httpretry/flow/transport.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace httpretry::detail {

// The end of the chain where there are limits. It waits for a permit, then hands the exchange to
// the transport behind it.
class Admission final : public Transport {
 public:
  // 0: no limit. `transport` carries the exchanges; nullptr: that of the loop that the call is on.
  Admission(int in_all, int per_origin, Transport* transport);
  Task<Outcome> send(Request request, Call& call) override;

 private:
  struct Origin;
  class Permit;
  // Their nodes are made beforehand, so that leaving, and admitting the next, takes no memory.
  using Queue = std::map<std::uint64_t, Permit*>;
  using Open = std::map<std::uint64_t, Origin*>;
  // The right to run an exchange, or a place in the queue for it, for as long as this lives. It
  // happens when the right is given.
  class Permit final : public Event {
   public:
    Permit(Admission& admission, const std::string& origin);
    ~Permit() override;
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    friend class Admission;
    Admission& admission_;
    Origin* origin_ = nullptr;
    std::uint64_t arrival_ = 0;
    Queue::node_type node_;  // while it is not in the queue
  };
  struct Origin {
    const std::string* name = nullptr;  // its key in `origins_`
    int in_flight = 0;
    Queue queue;                  // by arrival
    std::uint64_t listed_as = 0;  // its key in `open_`; 0: it is not in there
    Open::node_type node;         // while it is not in there
  };

  [[nodiscard]] bool has_room(const Origin& origin) const;
  // All of these with the mutex held.
  void enter(Permit& permit, const std::string& origin);
  void leave(Permit& permit);
  void admit_next();
  void update_open(Origin& origin);

  const int in_all_;
  const int per_origin_;
  Transport* const transport_;
  std::mutex mutex_;  // guards the rest
  std::uint64_t arrivals_ = 0;
  int in_flight_ = 0;
  std::unordered_map<std::string, Origin> origins_;  // only those in use
  // The origins that have room and a queue, by the arrival of the first in it.
  Open open_;
};

}  // namespace httpretry::detail
