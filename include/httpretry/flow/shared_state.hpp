// SharedState: what several processes know together of their limits: an API allows its calls to
// the company, not to the process. `redis` (fleet/redis.hpp) is one, on a Redis server.
//
// A client decides with what it was last told, and asks in the background, so a call waits for it
// at most once, for one reply. Where the shared state is away, clients go on with a share of each
// limit.
#pragma once

#include <httpretry/retry/guard_policy.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace httpretry {

// All functions may be called from any thread, with locks held, and do not block. One that returns
// false has not asked, because the shared state is away. Otherwise `done` is called once, on a
// thread of the shared state and never from within the function, with the time at which the reply
// came. Keys say what a limit is of, and are the same in each process.
class HTTPRETRY_API SharedState {
 public:
  virtual ~SharedState();
  template <class Reply>
  using Done = std::function<void(const Reply& reply, Time now)>;

  // Whether it replies. `workers`: how many processes there are, or were when it last replied.
  [[nodiscard]] virtual bool up() const = 0;
  [[nodiscard]] virtual int workers() const = 0;

  // Tokens of a rate, taken ahead: the first may be used at `first`, each further one `each` later.
  struct Tokens {
    bool away = false;  // there is no reply
    std::int64_t count = 0;
    Time first{};
    Duration each{};
    Time ask_again{};  // where there are none
  };
  // No token is for more than this in the future.
  static constexpr Duration kAhead = std::chrono::milliseconds(100);
  virtual bool take_tokens(const std::string& key, const RatePolicy& policy, std::int64_t wanted,
                           std::int64_t given_back, Done<Tokens> done) = 0;

  // Concurrent sends: `used` are under way, and `wanted` could be.
  struct Slots {
    bool away = false;
    int granted = 0;         // how many may be under way
    bool contended = false;  // others want more, too
  };
  virtual bool hold_slots(const std::string& key, int max, int used, int wanted,
                          Done<Slots> done) = 0;

  // What a circuit is for all processes.
  enum class Circuit : std::uint8_t { Closed, Open, HalfOpen };
  struct CircuitView {
    bool away = false;
    Circuit state = Circuit::Closed;
    Time until{};  // while it is open
    std::int64_t generation = 0;
    int openings = 0;  // in a row
    std::int64_t all = 0;
    std::int64_t good = 0;
    std::int64_t slow = 0;
    int failed_in_a_row = 0;
    bool probe = false;  // this process may send one
  };
  // What became of sends since the last time.
  struct Votes {
    std::int64_t generation = 0;
    std::int64_t all = 0;
    std::int64_t good = 0;
    std::int64_t slow = 0;
    int leading = 0;   // failures before the first success
    int trailing = 0;  // since the last
    int good_probes = 0;
    int failed_probes = 0;
    Duration open_for{};  // if they open it
    bool wants_probe = false;
  };
  virtual bool vote(const std::string& key, const BreakerPolicy& policy, const Votes& votes,
                    Done<CircuitView> done) = 0;

  // All processes are to send nothing of that scope for a time.
  virtual bool pause(const std::string& key, Duration duration) = 0;

  // What others have changed. Told to each listener several times a second while the shared state
  // is up.
  struct Paused {
    std::string key;
    Time until{};
  };
  struct ChangedCircuit {
    std::string key;
    CircuitView view;
  };
  struct News {
    bool away = false;
    std::vector<Paused> pauses;            // all that last
    std::vector<ChangedCircuit> circuits;  // all that are not closed
  };
  class HTTPRETRY_API Listener {
   public:
    virtual ~Listener();
    virtual void on_news(const News& news, Time now) = 0;
  };
  virtual void listen(std::weak_ptr<Listener> listener) = 0;
};

}  // namespace httpretry
