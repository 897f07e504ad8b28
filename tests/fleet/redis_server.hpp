// RedisServer: a real redis-server on a free port of 127.0.0.1, with a directory of its own, for as
// long as it lives.
#pragma once

#include "lib/extras/fleet/link.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

class RedisServer {
 public:
  // Throws std::runtime_error where it does not start. `options` as on its command line.
  explicit RedisServer(std::vector<std::string> options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  // "redis://127.0.0.1:PORT/0"
  [[nodiscard]] std::string url() const;
  [[nodiscard]] httpretry::fleet::Address address() const;

  void stop();     // with its data written, where it persists
  void kill();     // at once
  void start();    // again, on the same port and directory
  void suspend();  // it keeps its connections, and does nothing
  void resume();

 private:
  void wait_until_ready(int output);

  std::vector<std::string> options_;
  std::string directory_;
  int port_ = 0;
  pid_t process_ = -1;
};

// The reply to a command, which is waited for.
httpretry::fleet::Reply ask(httpretry::fleet::Link& link, httpretry::fleet::Command command);
httpretry::fleet::Reply ask(httpretry::fleet::Link& link, std::vector<std::string> words);
