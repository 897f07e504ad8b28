// RedisState: the limits that several processes share on a Redis server. APIs grant their limits to
// a company, not to one process.
//
// A process decides by its latest replies (shared_scope.hpp), and sends queries in the background.
// So a call waits for the server at most once, for one reply. While the server is away, each
// process continues with a share of each limit.
#pragma once

#include "limit_scripts.hpp"

#include "lib/core/guard/detail/limits.hpp"

#include <httpretry/chain/observer.hpp>
#include <httpretry/retry/guard_policy.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace httpretry::fleet {

// All functions may be called from any thread and with locks held, and except for `flush` they do
// not block. A function that returns false has sent nothing, because the server is away. Otherwise
// `done` is called once, on the link's thread and never from within the function, with the time of
// the reply. Keys name the limits, and are the same in each process.
class RedisState {
 public:
  template <class Reply>
  using Done = std::function<void(const Reply& reply, Time now)>;

  // Tokens of a rate that were taken ahead. The first may be used at `first`, and each further one
  // `each` later.
  struct Tokens {
    bool away = false;  // no reply, or an error; the same in all structs below
    std::int64_t count = 0;
    Time first{};
    Duration each{};
    Time ask_again{};  // if `count` is 0: when to query again
  };
  // Tokens are taken at most this long before they may be used.
  static constexpr Duration kAhead = std::chrono::milliseconds(100);

  // The tokens that were reserved may be used at `ready_at`.
  struct Reservation {
    bool away = false;
    Time ready_at{};
  };
  // Amounts of tokens: of a policy's rate, and of each of its further rates.
  using Amounts = std::vector<std::int64_t>;

  // The slots of this process under a limit of concurrent sends.
  struct Slots {
    bool away = false;
    int granted = 0;         // how many sends may be in flight
    bool contended = false;  // the processes together want more slots than there are
  };

  // The state of a circuit that all processes share.
  struct CircuitView {
    bool away = false;
    Circuit state = Circuit::Closed;
    Time until{};  // the end of an open circuit
    std::int64_t generation = 0;
    int openings = 0;      // in a row
    guard::Counts counts;  // of the window if the circuit is closed, otherwise those that opened it
    int failed_in_a_row = 0;
    bool probe = false;  // this process may send a probe
  };
  // The results of this process's sends since its last query.
  struct Votes {
    std::int64_t generation = 0;
    guard::Counts counts;
    int leading = 0;   // failures before the first success
    int trailing = 0;  // failures since the last success
    int good_probes = 0;
    int failed_probes = 0;
    Duration open_for{};  // how long the circuit stays open if these votes open it
    bool wants_probe = false;
  };

  // The thousandths of a token that this process took from a budget and gave to it since its last
  // query.
  struct BudgetChange {
    std::int64_t taken = 0;
    std::int64_t given = 0;
  };
  struct BudgetView {
    bool away = false;
    std::int64_t balance = 0;  // Budget::balance
  };

  // The counts for an adaptive send rate since the last query.
  struct Sends {
    std::int64_t ended = 0;      // attempts
    std::int64_t throttled = 0;  // those of them that the server throttled
    std::int64_t wanted = 0;     // sends that wait
  };
  struct SendsView {
    bool away = false;
    bool limited = false;
    std::int64_t granted = 0;  // how many of the wanted sends may go out now
    Time ask_again{};          // if `granted` is 0: when to query again
  };

  // A snapshot of everything that all processes have to know.
  struct Snapshot {
    bool away = false;
    SharedStateChange change{};  // the last time that the server went away or came back
    std::uint64_t salt = 0;      // SharedState::salt, the same for all processes
    // Each key with the end of its pause, and each key with its circuit if that is not closed.
    std::vector<std::pair<std::string, Time>> pauses{};
    std::vector<std::pair<std::string, CircuitView>> circuits{};
  };

  // Calls `on_snapshot` on the link's thread: with each tick while the server replies, and when it
  // goes away.
  RedisState(Link::Options options, Done<Snapshot> on_snapshot);

  // Returns whether the server replies, or the first connection to it is still being made.
  [[nodiscard]] bool up() const { return link_.expects_reply(); }
  // Returns how long a send may wait for a reply.
  [[nodiscard]] Duration patience() const {
    return link_.up() ? options_.reply_timeout : options_.connect_timeout;
  }
  // Returns the number of processes at the last reply, but at least `workers` of the URL.
  [[nodiscard]] int workers() const { return workers_.load(std::memory_order_relaxed); }

  bool take_tokens(const std::string& key, const RatePolicy& policy, std::int64_t wanted,
                   std::int64_t given_back, Done<Tokens> done);
  // `wanted` and `given_back` have as many amounts as the policy has rates.
  bool reserve_tokens(const std::string& key, const RatePolicy& policy, const Amounts& wanted,
                      const Amounts& given_back, Done<Reservation> done);
  // `used` sends are in flight, and `wanted` could be.
  bool hold_slots(const std::string& key, int max, int used, int wanted, Done<Slots> done);
  bool vote(const std::string& key, const BreakerPolicy& policy, const Votes& votes,
            Done<CircuitView> done);
  // Stops the sends of a scope in all processes for a time.
  bool pause(const std::string& key, Duration duration);
  bool change_budget(const std::string& key, const BudgetPolicy& policy, const BudgetChange& change,
                     Done<BudgetView> done);
  bool send_rate(const std::string& key, const Sends& sends, Done<SendsView> done);
  // For programs: reset all limits of a key, or open its circuit for a time, whatever the votes.
  bool forget(const std::string& key);
  bool open_circuit(const std::string& key, Duration duration);
  // Blocks until all earlier queries have replies, for up to `limit`.
  void flush(Duration limit) { link_.flush(limit); }

 private:
  // A process that sends nothing for this time no longer counts, and loses its slots.
  static constexpr Duration kLease = std::chrono::seconds(3);
  // Returns whether a reply is of the form that the script has.
  using IsExpected = bool (*)(const Reply& reply);
  bool post(const Script& script, std::size_t keys, std::vector<std::string> words,
            IsExpected is_expected, Done<Reply> done);
  [[nodiscard]] Link::Options link_options();
  void on_change(bool up, const std::string& why);
  void request_snapshot();
  void check_server();
  void set_degraded(bool degraded, const std::string& why);
  void warn(const std::string& why, std::string_view until);
  void notify(Snapshot snapshot);

  const Link::Options options_;
  const Done<Snapshot> on_snapshot_;
  const std::string process_;
  const std::string salt_;  // stored on the server unless it has one
  std::atomic<int> workers_;
  // Used by the link's thread only.
  SharedStateChange change_;             // the latest
  std::set<std::string> logged_causes_;  // why limits are not shared, until they are again
  std::vector<std::string> server_problems_;
  Link link_;  // declared last, because its thread uses the other members
};

}  // namespace httpretry::fleet
