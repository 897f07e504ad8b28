#include "wire.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace httpretry {

ClosedPort::ClosedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
}

ClosedPort::~ClosedPort() { ::close(fd_); }

std::string ClosedPort::url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }

}  // namespace httpretry
