#include <lib/extras/testing/sockets.hpp>

#include <lib/core/base/owned.hpp>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <system_error>

namespace httpretry::faults {
namespace {

using Address = Owned<addrinfo, ::freeaddrinfo>;

// Returns null if `host` or `port` is not numeric.
Address parse(const std::string& host, const std::string& port, int flags = 0) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | flags;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const bool valid = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) == 0;
  return Address(valid ? found : nullptr);
}

Descriptor open_socket(const addrinfo& address, int flags) {
  return Descriptor(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | flags, 0));
}

}  // namespace

void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Returns a TCP socket that is bound to the address but does not listen. Throws std::system_error.
Descriptor bind_to(const std::string& address, std::uint16_t port) {
  const auto parsed = parse(address, std::to_string(port), AI_PASSIVE);
  if (!parsed) {
    throw std::system_error(std::make_error_code(std::errc::address_not_available),
                            "\"" + address + "\" is not an IPv4 or IPv6 address");
  }
  auto socket = open_socket(*parsed, SOCK_NONBLOCK);
  if (!socket.is_open()) throw_errno("socket");
  // Allows a restart on the same port while old connections are in TIME_WAIT.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), parsed->ai_addr, parsed->ai_addrlen) != 0) throw_errno("bind");
  return socket;
}

std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_errno("getsockname");
  }
  // IPv4 and IPv6 addresses have the port at the same offset.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// Returns a connected socket; a closed one if no server listens there; nullopt if the address or
// port is not numeric.
std::optional<Descriptor> connect_to(const std::string& address, const std::string& port) {
  const auto parsed = parse(address, port);
  if (!parsed) return std::nullopt;
  auto socket = open_socket(*parsed, /*flags=*/0);
  if (socket.is_open() && ::connect(socket.get(), parsed->ai_addr, parsed->ai_addrlen) != 0) {
    socket.close();
  }
  return socket;
}

}  // namespace httpretry::faults
