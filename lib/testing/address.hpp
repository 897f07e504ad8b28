// Sockets and the addresses that they are bound to.
#pragma once

#include <lib/testing/descriptor.hpp>

#include <cstdint>
#include <string>

namespace httpretry::faults {

// A TCP socket bound to a literal address, not yet listening. Throws std::system_error.
[[nodiscard]] Descriptor bind_to(const std::string& address, std::uint16_t port);
[[nodiscard]] std::uint16_t port_of(const Descriptor& socket);

}  // namespace httpretry::faults
