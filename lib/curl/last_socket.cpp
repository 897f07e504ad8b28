#include "last_socket.hpp"

#include "lib/http/descriptor.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace httpretry {

void LastSocket::opened(const curl_sockaddr& address, int error) noexcept {
  error_ = error;
  address_ = {};
  if (address.addrlen <= sizeof address_) std::memcpy(&address_, &address.addr, address.addrlen);
}

// UDP has ports of its own, so it can be connected without a free port of TCP.
bool LastSocket::lacks_port(int error) const {
  if (error != EADDRNOTAVAIL) return false;
  const auto family = address_.sin6_family;
  if (family != AF_INET && family != AF_INET6) return false;
  const Descriptor udp(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return udp.open() && ::connect(udp.get(), reinterpret_cast<const sockaddr*>(&address_),
                                 family == AF_INET ? sizeof(sockaddr_in) : sizeof address_) == 0;
}

}  // namespace httpretry
