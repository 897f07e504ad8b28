// Sockets at numeric addresses: no name is ever looked up.
#pragma once

#include <lib/core/base/descriptor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry::faults {

[[noreturn]] void throw_errno(const char* what);

// A TCP socket bound to an IPv4 or IPv6 address, not yet listening. Throws std::system_error.
[[nodiscard]] Descriptor bind_to(const std::string& address, std::uint16_t port);
[[nodiscard]] std::uint16_t port_of(const Descriptor& socket);

// A connected TCP socket; a closed one if nobody listens; nothing if the address or port is not
// numeric. Blocks: meant for the loopback interface, where connecting takes no time.
[[nodiscard]] std::optional<Descriptor> connect_to(const std::string& address,
                                                   const std::string& port);

}  // namespace httpretry::faults
