#include "redis_server.hpp"

#include "lib/core/base/descriptor.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <future>
#include <stdexcept>

using namespace httpretry;

namespace {

// A port that nobody listens on. Another may take it before we do, so a start is tried again.
int free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), generic, length) != 0 ||
      ::getsockname(socket.get(), generic, &length) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> options) : options_(std::move(options)) {
  std::string name = (std::filesystem::temp_directory_path() / "httpretry-redis-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory for redis-server");
  directory_ = name;
  for (int attempt = 1;; ++attempt) {
    port_ = free_port();
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == 5) throw;
    }
  }
}

RedisServer::~RedisServer() {
  kill();
  std::error_code ignored;  // a directory in /tmp that stays is no failure of a test
  std::filesystem::remove_all(directory_, ignored);
}

std::string RedisServer::url() const { return "redis://127.0.0.1:" + std::to_string(port_) + "/0"; }

fleet::Address RedisServer::address() const { return fleet::parse_address(url()).value(); }

void RedisServer::start() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const Descriptor output(ends[0]);
  std::vector<std::string> words = {
      "redis-server", "--bind", "127.0.0.1",   "--port", std::to_string(port_), "--dir", directory_,
      "--save",       "",       "--daemonize", "no"};
  words.insert(words.end(), options_.begin(), options_.end());
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv("/usr/bin/redis-server", arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  wait_until_ready(output.get());
}

void RedisServer::wait_until_ready(int output) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto count = ::read(output, buffer.data(), buffer.size());
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.find("Ready to accept connections") != std::string::npos) return;
  }
  kill();
  throw std::runtime_error("redis-server does not start: " + text);
}

void RedisServer::stop() {
  if (process_ < 0) return;
  ::kill(process_, SIGTERM);
  ::waitpid(std::exchange(process_, -1), nullptr, 0);
}

void RedisServer::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(std::exchange(process_, -1), nullptr, 0);
}

void RedisServer::suspend() { ::kill(process_, SIGSTOP); }

void RedisServer::resume() { ::kill(process_, SIGCONT); }

fleet::Reply ask(fleet::Link& link, fleet::Command command) {
  std::promise<fleet::Reply> promise;
  auto reply = promise.get_future();
  link.post(std::move(command),
            [&promise](fleet::Reply got) { promise.set_value(std::move(got)); });
  return reply.get();
}

fleet::Reply ask(fleet::Link& link, std::vector<std::string> words) {
  fleet::Command command;
  command.words = std::move(words);
  return ask(link, std::move(command));
}
