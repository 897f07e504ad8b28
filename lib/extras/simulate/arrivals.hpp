// Arrivals: when the calls of a run begin.
#pragma once

#include "world.hpp"

#include <deque>
#include <functional>
#include <memory>

namespace httpretry::simulation {

// Lets the calls of its clients begin, as the load says.
class Arrivals {
 public:
  explicit Arrivals(World& world) : world_(world) {}
  virtual ~Arrivals();
  // `random` is a stream of the client's own.
  void add(std::function<void()> begin_call, RandomStream random) {
    clients_.emplace_back(*this, std::move(begin_call), random);
  }
  virtual void start() = 0;
  // A call of the client with this number has ended.
  virtual void call_ended(std::size_t client) { static_cast<void>(client); }

 protected:
  // A client, and the next time that it is asked for a call.
  struct Client final : Event {
    Client(Arrivals& all, std::function<void()> begin, RandomStream stream)
        : arrivals(all), begin_call(std::move(begin)), random(stream) {}
    void due() override {
      const auto time = arrivals.world_.now().time_since_epoch();
      if (time < arrivals.world_.options.duration) arrivals.due(*this);
    }
    Arrivals& arrivals;
    std::function<void()> begin_call;
    RandomStream random;
  };

  // The time has come that was set for that client.
  virtual void due(Client& client) = 0;
  void set(Client& client, Duration wait) { world_.clock.set(client, later(world_.now(), wait)); }
  // Calls per second, of all clients.
  [[nodiscard]] double rate_now() const;

  World& world_;
  std::deque<Client> clients_;
};

[[nodiscard]] std::unique_ptr<Arrivals> make_arrivals(World& world);

// Calls per second of all clients, without triggers.
[[nodiscard]] double rate_at(const Load& load, Duration time);

}  // namespace httpretry::simulation
