// Network: the transport of a simulation. It carries each request to a model of a server and its
// response back, and gives up when the time limit of the attempt has come.
#pragma once

#include "world.hpp"

#include <httpretry/chain/transport.hpp>

#include <deque>
#include <optional>

namespace httpretry::simulation {

class PendingExchange;
class Network;

// What a server responds.
struct Reply {
  int status = 200;            // 0: `error`
  Errc error = Errc::Receive;  // the connection broke
  Duration retry_after{};      // zero: none
};

// A request on its way to the server, there, and on its way back. It lives on when the client has
// given up.
class Job final : public Event {
 public:
  void due() override;
  [[nodiscard]] bool abandoned() const { return exchange_ == nullptr; }

  std::uint64_t version = 0;  // for the server that it is at: of the row that it has read

 private:
  friend class Network;
  enum class Phase : std::uint8_t { ToServer, AtServer, Back };
  Network* network_ = nullptr;
  PendingExchange* exchange_ = nullptr;
  Phase phase_ = Phase::ToServer;
  Reply reply_;
};

// A model of a server. For each job that arrives it calls `reply` or `drop` of its network, now or
// later.
class Server {
 public:
  virtual ~Server();
  virtual void arrive(Job& job) = 0;
  // The time that the job was given with Network::work_until has come.
  virtual void done(Job& job) { static_cast<void>(job); }
  // World::conditions are others.
  virtual void conditions_changed() {}
};

class Network {
 public:
  // `counted`: what it carries are the sends of the run, and triggers let it fail.
  Network(World& world, Distribution delay, bool counted)
      : world_(world), delay_(std::move(delay)), counted_(counted) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  void connect(Server& server) { server_ = &server; }

  // For transports.
  Task<Outcome> send(Request request, Call& call);

  // For the server.
  void work_until(Job& job, Time when);
  void reply(Job& job, Reply reply);
  void drop(Job& job);  // no response

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Duration one_way();  // the time of a message

 private:
  friend class PendingExchange;
  friend class Job;
  Job& begin(PendingExchange& exchange);
  void arrived(Job& job);
  void came_back(Job& job);
  void leave(Job& job) { job.exchange_ = nullptr; }
  void release(Job& job);

  World& world_;
  Distribution delay_;
  const bool counted_;
  Server* server_ = nullptr;
  std::deque<Job> jobs_;  // their addresses stay
  std::vector<Job*> free_;
};

}  // namespace httpretry::simulation
