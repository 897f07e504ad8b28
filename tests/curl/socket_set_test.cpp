#include "lib/core/curl/socket_set.hpp"
#include "lib/core/base/descriptor.hpp"
#include "tests/wire/file_limit.hpp"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <vector>

using namespace httpretry;

namespace {

curl_sockaddr address_of_family(int family) {
  curl_sockaddr address{};
  address.family = family;
  address.socktype = SOCK_STREAM;
  return address;
}

// Returns an address of this machine; with port 0, any free port.
sockaddr_in loopback(int port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int local_port_of(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

void bind_to(int fd, int port) {
  const int on = 1;
  REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  const auto address = loopback(port);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

// Connects the socket with a server of its own. Returns the server's end.
Descriptor connected(int fd) {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  bind_to(listener.get(), 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  const auto server = loopback(local_port_of(listener.get()));
  REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0);
  Descriptor end(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(end.is_open());
  return end;
}

void wait_for_event(int fd, short event) {
  pollfd watched{fd, event, 0};
  REQUIRE(::poll(&watched, 1, 60'000) == 1);
}

// A program may have closed its standard input.
TEST_CASE("descriptor 0 is a socket like others") {
  SocketSet sockets;
  const int input = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  const auto fd = sockets.open(address_of_family(AF_INET));
  CHECK(fd == 0);
  CHECK(sockets.close(fd) == 0);
  if (input >= 0) {
    ::dup2(input, STDIN_FILENO);
    ::close(input);
  }
}

TEST_CASE("it tells why there is no socket") {
  SocketSet sockets;
  CHECK_FALSE(sockets.lost);
  CHECK(sockets.open(address_of_family(-1)) == -EAFNOSUPPORT);
  CHECK(sockets.lost);
  sockets.lost = false;
  const auto fd = sockets.open(address_of_family(AF_INET));
  CHECK(fd > 0);
  CHECK_FALSE(sockets.lost);
  CHECK(sockets.close(fd) == 0);
  CHECK(sockets.lost);
}

TEST_CASE("the last eight descriptors that the process may have are not for sockets") {
  SocketSet sockets;
  std::vector<Descriptor> taken;
  while (next_file() < 150) taken.emplace_back(::dup(STDERR_FILENO));
  const auto next = next_file();
  for (const bool enough : {false, true}) {
    const FileLimit limit(next + (enough ? 9U : 8U));
    const int fd = sockets.open(address_of_family(AF_INET));
    CHECK(fd == (enough ? static_cast<int>(next) : -EMFILE));
    if (fd >= 0) sockets.close(fd);
  }
}

TEST_CASE("a socket is found by its local port, with what came from its server") {
  SocketSet sockets;
  const int fd = sockets.open(address_of_family(AF_INET));
  REQUIRE(fd > 0);
  CHECK(sockets.find(0) == -1);  // it has no port yet
  Descriptor server = connected(fd);
  const int port = local_port_of(fd);
  CHECK(sockets.find(port) == fd);
  CHECK(sockets.find(port) == fd);
  CHECK_FALSE(sockets.has_unread(port));
  CHECK_FALSE(sockets.has_ended(port));

  CHECK_FALSE(sockets.is_http1(port));
  CHECK(sockets.set_http1(port) == fd);
  CHECK(sockets.is_http1(port));

  REQUIRE(::send(server.get(), "x", 1, MSG_NOSIGNAL) == 1);
  wait_for_event(fd, POLLIN);
  CHECK(sockets.has_unread(port));
  CHECK_FALSE(sockets.has_ended(port));
  server = Descriptor();
  wait_for_event(fd, POLLRDHUP);
  CHECK(sockets.has_unread(port));
  CHECK(sockets.has_ended(port));

  CHECK(sockets.close(fd) == 0);
  CHECK(sockets.find(port) == -1);
  CHECK(sockets.set_http1(port) == -1);
  CHECK_FALSE(sockets.is_http1(port));
  CHECK_FALSE(sockets.has_unread(port));
  CHECK_FALSE(sockets.has_ended(port));
}

TEST_CASE("where two sockets have one local port, either may be meant") {
  SocketSet sockets;
  const int first = sockets.open(address_of_family(AF_INET));
  const int second = sockets.open(address_of_family(AF_INET));
  bind_to(first, 0);
  const int port = local_port_of(first);
  bind_to(second, port);
  const Descriptor server = connected(first);
  const Descriptor other_server = connected(second);
  CHECK(sockets.set_http1(port) == -1);
  CHECK_FALSE(sockets.is_http1(port));
  CHECK_FALSE(sockets.has_unread(port));
  REQUIRE(::send(other_server.get(), "x", 1, MSG_NOSIGNAL) == 1);
  wait_for_event(second, POLLIN);
  CHECK(sockets.has_unread(port));

  CHECK(sockets.close(first) == 0);
  CHECK(sockets.has_unread(port));
  CHECK(sockets.set_http1(port) == second);
  CHECK(sockets.is_http1(port));
  CHECK(sockets.close(second) == 0);
  CHECK(sockets.find(port) == -1);
}

}  // namespace
