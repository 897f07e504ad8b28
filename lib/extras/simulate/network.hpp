// Network: the transport of a simulation. It carries each request to a model of a server and the
// response back, and gives up at the attempt's deadline.
#pragma once

#include "world.hpp"

#include <httpretry/chain/transport.hpp>

#include <deque>
#include <optional>

namespace httpretry::simulation {

class PendingExchange;
class Network;

// The reply of a model of a server.
struct Reply {
  int status = 200;            // 0: no response, but `error`
  Errc error = Errc::Receive;  // used if status is 0; the default is a broken connection
  Duration retry_after{};      // zero: no Retry-After
};

// Job: a request on its way to the server, at the server, or on its way back. It continues after
// its client has given up.
class Job final : public Event {
 public:
  void due() override;
  [[nodiscard]] bool is_abandoned() const { return exchange_ == nullptr; }

  std::uint64_t version = 0;  // for the server's use, such as the version of the row that it read

 private:
  friend class Network;
  enum class Phase : std::uint8_t { ToServer, AtServer, Back };
  Network* network_ = nullptr;
  PendingExchange* exchange_ = nullptr;
  Phase phase_ = Phase::ToServer;
  Reply reply_;
};

// Server: a model of a server. For each job that arrives, it calls Network::reply or Network::drop,
// at once or later.
class Server {
 public:
  virtual ~Server();
  virtual void arrive(Job& job) = 0;
  // Called at the time that was set with Network::work_until.
  virtual void on_work_done(Job& job) { static_cast<void>(job); }
  // Called after World::conditions has changed.
  virtual void on_conditions_changed() {}
};

class Network {
 public:
  // If `counts_sends`, its requests count as the sends of the run, and triggers can make them fail.
  Network(World& world, Distribution delay, bool counts_sends)
      : world_(world), delay_(std::move(delay)), counts_sends_(counts_sends) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  void set_server(Server& server) { server_ = &server; }

  // Called by clients.
  Task<Outcome> send(Request request, Call& call);

  // Called by the server.
  void work_until(Job& job, Time when);
  void reply(Job& job, Reply reply);
  void drop(Job& job);  // sends no response

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Duration one_way();  // draws the time that one message takes

 private:
  friend class PendingExchange;
  friend class Job;
  Job& begin(PendingExchange& exchange);
  void on_arrived(Job& job);
  void on_reply(Job& job);
  void abandon(Job& job) { job.exchange_ = nullptr; }
  void release(Job& job);

  World& world_;
  Distribution delay_;
  const bool counts_sends_;
  Server* server_ = nullptr;
  std::deque<Job> jobs_;    // a deque, because the addresses must not change
  std::vector<Job*> free_;  // jobs to reuse
};

}  // namespace httpretry::simulation
