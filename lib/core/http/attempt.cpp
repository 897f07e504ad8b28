#include <httpretry/http/attempt.hpp>

#include <algorithm>

namespace httpretry {

Exchange Attempt::exchange() const {
  Exchange exchange;
  exchange.sent = sent;
  exchange.wire_sends = wire_sends;
  exchange.queued_by = queued_by;
  exchange.reused_connection = reused_connection_;
  exchange.stale_connection = stale_connection_;
  exchange.refused = refused_;
  exchange.body_sent = body_sent_;
  exchange.body_received = body_received_;
  exchange.timings = timings_;
  return exchange;
}

void Attempt::set_exchange(const Exchange& exchange) {
  sent = exchange.sent;
  wire_sends = exchange.wire_sends;
  queued_by = exchange.queued_by;
  reused_connection_ = exchange.reused_connection;
  stale_connection_ = exchange.stale_connection;
  refused_ = exchange.refused;
  body_sent_ = exchange.body_sent;
  body_received_ = exchange.body_received;
  timings_ = exchange.timings;
}

// Returns the last attempt, except for those whose response lost a race of hedges, or nullptr.
const Attempt* History::last() const {
  const auto found = std::find_if(attempts.rbegin(), attempts.rend(),
                                  [](const Attempt& each) { return each.race != Race::Lost; });
  return found == attempts.rend() ? nullptr : &*found;
}

// Returns the URL that an attempt polled instead of the request's, or nullptr.
const PolledUrl* History::polled_by(const Attempt& attempt) const {
  for (const auto& each : polled) {
    if (attempt.number >= each.first_attempt && attempt.number <= each.last_attempt) return &each;
  }
  return nullptr;
}

}  // namespace httpretry
