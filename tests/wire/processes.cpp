#include "processes.hpp"
#include "tests/waiting.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace httpretry {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

bool accepts(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(port);
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

pid_t spawn(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> args;
  for (const auto& word : command) args.push_back(const_cast<char*>(word.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  REQUIRE(failed == 0);
  return pid;
}

}  // namespace

ServerProcess::ServerProcess(const char* package, const Command& command, const std::string& log) {
  // Another process may take the port between our look and the server's.
  for (int tries = 0; tries < 5 && pid_ < 0; ++tries) {
    port_ = free_port();
    const auto words = command(port_);
    REQUIRE_MESSAGE(::access(words[0].c_str(), X_OK) == 0,
                    words[0] << " (package " << package << ") is not installed");
    pid_ = spawn(words, log);
    wait_until([&] {
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
      return pid_ < 0 || accepts(port_);
    });
  }
  REQUIRE_MESSAGE(pid_ > 0, command(port_)[0] << " does not start");
}

ServerProcess::~ServerProcess() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace httpretry
