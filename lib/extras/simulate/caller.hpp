// Caller: a simulated client of the library. It makes calls through a chain of middlewares, and its
// transport is a Network.
#pragma once

#include "network.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/chain/middleware.hpp>

#include <coroutine>
#include <functional>
#include <list>

namespace httpretry::simulation {

class Caller;

// The calls in flight of all callers. Its destructor destroys the calls that are left.
struct CallList {
  CallList() = default;
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;
  ~CallList() {
    while (!calls.empty()) calls.front().destroy();  // removes itself from the list
  }

  std::list<std::coroutine_handle<>> calls;
};

// The coroutine of one call. It starts at once, and destroys itself at its end.
struct CallCoroutine {
  struct promise_type {
    promise_type(Caller& caller, const Request& request, Job* job);
    promise_type(const promise_type&) = delete;
    promise_type& operator=(const promise_type&) = delete;
    ~promise_type() { list.erase(place); }
    CallCoroutine get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }

    std::list<std::coroutine_handle<>>& list;
    std::list<std::coroutine_handle<>>::iterator place;
  };
};

class Caller : public Transport {
 public:
  // `stream` is the number of the random stream for its waits. The calls in `calls` must end before
  // the caller does, because they use it.
  Caller(Network& network, CallList& calls, const PolicySet& policies, std::uint64_t stream);
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Begins a call. `job` is passed to `on_ended`: for a layer, the request that the call serves.
  void call(const Request& request, Job* job = nullptr) { run(request, job); }
  Task<Outcome> send(Request request, Call& call) override;

 protected:
  virtual void on_ended(const Outcome& outcome, const Call& call, Job* job) = 0;
  virtual void on_send(const Call& call) { static_cast<void>(call); }
  [[nodiscard]] World& world() const { return network_.world(); }

 private:
  friend struct CallCoroutine::promise_type;
  CallCoroutine run(Request request, Job* job);

  Network& network_;
  CallList& calls_;
  std::vector<MiddlewarePtr> chain_;
  std::vector<std::shared_ptr<Observer>> observers_;  // always empty
  RandomStream waits_;
  std::function<double()> random_;
  CallsInCommon in_common_;
};

// A service between the clients and the server. It serves each request with a call to the next
// service.
class Layer final : public Server, private Caller {
 public:
  Layer(Network& before, Network& next, CallList& calls, const PolicySet& policies,
        std::uint64_t stream)
      : Caller(next, calls, policies, stream), before_(before) {}
  void arrive(Job& job) override { call(world().options.request, &job); }

 private:
  void on_ended(const Outcome& outcome, const Call& call, Job* job) override;
  Network& before_;
};

// Returns whether the policy classifies the last attempt of the call as a success.
[[nodiscard]] bool is_success(const Outcome& outcome, const Call& call);

}  // namespace httpretry::simulation
