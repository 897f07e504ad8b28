// Servers that are programs of their own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace httpretry {

// A program that listens on a port of the loopback interface, until this goes. REQUIREs that it is
// installed and starts.
class ServerProcess {
 public:
  using Command = std::function<std::vector<std::string>(int port)>;
  // What it prints goes to the file `log`.
  ServerProcess(const char* package, const Command& command, const std::string& log);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  [[nodiscard]] int port() const { return port_; }

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace httpretry
