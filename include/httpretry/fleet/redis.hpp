// Limits that many processes share, on a Redis server. In a library of its own: link
// httpretry::fleet, or httpretry-fleet of pkg-config.
#pragma once

#include <httpretry/flow/shared_state.hpp>

#include <memory>
#include <string_view>

namespace httpretry {

// Rates, circuit breakers, limits of concurrent sends and pauses count for all processes that use
// the same database of the same server, each with the same policy file:
//
//   ClientOptions options;
//   options.policies = PolicySource::watch("policy.json");
//   options.shared_state = redis("redis://:password@redis.internal/0?workers=4");
//
// Connects in the background, with a thread of its own. As long as the server is away, or does not
// respond within 50 ms, this process goes on with its share of each limit: one of as many as there
// were processes when the server last replied, and of `workers` at least. One log line tells when
// that begins, one when it ends.
//
// Throws std::invalid_argument, with the reason, for a URL that is none, and for rediss://: the
// connection is not encrypted.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<SharedState> redis(std::string_view url);

}  // namespace httpretry
