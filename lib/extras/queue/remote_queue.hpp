// RemoteQueue is a queue on a Redis server: its keys, its token, and the link for its scripts.
#pragma once

#include "scripts.hpp"

#include <httpretry/batch/store.hpp>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry::queue {

// The `job` of the address is the name of the queue; it must not be empty.
struct RemoteOptions : fleet::Link::Options {
  RemoteOptions() {
    // A proxy may delay replies by seconds.
    reply_timeout = connect_timeout = std::chrono::seconds(5);
    tick = std::chrono::milliseconds(100);
  }
  // Uses even a server that may delete keys when it is full.
  bool force = false;
};

// Checks the replies of a server to INFO and CONFIG GET save. Throws batch::StoreError if the
// server cannot hold a queue. Returns a warning, or an empty string.
[[nodiscard]] std::string check_server(const std::string& name, std::string_view info,
                                       std::string_view save, bool force);

// The reply to the script kReadTotals: the state of the whole queue.
struct Totals {
  batch::Counts counts;
  std::uint64_t late = 0;
  std::uint64_t poison = 0;
  std::optional<Duration> next_due;  // from now
  Duration time{};                   // of the server, since 1970
  bool damaged = false;              // keys were lost or changed
};
// Returns nullopt if the reply has another form.
[[nodiscard]] std::optional<Totals> read_totals(const fleet::Reply& reply);

// Returns a value by which entries of a stream, which have the form "MS-NUMBER", are sorted.
[[nodiscard]] std::pair<std::uint64_t, std::uint64_t> order_of(std::string_view entry);

// Returns the time at `index` of a list, which is in ms. It is at least 0, and at most about 140
// years, so that it can be added to a point in time.
[[nodiscard]] Duration ms_in(const fleet::Reply& reply, std::size_t index);

// Returns the error that replaces a reply of an unexpected form. Another program may use the keys
// of the queue.
[[nodiscard]] fleet::Reply unexpected_reply();

// Functions throw batch::StoreError unless their comments say otherwise.
class RemoteQueue {
 public:
  explicit RemoteQueue(RemoteOptions options);

  // Waits for the connection and checks the server. Returns a warning, or an empty string.
  [[nodiscard]] std::string connect();
  // Opens the queue, and creates it if it does not exist.
  void open_or_make(const std::string& policy) { open(IfMissing::Create, policy); }
  // Opens the queue. The error for a missing queue names some queues that exist.
  void open_existing() { open(IfMissing::Fail, {}); }
  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] const std::string& policy() const { return policy_; }
  [[nodiscard]] const std::string& key(Key key) const {
    return keys_[static_cast<std::size_t>(key)];
  }
  // Returns "redis://host:6379/0, queue NAME".
  [[nodiscard]] std::string name() const;

  // Returns a call of the script. Inserts the keys and the token before the arguments.
  [[nodiscard]] fleet::Command command(const Script& script,
                                       std::vector<std::string> arguments) const;
  void post(fleet::Command command, fleet::Link::Done done) {
    link_.post(std::move(command), std::move(done));
  }
  // Blocks until the reply is there or `stopped` returns true. The reply may be lost or an error;
  // does not throw. Must not be called on the link's thread.
  using Stopped = std::function<bool()>;
  [[nodiscard]] fleet::Reply ask(fleet::Command command, const Stopped& stopped = nullptr);
  [[nodiscard]] fleet::Reply ask(const Script& script, std::vector<std::string> arguments) {
    return ask(command(script, std::move(arguments)));
  }
  // Does the same, but throws if the reply is lost or an error.
  [[nodiscard]] fleet::Reply must(fleet::Command command);
  [[nodiscard]] fleet::Reply must(const Script& script, std::vector<std::string> arguments) {
    return must(command(script, std::move(arguments)));
  }
  // Calls `ask`, and repeats that while the reply is lost, for up to `limit` or until it is
  // stopped. The command must allow repetition. Sets `was_repeated` to whether the command was sent
  // more than once. Does not throw.
  [[nodiscard]] fleet::Reply ask_repeatedly(const fleet::Command& command, Duration limit,
                                            const Stopped& stopped, bool& was_repeated);
  // Requests the totals.
  [[nodiscard]] Totals request_totals();
  [[nodiscard]] batch::StoreError error(const fleet::Reply& reply) const;
  [[nodiscard]] bool up() const { return link_.up(); }

 private:
  enum class IfMissing : std::uint8_t { Create, Fail };
  void open(IfMissing if_missing, const std::string& policy);
  [[nodiscard]] std::string list_some_queues();
  [[nodiscard]] std::set<std::string> find_some_queues();

  const RemoteOptions options_;
  const std::vector<std::string> keys_;
  std::string token_;
  std::string policy_;
  fleet::Link link_;
};

// Returns a command that is not a script.
[[nodiscard]] fleet::Command plain_command(std::vector<std::string> words);

// Returns whether an error means that the queue was deleted.
[[nodiscard]] bool says_gone(const fleet::Reply& reply);
// Returns whether an error means that a key of the queue has another type or form. A repetition
// would fail in the same way.
[[nodiscard]] bool says_damaged(const fleet::Reply& reply);

}  // namespace httpretry::queue
