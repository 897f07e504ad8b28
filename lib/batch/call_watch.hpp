// CallWatch: what the threads of the client tell the thread that runs a Runner: calls that ended,
// how many wait between two attempts, and which hosts ask for a wait.
#pragma once

#include <httpretry/batch/runner.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace httpretry::batch {

// A job whose call is under way.
struct Flight {
  Flight(Job its, Prepared how) : job(std::move(its)), prepared(std::move(how)) {}

  Job job;
  Prepared prepared;
  Time started{};
  // Written by the thread of the call:
  std::atomic<bool> in_wait = false;  // between two attempts
  std::atomic<bool> on_wire = false;
};

class CallWatch;

// In the context of a request.
struct FlightOfCall {
  Flight* flight = nullptr;
};

// Notes when a send reaches the wire. The last of a chain.
MiddlewarePtr watched_sends();

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
    std::size_t in_wait = 0;  // calls between two attempts
    bool finish_up = false;   // these three stay true
    bool stop = false;
    bool progress_asked = false;  // once, as the next
    bool look_again = false;
  };

  void attempt_started(const Call& call, const Request& request, int number) noexcept override;
  void attempt_ended(const Call& call, const Request& request,
                     const Attempt& attempt) noexcept override;
  void ended(Flight& flight, Outcome outcome);
  void ask(bool News::*what);

  [[nodiscard]] bool asked_to_end();
  // What happened since the last time; waits for something until then.
  News take(Time until);
  void wake();

 private:
  void tell(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  News news_;
  bool something_ = false;
  bool waiting_ = false;      // in `take`
  bool wake_posted_ = false;  // to a loop
  std::size_t in_wait_ = 0;
};

}  // namespace httpretry::batch
