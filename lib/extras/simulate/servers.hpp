// The models of servers.
#pragma once

#include "network.hpp"

#include <memory>

namespace httpretry::simulation {

[[nodiscard]] std::unique_ptr<Server> make_server(Network& network);

}  // namespace httpretry::simulation
