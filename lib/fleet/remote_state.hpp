// RemoteState: what several processes know together of their limits: an API allows its calls to
// the company, not to the process. RedisState is one.
//
// A process decides with what it was last told (shared_scope.hpp), and asks in the background, so a
// call waits for it at most once, for one reply. Where the remote state is away, a process goes on
// with a share of each limit.
#pragma once

#include <httpretry/http/guard_facts.hpp>
#include <httpretry/retry/guard_policy.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace httpretry::fleet {

// All functions may be called from any thread, with locks held, and do not block. One that returns
// false has not asked, because the remote state is away. Otherwise `done` is called once, on a
// thread of the remote state and never from within the function, with the time at which the reply
// came. Keys say what a limit is of, and are the same in each process.
class RemoteState {
 public:
  virtual ~RemoteState();
  template <class Reply>
  using Done = std::function<void(const Reply& reply, Time now)>;

  // Whether it replies, or the first connection to it is still being made. `workers`: how many
  // processes there are, or were when it last replied.
  [[nodiscard]] virtual bool up() const = 0;
  // How long a send may wait for a reply.
  [[nodiscard]] virtual Duration patience() const = 0;
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
  struct CircuitView {
    bool away = false;
    Circuit state = Circuit::Closed;
    Time until{};  // while it is open
    std::int64_t generation = 0;
    int openings = 0;  // in a row
    // Of the window; where the circuit is not closed, what has opened it.
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

  // What was taken from a budget and given to it since the last time, in thousandths.
  struct BudgetChange {
    std::int64_t taken = 0;
    std::int64_t given = 0;
  };
  struct BudgetView {
    bool away = false;
    std::int64_t balance = 0;  // Budget::balance
  };
  virtual bool change_budget(const std::string& key, const BudgetPolicy& policy,
                             const BudgetChange& change, Done<BudgetView> done) = 0;

  // The send rate that follows what the server says.
  struct Sends {
    std::int64_t ended = 0;      // since the last time
    std::int64_t throttled = 0;  // of them
    std::int64_t wanted = 0;     // that wait for their turn
  };
  struct SendsView {
    bool away = false;
    bool limited = false;
    std::int64_t granted = 0;  // of those wanted
    Time ask_again{};          // where none is
  };
  virtual bool send_rate(const std::string& key, const Sends& sends, Done<SendsView> done) = 0;

  // By the program: that limit as new, or that circuit open for a time, whatever its votes are.
  virtual bool forget(const std::string& key) = 0;
  virtual bool open_circuit(const std::string& key, Duration duration) = 0;

  // Sends what was posted before, and waits for the replies up to `limit`.
  virtual void flush(Duration limit) = 0;

  // What others have changed. Told to each listener several times a second while the remote state
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
    SharedStateChange change{};              // the last time that it went or came back
    std::uint64_t salt = 0;                  // SharedState::salt of all processes
    std::vector<Paused> pauses{};            // all that last
    std::vector<ChangedCircuit> circuits{};  // all that are not closed
  };
  class Listener {
   public:
    virtual ~Listener();
    virtual void on_news(const News& news, Time now) = 0;
  };
  // A listener must not be the last that owns the remote state: it is told on a thread of that.
  virtual void listen(std::weak_ptr<Listener> listener) = 0;
};

}  // namespace httpretry::fleet
