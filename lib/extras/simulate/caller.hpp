// Caller: a client of the library as a simulation has it: a chain of middlewares, and the calls
// through it. Its transport is a Network.
#pragma once

#include "network.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/chain/middleware.hpp>

#include <coroutine>
#include <functional>
#include <list>

namespace httpretry::simulation {

class Caller;

// The calls that have not ended, of all callers. What is left at the end is destroyed with it.
struct CallList {
  CallList() = default;
  CallList(const CallList&) = delete;
  CallList& operator=(const CallList&) = delete;
  ~CallList() {
    while (!calls.empty()) calls.front().destroy();  // takes itself out
  }

  std::list<std::coroutine_handle<>> calls;
};

// The coroutine of one call: it runs when it is made, and frees itself at its end.
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
  // `stream`: of the random numbers for its waits. `calls` must outlive it.
  Caller(Network& network, CallList& calls, const PolicySet& policies, std::uint64_t stream);
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // `job`: what the call is made for; it is passed to `ended`.
  void call(const Request& request, Job* job = nullptr) { run(request, job); }
  Task<Outcome> send(Request request, Call& call) override;

 protected:
  virtual void ended(const Outcome& outcome, const Call& call, Job* job) = 0;
  virtual void sending(const Call& call) { static_cast<void>(call); }
  [[nodiscard]] World& world() const { return network_.world(); }

 private:
  friend struct CallCoroutine::promise_type;
  CallCoroutine run(Request request, Job* job);

  Network& network_;
  CallList& calls_;
  std::vector<MiddlewarePtr> chain_;
  std::vector<std::shared_ptr<Observer>> observers_;  // none
  RandomStream waits_;
  std::function<double()> random_;
  CallsInCommon in_common_;
};

// A service between the clients and the server: it carries out a request by calling the next.
class Layer final : public Server, private Caller {
 public:
  Layer(Network& before, Network& next, CallList& calls, const PolicySet& policies,
        std::uint64_t stream)
      : Caller(next, calls, policies, stream), before_(before) {}
  void arrive(Job& job) override { call(world().options.request, &job); }

 private:
  void ended(const Outcome& outcome, const Call& call, Job* job) override;
  Network& before_;
};

// Whether the policy judges the call a success.
[[nodiscard]] bool is_success(const Outcome& outcome, const Call& call);

}  // namespace httpretry::simulation
