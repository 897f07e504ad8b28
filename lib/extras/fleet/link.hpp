// Link: sends commands from any thread to a Redis server, over one connection that a thread of the
// link drives. It reconnects after the connection is lost, and `post` never blocks.
//
// The connection needs its own thread because calls run on many loops, and a loop that a blocking
// call leases stands still between calls.
#pragma once

#include "address.hpp"
#include "connection.hpp"

#include "lib/core/base/descriptor.hpp"

#include <httpretry/http/time.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace httpretry::fleet {

[[nodiscard]] inline Time now_is() { return std::chrono::steady_clock::now(); }

// A Lua script. The server caches it under a hash. Each Script is a static object, and the link
// identifies it by its address.
struct Script {
  const char* text;
};

struct Command {
  // With a script, `words` holds its keys and then its arguments. Without one, it holds the whole
  // command.
  const Script* script = nullptr;
  std::size_t keys = 0;
  std::vector<std::string> words;
};

namespace detail {

class HTTPRETRY_API Link {
 public:
  using Done = Connection::Done;
  struct Options {
    Address address;
    std::vector<const Script*> scripts;
    Duration reply_timeout = std::chrono::milliseconds(50);
    Duration connect_timeout = std::chrono::milliseconds(500);
    // The wait before it reconnects. It doubles after each failure, with jitter. A connection that
    // lasts less than `longest_wait` is a failure, too.
    Duration first_wait = std::chrono::milliseconds(100);
    Duration longest_wait = std::chrono::seconds(5);
    // Both are called on the link's thread. `up` means that the server replies within
    // `reply_timeout`; otherwise `why` has the reason. on_change is called again for another
    // reason.
    std::function<void(bool up, const std::string& why)> on_change;
    std::function<void()> on_tick;
    Duration tick = std::chrono::milliseconds(250);
  };

  // Connects in the background. Throws std::system_error if the system has no descriptor or thread
  // left.
  explicit Link(Options options);
  // Reports each command without a reply as lost.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Sends a command. Thread-safe. `done` is called once, on the link's thread, and must not throw.
  // It gets the reply; or a lost one after `reply_timeout`, when the connection breaks, or soon
  // while the link is not connected. Commands wait for the first connection, up to
  // `connect_timeout`.
  void post(Command command, Done done);
  // Returns whether a command that is posted now can expect a reply.
  [[nodiscard]] bool up() const { return up_.load(std::memory_order_relaxed); }
  // Returns whether the link is up, or is still making its first connection.
  [[nodiscard]] bool expects_reply() const { return up() || !first_ended_.load(); }
  // Blocks until the first connection is established or has failed. Returns the reason of the
  // failure, or an empty string.
  [[nodiscard]] std::string wait_for_first();
  // Blocks until all commands posted before have replies, for up to `limit`.
  void flush(Duration limit);

 private:
  // Greeting: authenticates, selects the database and loads the scripts. Late: connected, but
  // replies take longer than `reply_timeout`.
  enum class State : std::uint8_t { Down, Connecting, Greeting, Up, Late };
  struct Posted {
    Command command;
    Done done;
    bool is_resend = false;  // with the script's text, or to another node
    Time sent{};
  };
  using Queue = std::deque<std::shared_ptr<Posted>>;

  void run();
  // Moves posted commands to `outbox`. Returns false if the link is being destroyed.
  bool take_posted(Queue& outbox);
  void serve(Queue& outbox, Time now);
  void connect(Time now);
  void greet();
  void on_greeted(Time now);
  void send(const std::shared_ptr<Posted>& posted, Time now);
  void on_reply(const std::shared_ptr<Posted>& posted, Reply reply);
  // Sets the address of the node that a MOVED reply names. Returns false if it cannot be parsed, or
  // leads nowhere.
  bool follow_moved(const Reply& reply);
  void ping(Time now);
  // Reports a loss for each of these commands that has no reply yet.
  static void report_lost(const Queue& posted, const std::string& why);
  void go_down(const std::string& why, Time now);
  void set_is_up(bool is_up, const std::string& why);
  void check_deadlines(Time now);
  void check_overdue_replies(Time oldest_sent, Time now);
  [[nodiscard]] Time next_deadline() const;
  void poll_until(Time when);

  const Options options_;
  // Used by the link's thread only.
  State state_ = State::Down;
  Connection connection_;
  std::string host_;
  int port_ = 0;
  std::map<const Script*, std::string> hashes_;
  Queue sent_;           // commands without a reply; `done` is empty after a reported loss
  Queue resend_;         // commands to send once more
  std::string problem_;  // why check_deadlines() must close the connection, or empty
  Duration wait_{};
  Time next_try_{};  // next time to connect or, if Late, to send a PING
  Time began_{};     // when it began to connect
  Time last_reply_{};
  bool moving_ = false;       // it reconnects to the cluster node that has the keys
  bool awaits_first_ = true;  // the first connection is neither established nor failed
  std::string down_why_;

  std::atomic<bool> up_ = false;
  std::mutex mutex_;  // guards the next three members
  Queue posted_;
  bool sleeping_ = false;
  bool stop_ = false;
  std::atomic<bool> first_ended_ = false;
  std::string first_problem_;  // written before first_ended_ is set, and not changed afterwards
  EventFd wake_{"cannot talk to a Redis server"};
  std::thread thread_;
};

}  // namespace detail
using detail::Link;

}  // namespace httpretry::fleet
