// RemoteQueue: a queue on a Redis server: its keys, its token, and the link that its scripts go
// over.
#pragma once

#include "scripts.hpp"

#include <httpretry/batch/store.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::queue {

// The address must have a job.
struct RemoteOptions : fleet::Link::Options {
  RemoteOptions() {
    // A proxy may delay by seconds.
    reply_timeout = connect_timeout = std::chrono::seconds(5);
    tick = std::chrono::milliseconds(100);
  }
  // Use a server that may delete keys when it is full.
  bool force = false;
};

// What INFO and CONFIG GET save say of a server. Throws batch::StoreError where it cannot keep a
// queue; returns a warning, or nothing.
[[nodiscard]] std::string check_server(const std::string& name, std::string_view info,
                                       std::string_view save, bool force);

// What kNews replies.
struct News {
  batch::Counts counts;
  std::uint64_t late = 0;
  std::uint64_t poison = 0;
  std::optional<Duration> next_due;  // from now
  Duration time{};                   // of the server, since 1970
  bool damaged = false;              // keys were lost or changed
};
// Empty: it is not such a reply.
[[nodiscard]] std::optional<News> read_news(const fleet::Reply& reply);

// In place of a reply that no queue gives: another program may use its keys.
[[nodiscard]] fleet::Reply odd_reply();

// Errors are thrown as batch::StoreError, unless said otherwise.
class RemoteQueue {
 public:
  explicit RemoteQueue(RemoteOptions options);

  // Waits for the connection and checks the server. Returns a warning, or nothing.
  [[nodiscard]] std::string connect();
  // Makes the queue where it is not there, or throws, with the names of some that are.
  void open_or_make(const std::string& policy) { open(true, policy); }
  void open_existing() { open(false, {}); }
  [[nodiscard]] const std::string& token() const { return token_; }
  [[nodiscard]] const std::string& policy() const { return policy_; }
  [[nodiscard]] const std::string& key(std::size_t index) const { return keys_[index]; }
  // "redis://host:6379/0, queue NAME"
  [[nodiscard]] std::string name() const;

  // With the keys and the token before the arguments.
  [[nodiscard]] fleet::Command command(const Script& script,
                                       std::vector<std::string> arguments) const;
  void post(fleet::Command command, fleet::Link::Done done) {
    link_.post(std::move(command), std::move(done));
  }
  // Waits for the reply, which may be lost or an error, unless it is stopped. Not on the link's
  // thread.
  using Stopped = std::function<bool()>;
  [[nodiscard]] fleet::Reply ask(fleet::Command command, const Stopped& stopped = nullptr);
  [[nodiscard]] fleet::Reply ask(const Script& script, std::vector<std::string> arguments) {
    return ask(command(script, std::move(arguments)));
  }
  // As `ask`, and throws where there is no good reply.
  [[nodiscard]] fleet::Reply must(fleet::Command command);
  [[nodiscard]] fleet::Reply must(const Script& script, std::vector<std::string> arguments) {
    return must(command(script, std::move(arguments)));
  }
  // As `ask`. Where the reply is lost, asks again, for that long, unless it is stopped meanwhile.
  // For what may be carried out twice. `again`: whether that was so.
  [[nodiscard]] fleet::Reply insist(const fleet::Command& command, Duration limit,
                                    const Stopped& stopped, bool& again);
  // Asks for the news. Throws if there is no good reply.
  [[nodiscard]] News news();
  [[nodiscard]] batch::StoreError error(const fleet::Reply& reply) const;
  [[nodiscard]] bool up() const { return link_.up(); }

 private:
  void open(bool make, const std::string& policy);
  [[nodiscard]] std::string names_of_some();

  const RemoteOptions options_;
  const std::vector<std::string> keys_;
  std::string token_;
  std::string policy_;
  fleet::Link link_;
};

// A command without a script.
[[nodiscard]] fleet::Command plain_command(std::vector<std::string> words);

// Whether an error says that the queue was deleted.
[[nodiscard]] bool says_gone(const fleet::Reply& reply);
// Whether an error says that a key is not what a queue has there. It will not pass by itself.
[[nodiscard]] bool says_damaged(const fleet::Reply& reply);

}  // namespace httpretry::queue
