// What a proxy does after a CONNECT: bytes in both directions.
#pragma once

#include <lib/testing/channel.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace httpretry::faults {

// A connection to "host:port", where host is this machine's loopback. On failure an empty pointer,
// and in `status` what the proxy should answer.
[[nodiscard]] std::unique_ptr<Channel> connect_loopback(std::string_view authority, int stop_fd,
                                                        int& status);

// Passes bytes on until both sides have finished; an RST on one side becomes one on the other.
// `first` are bytes of the client that were read already.
void relay(Channel& client, Channel& origin, std::string first);

}  // namespace httpretry::faults
