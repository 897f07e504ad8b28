#include "fleet_state.hpp"

#include <httpretry/fleet/redis.hpp>

#include <algorithm>
#include <stdexcept>

namespace httpretry {

// Returns the state that processes share on a Redis server, and connects in the background. Throws
// std::invalid_argument if the URL is malformed or names a queue.
std::shared_ptr<SharedState> redis(std::string_view url) {
  auto address = fleet::parse_address(url);
  if (!address) throw std::invalid_argument(address.error().message);
  if (!address->job.empty()) {
    throw std::invalid_argument("Redis URL: 'job' is the name of a queue, and limits have none");
  }
  fleet::Link::Options options;
  options.reply_timeout = address->timeout;
  options.connect_timeout = std::max(options.connect_timeout, address->timeout);
  options.address = *std::move(address);
  return std::make_shared<fleet::FleetState>(std::move(options));
}

}  // namespace httpretry
