// CallWatch connects the threads of the client with the thread of Runner::run. The client's threads
// report calls that have ended, calls between two attempts, and hosts that ask for a pause. The
// thread of `run` leaves calls here that are ready to be sent.
//
// When a call succeeds, the client's thread sends the next one at once, without waiting for the
// thread of `run`. After any other outcome it leaves that to the thread of `run`, which may hold
// the host or end the run.
#pragma once

#include "outages.hpp"

#include <httpretry/batch/runner.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace httpretry::batch {

// A job whose call was prepared and has not been judged yet.
struct Flight {
  Flight(Job its, Prepared how) : job(std::move(its)), prepared(std::move(how)) {}

  Job job;
  Prepared prepared;
  // Written by the thread that sends the call, or by the thread of the call:
  std::atomic<Time> started{};        // the epoch: it was not sent yet
  std::atomic<Time> attempt_began{};  // of the current attempt; the epoch: no attempt has begun
  std::atomic<bool> in_wait = false;  // between two attempts
  std::atomic<bool> on_wire = false;
  bool paused_host = false;  // a response asked for a pause of the job's host
  std::string sends_to;      // the host of the send in flight; empty: none
  std::string retry_host;    // the host at which the call retries; empty: none
};

class CallWatch;

// Links a request to its flight, in the context of the request.
struct FlightOfCall {
  Flight* flight = nullptr;
};

// Returns a middleware that notes when a send reaches the wire. It must be the last of a chain.
MiddlewarePtr mark_sends_on_wire();

// Returns a middleware for outages. It delays the retries of most calls until another call has
// succeeded or given up.
MiddlewarePtr few_retries_in_outages(std::shared_ptr<CallWatch> watch);

// Thread-safe.
class CallWatch final : public Observer, public std::enable_shared_from_this<CallWatch> {
 public:
  struct Hold {
    std::string host;
    Time until{};
  };
  struct Updates {
    std::vector<std::pair<Flight*, Outcome>> ended;
    std::vector<Hold> holds;
    std::vector<std::string> blocked_hosts;  // no call may begin there during an outage
    std::size_t in_wait = 0;                 // the number of calls between two attempts
    // A call failed, or a host asked for a pause. The thread of `run` must decide what that means
    // before the next send.
    bool needs_judgment = false;
    // Once requested, these two stay true.
    bool finish_up = false;
    bool stop = false;
    // `take` returns a request for these two once.
    bool progress_asked = false;
    bool store_has_jobs = false;
  };

  // A null `down_hosts` means that there is no rule for outages.
  explicit CallWatch(std::shared_ptr<DownHosts> down_hosts = nullptr)
      : down_hosts_(std::move(down_hosts)) {}

  void attempt_started(const Call& call, const Request& request, int number) noexcept override;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept override;
  void paused(const Call& call, const PauseBegun& pause) noexcept override;
  // Notes that the call is about to be given to the client.
  void on_call_begins(Flight& flight);
  // Notes that the call has ended. Returns the call that must be sent in its place, or nullptr.
  [[nodiscard]] Flight* on_call_ended(Flight& flight, Outcome outcome);
  // Adds `flights` to the calls that are ready to be sent. Removes and returns those that must be
  // sent now, so that at most `most` are in flight. `all` is the number of all calls: it includes
  // those that are ready, that are between two attempts, and that have ended since `take`.
  [[nodiscard]] std::vector<Flight*> send_ready(const std::vector<Flight*>& flights,
                                                std::size_t all, std::size_t most);
  // Removes and returns the ready calls for which `should_withdraw` returns true.
  std::vector<Flight*> withdraw(const std::function<bool(const Flight&)>& should_withdraw);
  [[nodiscard]] std::size_t ready();
  // Sets a member of the next updates to true.
  void ask(bool Updates::*member);

  // Returns null if the call may retry now. Otherwise other calls retry at that host, and the call
  // must wait for the change that is returned.
  [[nodiscard]] std::shared_ptr<const Outages::Change> others_retry(const Request& request,
                                                                    Flight& flight);

  [[nodiscard]] bool is_finishing();
  // Returns the updates since the last `take`. Blocks until there are some, at most until `until`.
  Updates take(Time until);
  void wake();

 private:
  // The caller must hold the mutex.
  void set_in_wait(Flight& flight, bool waits);
  void note_send(Flight& flight, const Request& request);
  void note_send_ended(Flight& flight);
  void note_attempt(Flight& flight, const Request& request, const Attempt& attempt);
  void note_end(Flight& flight, const Outcome& outcome);
  void notify_run(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<DownHosts> down_hosts_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  Updates updates_;
  std::deque<Flight*> ready_;
  bool judging_ = false;  // the thread of `run` handles updates with `needs_judgment`
  bool has_updates_ = false;
  bool waiting_ = false;      // the thread of `run` blocks in `take`
  bool wake_posted_ = false;  // a loop will call `wake`
  std::size_t in_wait_ = 0;
  Outages outages_;
};

}  // namespace httpretry::batch
