// Links what shares limits on a Redis server, which brings the library along, and hiredis.
#include <httpretry/fleet/redis.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>

int main() {
  try {
    static_cast<void>(httpretry::redis("rediss://localhost"));
    std::puts("consumer_of_fleet: TLS was accepted");
    return 1;
  } catch (const std::invalid_argument&) {
  }
  // Nobody listens there.
  const auto state = httpretry::redis("redis://127.0.0.1:1/0?workers=4");
  if (!state->states("", std::chrono::steady_clock::now()).empty()) {
    std::puts("consumer_of_fleet: a new state is not empty");
    return 1;
  }
  std::puts("consumer_of_fleet: ok");
}
