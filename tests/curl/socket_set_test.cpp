#include "lib/core/curl/socket_set.hpp"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>

using namespace httpretry;

namespace {

curl_sockaddr address_of_family(int family) {
  curl_sockaddr address{};
  address.family = family;
  address.socktype = SOCK_STREAM;
  return address;
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
  CHECK(sockets.open(address_of_family(-1)) == -EAFNOSUPPORT);
  const auto fd = sockets.open(address_of_family(AF_INET));
  CHECK(fd > 0);
  CHECK(sockets.close(fd) == 0);
}

}  // namespace
