// CallWatch: what the threads of the client tell the thread that runs a Runner: calls that ended,
// how many wait between two attempts, and which hosts ask for a wait. In return that thread leaves
// calls here which are ready to be sent.
//
// Where a call ends well, the client's thread sends the next one by itself: it does not wait until
// the other thread has had its turn. After any other end it leaves that to the other thread, which
// may find that the host has to be left alone, or that the run is over.
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

// A job whose call is under way.
struct Flight {
  Flight(Job its, Prepared how) : job(std::move(its)), prepared(std::move(how)) {}

  Job job;
  Prepared prepared;
  // Written by the thread that sends it, or by that of the call:
  std::atomic<Time> started{};
  std::atomic<bool> in_wait = false;  // between two attempts
  std::atomic<bool> on_wire = false;
  bool paused_host = false;  // a response asked for a pause of the job's host
  std::string sends_to;      // the host of its send; empty: it sends nothing
  std::string retries_at;    // the host that it retries at; empty: none
};

class CallWatch;

// In the context of a request.
struct FlightOfCall {
  Flight* flight = nullptr;
};

// Notes when a send reaches the wire. The last of a chain.
MiddlewarePtr watched_sends();

// In an outage, keeps the retries of most calls back until one of the others has succeeded or given
// up.
MiddlewarePtr few_retries(std::shared_ptr<CallWatch> watch);

// Safe to use from many threads at once.
class CallWatch final : public Observer, public std::enable_shared_from_this<CallWatch> {
 public:
  struct Hold {
    std::string host;
    Time until{};
  };
  struct News {
    std::vector<std::pair<Flight*, Outcome>> ended;
    std::vector<Hold> holds;
    std::vector<std::string> left_alone;  // hosts at which no call may begin
    std::size_t in_wait = 0;              // calls between two attempts
    bool to_judge = false;   // before anything is sent: a call that did not end well, a hold
    bool finish_up = false;  // these two stay true
    bool stop = false;
    bool progress_asked = false;  // once, as the next
    bool look_again = false;
  };

  // `down_hosts`: null without a rule for outages.
  explicit CallWatch(std::shared_ptr<DownHosts> down_hosts = nullptr)
      : down_hosts_(std::move(down_hosts)) {}

  void attempt_started(const Call& call, const Request& request, int number) noexcept override;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept override;
  void paused(const Call& call, const PauseBegun& pause) noexcept override;
  // Before the call is given to the client.
  void begins(Flight& flight);
  // Returns the call that is to be sent in its place, if there is one.
  [[nodiscard]] Flight* ended(Flight& flight, Outcome outcome);
  // `flights` are ready to be sent, after those of before. Returns those that are to be sent now,
  // so that no more than `most` are on their way. `all`: how many calls there are, with those that
  // are ready, that wait between two attempts, and that ended since `take`.
  [[nodiscard]] std::vector<Flight*> send_ready(std::vector<Flight*> flights, std::size_t all,
                                                std::size_t most);
  // Takes back those that are not sent yet.
  std::vector<Flight*> withdraw(const std::function<bool(const Flight&)>& which);
  [[nodiscard]] std::size_t ready();
  void ask(bool News::*what);

  // Empty: the call may retry there now. Otherwise it waits for this.
  [[nodiscard]] std::shared_ptr<const Outages::Change> others_retry(const Request& request,
                                                                    Flight& flight);

  [[nodiscard]] bool asked_to_end();
  // What happened since the last time; waits for something until then.
  News take(Time until);
  void wake();

 private:
  // With the mutex held.
  void set_in_wait(Flight& flight, bool waits);
  void note_send(Flight& flight, const Request& request);
  void note_attempt(Flight& flight, const Request& request, const Attempt& attempt);
  void note_end(Flight& flight, const Outcome& outcome);
  void end_send(Flight& flight);
  void tell(std::unique_lock<std::mutex>& lock);

  const std::shared_ptr<DownHosts> down_hosts_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  News news_;
  std::deque<Flight*> ready_;
  bool judging_ = false;  // what `news_.to_judge` told of
  bool something_ = false;
  bool waiting_ = false;      // in `take`
  bool wake_posted_ = false;  // to a loop
  std::size_t in_wait_ = 0;
  Outages outages_;
};

}  // namespace httpretry::batch
