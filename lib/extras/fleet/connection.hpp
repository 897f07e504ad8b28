// Connection: one connection to a Redis server, through hiredis. The owner polls its descriptor for
// `wanted_events` and passes the events to `on_events`. Not thread-safe.
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
  // Receives the reply to one command, in the order of the commands. Must not throw.
  using Done = std::function<void(Reply)>;

  Connection() = default;
  ~Connection() { close("the connection was closed"); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begins to connect. Blocks while it resolves a host name. Returns false if that fails; `error`
  // has the reason.
  bool open(const std::string& host, int port);
  // Closes the connection. Each command without a reply gets Reply::Kind::Lost.
  void close(const std::string& why);
  void send(const std::vector<std::string>& words, Done done);

  [[nodiscard]] bool is_open() const { return context_ != nullptr; }
  [[nodiscard]] bool is_connected() const { return context_ != nullptr && connected_; }
  // Returns the reason why the connection is not open.
  [[nodiscard]] const std::string& error() const { return error_; }

  // For poll: the descriptor (-1 if closed), the events to wait for, and a function for those that
  // occurred.
  [[nodiscard]] int descriptor() const;
  [[nodiscard]] short wanted_events() const;
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
