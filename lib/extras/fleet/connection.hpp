// Connection: one connection to a Redis server, by hiredis. It tells which events of its descriptor
// it wants, and is told which have come; one thread at a time uses it.
#pragma once

#include "reply.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

struct redisAsyncContext;

namespace httpretry::fleet {

class Connection {
 public:
  // A reply, in the order of the commands. Must not throw.
  using Done = std::function<void(Reply)>;

  Connection() = default;
  ~Connection() { close("the connection was closed"); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins to connect; looks up a name on the spot. False: `error` says why not.
  bool open(const std::string& host, int port);
  // All commands without a reply are lost.
  void close(const std::string& why);
  void send(const std::vector<std::string>& words, Done done);

  [[nodiscard]] bool is_open() const { return context_ != nullptr; }
  [[nodiscard]] bool connected() const { return context_ != nullptr && connected_; }
  // Why it is not open.
  [[nodiscard]] const std::string& error() const { return error_; }

  // For poll: the descriptor, the events that are wanted, and those that have come.
  [[nodiscard]] int descriptor() const;
  [[nodiscard]] short wanted() const;
  void on_events(short events);

 private:
  static void on_status(const redisAsyncContext* context, int status);
  static void on_reply(redisAsyncContext* context, void* reply, void* done);

  redisAsyncContext* context_ = nullptr;
  bool connected_ = false;
  bool wants_to_read_ = false;
  bool wants_to_write_ = false;
  std::string error_;
};

}  // namespace httpretry::fleet
