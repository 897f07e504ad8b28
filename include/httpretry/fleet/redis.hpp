// Limits that many processes share, on a Redis server. In a library of its own: link
// httpretry::fleet, or httpretry-fleet of pkg-config.
#pragma once

#include <httpretry/guard/shared_state.hpp>

#include <memory>
#include <string_view>

namespace httpretry {

// Rates, limits of concurrent sends, circuit breakers, pauses, budgets for retries and the send
// rates of `adaptive` count for all processes that use the same database of the same server, each
// with the same policy file:
//
//   ClientOptions options;
//   options.policies = PolicySource::watch("policy.json").value();
//   options.shared_state = redis("redis://:password@redis.internal/0?workers=4");
//
// The URL: redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE][?workers=N&timeout=MS]
//
// Connects in the background, with a thread of its own. While the server is away, or does not reply
// within `timeout` (50 ms), this process goes on with its share of each limit: one of as many as
// there were processes when the server last replied, and of `workers` at least. One log line says
// when that begins, one when it ends; observers are told by `shared_state_changed`. What is
// promised then, and what each process keeps for itself, is in lib/extras/fleet/README.md.
//
// Throws std::invalid_argument with the reason where the URL is none, or begins with rediss://: the
// connection is not encrypted.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<SharedState> redis(std::string_view url);

}  // namespace httpretry
