// Clients on an EventLoop, and a program that drives one.
#pragma once

#include "wire.hpp"

#include <httpretry/client/event_loop.hpp>

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace httpretry {

inline ClientOptions options_on(std::shared_ptr<EventLoop> loop, std::vector<MiddlewarePtr> chain) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.scheduler = std::move(loop);
  return options;
}

inline Client client_on(std::shared_ptr<EventLoop> loop, std::vector<MiddlewarePtr> chain) {
  return Client(options_on(std::move(loop), std::move(chain)));
}

inline bool is_readable(const EventLoop& loop) {
  pollfd ready{loop.descriptor(), POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

inline void wait_and_turn(EventLoop& loop, std::chrono::milliseconds most = std::chrono::hours(1)) {
  const auto wait = std::min(loop.time_left().value_or(most), most);
  pollfd ready{loop.descriptor(), POLLIN, 0};
  ::poll(&ready, 1, static_cast<int>(wait.count()));
  loop.turn();
}

// For what happens in a turn.
template <class Condition>
void turn_until(EventLoop& loop, const Condition& condition) {
  while (!condition()) wait_and_turn(loop);
}

// For what happens elsewhere, because of the turns.
template <class Condition>
void turn_until_seen(EventLoop& loop, const Condition& condition) {
  while (!condition()) wait_and_turn(loop, std::chrono::milliseconds(5));
}

}  // namespace httpretry
