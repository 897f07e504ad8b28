// The proxy side of CONNECT: bytes in both directions.
#pragma once

#include <lib/testing/channel.hpp>

namespace httpretry::faults {

// Connects to "host:port", where host must be this machine's loopback. On failure returns null and
// sets `status` to the proxy's response.
[[nodiscard]] std::unique_ptr<Channel> connect_loopback(std::string_view authority, int stop_fd,
                                                        int& status);

// Forwards bytes until both sides have finished sending; an RST on one side becomes an RST on the
// other. `first` holds bytes of the client that were already read.
void relay(Channel& client, Channel& origin, std::string first);

}  // namespace httpretry::faults
