// The models of servers.
#pragma once

#include "network.hpp"

#include <memory>

namespace httpretry::simulation {

// Returns the server for the model of the network's world.
[[nodiscard]] std::unique_ptr<Server> make_server(Network& network);

}  // namespace httpretry::simulation
