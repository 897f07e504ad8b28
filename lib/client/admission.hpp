// Admission: how many exchanges may be under way at once, in all and with one origin, over all the
// loops of a client. What comes beyond that waits for its turn.
#pragma once

#include <httpretry/flow/shared.hpp>
#include <httpretry/flow/transport.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace httpretry::detail {

// The end of the chain where there are limits: it admits an exchange, then hands it to the
// transport behind it.
class Admission final : public Transport {
 public:
  // 0: no limit. `transport` carries the exchanges; where it is null, that of the loop which the
  // call is on.
  Admission(int in_all, int per_origin, Transport* transport);
  Task<Outcome> send(Request request, Call& call) override;

 private:
  struct Origin;
  class Turn;
  // What goes in and out of these is a node that was made beforehand: to leave, and to admit the
  // next, takes no memory.
  using Queue = std::map<std::uint64_t, Turn*>;
  using Open = std::map<std::uint64_t, Origin*>;
  // A place among those under way, or in the queue for one, for as long as it lives.
  class Turn final : public Happening {
   public:
    Turn(Admission& admission, const std::string& origin);
    ~Turn() override;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    friend class Admission;
    Admission& admission_;
    Origin* origin_ = nullptr;
    std::uint64_t arrival_ = 0;
    Queue::node_type place_;  // while it is not in the queue
  };
  struct Origin {
    const std::string* name = nullptr;  // its key in `origins_`
    int under_way = 0;
    Queue queue;                  // by arrival
    std::uint64_t listed_as = 0;  // its key in `open_`; 0: it is not in there
    Open::node_type place;        // while it is not in there
  };

  [[nodiscard]] bool has_room(const Origin& origin) const;
  // All of these with the mutex held.
  void enter(Turn& turn, const std::string& origin);
  void leave(Turn& turn);
  void admit_next();
  void list(Origin& origin);

  const int in_all_;
  const int per_origin_;
  Transport* const transport_;
  std::mutex mutex_;  // guards what is below
  std::uint64_t arrivals_ = 0;
  int under_way_ = 0;
  std::unordered_map<std::string, Origin> origins_;  // in use; no origin is kept for ever
  // The origins that have room and a queue, by the arrival of the first in it.
  Open open_;
};

}  // namespace httpretry::detail
