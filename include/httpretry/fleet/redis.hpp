// Limits that many processes share through a Redis server. This is a separate library: link
// httpretry::fleet, or httpretry-fleet with pkg-config.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/guard/shared_state.hpp>

#include <memory>
#include <string_view>

namespace httpretry {

// Returns a state in which all processes that use the same database of the same server share their
// rates, limits on concurrent sends, circuit breakers, pauses, retry budgets and the send rates of
// `adaptive`. All of them need the same policy file:
//
//   ClientOptions options;
//   options.policies = PolicySource::watch("policy.json").value();
//   options.shared_state = redis("redis://:password@redis.internal/0?workers=4");
//
// The URL: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?workers=N&timeout=MS]
//
// A background thread makes and keeps the connection. The server counts as away if it cannot be
// reached or does not reply within `timeout` (50 ms). Until it is back, this process decides alone,
// with its share of each limit: 1/N, where N is the number of processes when the server last
// replied, but at least `workers`. One log line reports when this begins and one when it ends, and
// observers are notified through `shared_state_changed`. lib/extras/fleet/README.md describes the
// guarantees in that time, and the limits that each process keeps to itself.
//
// Throws std::invalid_argument with the reason if the URL is malformed or begins with rediss://:
// encrypted connections are not supported.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<SharedState> redis(std::string_view url);

}  // namespace httpretry
