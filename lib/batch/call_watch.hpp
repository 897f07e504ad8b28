// CallWatch: what the threads of the client tell the thread that runs a Runner: calls that ended,
// how many wait between two attempts, and which hosts ask for a wait.
#pragma once

#include <httpretry/batch/runner.hpp>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace httpretry::batch {

// A job whose call is under way.
struct Flight {
  Flight(Job its, Prepared how) : job(std::move(its)), prepared(std::move(how)) {}

  Job job;
  Prepared prepared;
  Time started{};
  // Under the lock of CallWatch:
  bool in_wait = false;  // between two attempts
  bool on_wire = false;
};

class CallWatch;

// In the context of a request.
struct FlightOfCall {
  Flight* flight = nullptr;
};

// Tells `watch` when a send reaches the wire. The last of a chain.
MiddlewarePtr watched_sends(std::shared_ptr<CallWatch> watch);

// Safe to use from many threads at once.
class CallWatch final : public Observer {
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
  // At the end of the chain: a send of the call reaches the wire.
  void on_wire(Flight& flight);
  // Of these, those that are not on the wire and not between two attempts: our own limits keep
  // them.
  [[nodiscard]] std::vector<const Flight*> kept_of(const std::vector<const Flight*>& flights);
  // What happened since the last time; waits for something until then.
  News take(Time until);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  News news_;
  bool something_ = false;
  std::size_t in_wait_ = 0;
};

}  // namespace httpretry::batch
