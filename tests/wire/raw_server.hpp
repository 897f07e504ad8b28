// A server of a few lines for what FaultServer cannot do: a function per connection, on a thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace httpretry {

class RawServer {
 public:
  // `serve` is called with the listening socket, on the server's thread.
  explicit RawServer(std::function<void(int listener)> serve);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  [[nodiscard]] std::string url(const char* scheme = "http") const;

 private:
  int listener_;
  int port_ = 0;
  std::thread thread_;
};

// Reads until `end` was read; what was read.
std::string read_until(int fd, const std::string& end);
void write_all(int fd, const std::string& text);

}  // namespace httpretry
