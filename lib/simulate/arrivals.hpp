// Arrivals: when the calls of a run begin.
#pragma once

#include "world.hpp"

#include <memory>

namespace httpretry::simulation {

// A client as its load sees it.
class Client {
 public:
  virtual ~Client();
  virtual void begin_call() = 0;
};

// Lets the calls of its clients begin, as the load says. `stream` is of a client's own.
class Arrivals {
 public:
  virtual ~Arrivals();
  virtual void add(Client& client, RandomStream random) = 0;
  virtual void start() = 0;
  // A call of the client with this number has ended.
  virtual void call_ended(std::size_t client) { static_cast<void>(client); }
};

[[nodiscard]] std::unique_ptr<Arrivals> make_arrivals(World& world);

// Calls per second of all clients, without triggers.
[[nodiscard]] double rate_at(const Load& load, Duration time);

}  // namespace httpretry::simulation
