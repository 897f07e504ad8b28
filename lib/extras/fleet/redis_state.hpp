// RedisState: what several processes know together of their limits, on a Redis server. An API
// allows its calls to the company, not to the process.
//
// A process decides with what it was last told (shared_scope.hpp), and asks in the background, so a
// call waits for it at most once, for one reply. While the server is away, a process goes on with a
// share of each limit.
#pragma once

#include "limit_scripts.hpp"

#include "lib/core/guard/detail/limits.hpp"

#include <httpretry/chain/observer.hpp>
#include <httpretry/retry/guard_policy.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace httpretry::fleet {

// All functions may be called from any thread, with locks held, and do not block. One that returns
// false has not asked, because the server is away. Otherwise `done` is called once, on the link's
// thread and never from within the function, with the time at which the reply came. Keys say what a
// limit is of, and are the same in each process.
class RedisState {
 public:
  template <class Reply>
  using Done = std::function<void(const Reply& reply, Time now)>;

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

  // Concurrent sends: `used` are under way, and `wanted` could be.
  struct Slots {
    bool away = false;
    int granted = 0;         // how many may be under way
    bool contended = false;  // others want more, too
  };

  // What a circuit is for all processes.
  struct CircuitView {
    bool away = false;
    Circuit state = Circuit::Closed;
    Time until{};  // while it is open
    std::int64_t generation = 0;
    int openings = 0;      // in a row
    guard::Counts counts;  // of the window; if it is not closed, what has opened it
    int failed_in_a_row = 0;
    bool probe = false;  // this process may send one
  };
  // What became of sends since the last time.
  struct Votes {
    std::int64_t generation = 0;
    guard::Counts counts;
    int leading = 0;   // failures before the first success
    int trailing = 0;  // since the last
    int good_probes = 0;
    int failed_probes = 0;
    Duration open_for{};  // if they open it
    bool wants_probe = false;
  };

  // What was taken from a budget and given to it since the last time, in thousandths.
  struct BudgetChange {
    std::int64_t taken = 0;
    std::int64_t given = 0;
  };
  struct BudgetView {
    bool away = false;
    std::int64_t balance = 0;  // Budget::balance
  };

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

  // What others have changed.
  struct News {
    bool away = false;
    SharedStateChange change{};  // the last time that it went or came back
    std::uint64_t salt = 0;      // SharedState::salt of all processes
    // By their keys: all that last, until when; and all that are not closed.
    std::vector<std::pair<std::string, Time>> pauses{};
    std::vector<std::pair<std::string, CircuitView>> circuits{};
  };

  // `on_news` is called on the link's thread: with each tick while the server responds, and when it
  // is away.
  RedisState(Link::Options options, Done<News> on_news);

  // Whether it replies, or the first connection to it is still being made.
  [[nodiscard]] bool up() const { return link_.expects_reply(); }
  // How long a send may wait for a reply.
  [[nodiscard]] Duration patience() const {
    return link_.up() ? options_.reply_timeout : options_.connect_timeout;
  }
  // How many processes there are, or were when it last replied.
  [[nodiscard]] int workers() const { return workers_.load(std::memory_order_relaxed); }

  bool take_tokens(const std::string& key, const RatePolicy& policy, std::int64_t wanted,
                   std::int64_t given_back, Done<Tokens> done);
  bool hold_slots(const std::string& key, int max, int used, int wanted, Done<Slots> done);
  bool vote(const std::string& key, const BreakerPolicy& policy, const Votes& votes,
            Done<CircuitView> done);
  // All processes are to send nothing of that scope for a time.
  bool pause(const std::string& key, Duration duration);
  bool change_budget(const std::string& key, const BudgetPolicy& policy, const BudgetChange& change,
                     Done<BudgetView> done);
  bool send_rate(const std::string& key, const Sends& sends, Done<SendsView> done);
  // By the program: that limit as new, or that circuit open for a time, whatever its votes are.
  bool forget(const std::string& key);
  bool open_circuit(const std::string& key, Duration duration);
  // Sends what was posted before, and waits for the replies up to `limit`.
  void flush(Duration limit) { link_.flush(limit); }

 private:
  // How long a process that says nothing more counts, and keeps its slots.
  static constexpr Duration kLease = std::chrono::seconds(3);
  bool post(const Script& script, std::size_t keys, std::vector<std::string> words,
            Done<Reply> done);
  [[nodiscard]] Link::Options link_options();
  void on_change(bool up, const std::string& why);
  void ask_for_news();
  void check_server();
  void set_degraded(bool degraded, const std::string& why);
  void warn(const std::string& why, std::string_view until) const;
  void tell(News news);
  // A script that fails is a bug or a server that is full: told once.
  void on_error(const Reply& reply);

  const Link::Options options_;
  const Done<News> on_news_;
  const std::string process_;
  const std::string salt_;  // if no other process has stored one
  std::atomic<int> workers_;
  // Of the link's thread:
  SharedStateChange change_;  // the last
  bool error_told_ = false;
  std::vector<std::string> server_problems_;
  Link link_;  // the last: its thread uses all the others
};

}  // namespace httpretry::fleet
