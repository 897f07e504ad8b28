// Connection: one connection to a Redis server, through hiredis. The owner polls its descriptor for
// `wanted_events` and passes the events to `on_events`. Not thread-safe.
//
// Whatever the server sends, memory and time are limited: the connection closes after a reply that
// is too large, malformed, or not to any command. This is why it does not use hiredis's callbacks:
// they abort the process after a reply too many.
#pragma once

#include "reply.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

struct redisContext;

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
  [[nodiscard]] bool is_connected() const { return connected_; }
  // Returns the reason why the connection is not open.
  [[nodiscard]] const std::string& error() const { return error_; }

  // For poll: the descriptor (-1 if closed), the events to wait for, and a function for those that
  // occurred.
  [[nodiscard]] int descriptor() const;
  [[nodiscard]] short wanted_events() const;
  void on_events(short events);

 private:
  void on_connected();
  void read_replies();

  redisContext* context_ = nullptr;
  bool connected_ = false;
  bool wants_to_write_ = false;
  std::deque<Done> awaited_;       // for each command without a reply, in the order of the commands
  std::size_t element_count_ = 0;  // of the reply that is being read
  std::string error_;
};

}  // namespace httpretry::fleet
