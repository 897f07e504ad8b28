// Opens sockets at numeric addresses, without looking up names.
#pragma once

#include <lib/core/base/descriptor.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace httpretry::faults {

[[noreturn]] void throw_errno(const char* what);

// Returns a TCP socket that is bound to an IPv4 or IPv6 address but does not listen. Throws
// std::system_error.
[[nodiscard]] Descriptor bind_to(const std::string& address, std::uint16_t port);
[[nodiscard]] std::uint16_t port_of(const Descriptor& socket);

// Returns a connected TCP socket; a closed one if no server listens there; nullopt if the address
// or port is not numeric. Blocks, so use it only for the loopback interface, where connecting takes
// no time.
[[nodiscard]] std::optional<Descriptor> connect_to(const std::string& address,
                                                   const std::string& port);

}  // namespace httpretry::faults
