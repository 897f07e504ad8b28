// What traces() keeps of a call, in the values that its middlewares and observers share.
#pragma once

#include <httpretry/telemetry/traces.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace httpretry::telemetry {

struct CallTrace {
  // A send whose span has not been given away: it is under way, or nobody has judged it yet.
  struct Open {
    int number = 0;  // of the exchange
    bool ended = false;
    std::unique_ptr<Span> span;
  };

  const void* owner = nullptr;  // the observer
  TraceContext context;         // `span` is that of the call
  std::unique_ptr<Span> call;   // nullptr: not sampled
  WallTime started{};
  int sends = 0;                // of exchanges that have ended
  std::uint64_t last_send = 0;  // the id of its span
  std::vector<Open> open;
};

// Never 0. Not the same in a forked child.
std::uint64_t random_id();

}  // namespace httpretry::telemetry
