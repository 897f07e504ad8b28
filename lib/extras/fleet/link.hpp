// Link: commands to a Redis server from any thread, over one connection and with one thread of its
// own. It connects again when the connection is lost, and never makes a caller wait.
//
// Calls run on many loops, and a loop that is leased by a blocking call stands still between calls.
// So the connection can be on none of them.
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

// A script, which the server knows by a hash. One is a static object: its address identifies it.
struct Script {
  const char* text;
};

struct Command {
  // With a script `words` are its keys and arguments, without one the whole command.
  const Script* script = nullptr;
  std::size_t keys = 0;
  std::vector<std::string> words;
};

class HTTPRETRY_API Link {
 public:
  using Done = Connection::Done;
  struct Options {
    Address address;
    std::vector<const Script*> scripts;
    Duration reply_timeout = std::chrono::milliseconds(50);
    Duration connect_timeout = std::chrono::milliseconds(500);
    // How long to wait before connecting again: it doubles each time, with jitter.
    Duration first_wait = std::chrono::milliseconds(100);
    Duration longest_wait = std::chrono::seconds(5);
    // Both on the link's thread. `up`: the server responds within `reply_timeout`; `why` it does
    // not.
    std::function<void(bool up, const std::string& why)> on_change;
    std::function<void()> on_tick;
    Duration tick = std::chrono::milliseconds(250);
  };

  // Connects in the background. Throws std::system_error where it gets no descriptor or thread.
  explicit Link(Options options);
  // What has no reply is lost.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // From any thread. `done` is called once, on the link's thread: with the reply; or with the loss
  // after `reply_timeout`, when the connection breaks, or soon while there is none. The first
  // connection is waited for, up to `connect_timeout`. Must not throw.
  void post(Command command, Done done);
  // Whether a command that is posted now can expect its reply.
  [[nodiscard]] bool up() const { return up_.load(std::memory_order_relaxed); }
  // The same, or the first connection is still being made.
  [[nodiscard]] bool expects_reply() const { return up() || !first_over_.load(); }
  // Waits until the first connection is there, or has failed: then why. Empty: it is there.
  [[nodiscard]] std::string wait_for_first();
  // Sends what was posted before it and waits for the replies, up to `limit`.
  void flush(Duration limit);

 private:
  enum class State : std::uint8_t { Down, Connecting, Greeting, Up, Late };
  struct Posted {
    Command command;
    Done done;
    bool repeated = false;  // with the whole script, or at another node
    Time sent{};
  };
  using Queue = std::deque<std::shared_ptr<Posted>>;

  void run();
  // Returns false if the link is to end.
  bool take_posted(Queue& outbox);
  void serve(Queue& outbox, Time now);
  void connect(Time now);
  void greet();
  void greeting_done(Time now);
  void send(const std::shared_ptr<Posted>& posted, Time now);
  void on_reply(const std::shared_ptr<Posted>& posted, Reply reply);
  bool follow_moved(const Reply& reply);
  void ping(Time now);
  // Those that have no reply yet.
  static void lose(const Queue& posted, const std::string& why);
  void go_down(const std::string& why, Time now);
  void set_up(bool up, const std::string& why);
  void check_deadlines(Time now);
  [[nodiscard]] Time next_deadline() const;
  void poll_until(Time when);

  const Options options_;
  // Of the thread.
  State state_ = State::Down;
  Connection connection_;
  std::string host_;
  int port_ = 0;
  std::map<const Script*, std::string> hashes_;
  Queue sent_;   // without a reply; `done` is empty where it is lost
  Queue again_;  // to be sent once more
  std::string greeting_problem_;
  Duration wait_{};
  Time next_try_{};  // to connect; of Late: to ask whether it responds again
  Time began_{};     // to connect or greet
  Time last_reply_{};
  bool moving_ = false;  // to the node of a cluster that has the keys
  bool first_ = true;    // the first connection has neither been made nor failed
  std::string down_why_;

  std::atomic<bool> up_ = false;
  std::mutex mutex_;  // guards the three below
  Queue posted_;
  bool sleeping_ = false;
  bool stop_ = false;
  std::atomic<bool> first_over_ = false;
  std::string first_problem_;  // written before first_over_
  EventFd wake_{"cannot talk to a Redis server"};
  std::thread thread_;
};

}  // namespace httpretry::fleet
