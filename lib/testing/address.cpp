#include <lib/testing/address.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <system_error>

namespace httpretry::faults {

Descriptor bind_to(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    throw std::system_error(std::make_error_code(std::errc::address_not_available),
                            "\"" + address + "\" is not an address to listen on");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> where(found, &::freeaddrinfo);

  Descriptor socket(::socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) throw_errno("socket");
  // So that a port can be had again, whatever connections are still in TIME_WAIT.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), where->ai_addr, where->ai_addrlen) != 0) throw_errno("bind");
  return socket;
}

std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_errno("getsockname");
  }
  // The port stands in the same place of both families' addresses.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace httpretry::faults
