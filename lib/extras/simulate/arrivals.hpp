// Arrivals: begins the calls of a run at the times that its load asks for.
#pragma once

#include "world.hpp"

#include <deque>
#include <functional>
#include <memory>

namespace httpretry::simulation {

class Arrivals {
 public:
  explicit Arrivals(World& world) : world_(world) {}
  virtual ~Arrivals();
  // Adds a client. Each client has its own random stream.
  void add(std::function<void()> begin_call, RandomStream random) {
    clients_.emplace_back(*this, std::move(begin_call), random);
  }
  virtual void start() = 0;
  // Called after a call of the client with this number has ended.
  virtual void on_call_ended(std::size_t client) { static_cast<void>(client); }

 protected:
  // A client, and the next time at which it may begin a call.
  struct Client final : Event {
    Client(Arrivals& all, std::function<void()> begin, RandomStream stream)
        : arrivals(all), begin_call(std::move(begin)), random(stream) {}
    void due() override {
      const auto time = arrivals.world_.now().time_since_epoch();
      if (time < arrivals.world_.options.duration) arrivals.on_due(*this);
    }
    Arrivals& arrivals;
    std::function<void()> begin_call;
    RandomStream random;
  };

  // Called at the time that `schedule` set for the client.
  virtual void on_due(Client& client) = 0;
  void schedule(Client& client, Duration wait) {
    world_.clock.set(client, later(world_.now(), wait));
  }
  // Returns the calls per second of all clients together, with the effect of triggers.
  [[nodiscard]] double rate_now() const;

  World& world_;
  std::deque<Client> clients_;
};

[[nodiscard]] std::unique_ptr<Arrivals> make_arrivals(World& world);

}  // namespace httpretry::simulation
