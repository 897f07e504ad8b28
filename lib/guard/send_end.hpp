// What the end of a send says about the server.
#pragma once

#include <httpretry/flow/call.hpp>
#include <httpretry/flow/shared_state.hpp>
#include <httpretry/retry/classify.hpp>
#include <httpretry/retry/retry_policy.hpp>
#include <httpretry/retry/server_delay.hpp>

#include <optional>

namespace httpretry::guard {

// For SendLimits. `sent`: when it went to the wire.
[[nodiscard]] SendEnd end_of(const RetryPolicy& policy, const Classified& found,
                             const Outcome& outcome, const Call& call, Time sent);

// How long the server asks all senders to wait; empty where it does not.
[[nodiscard]] std::optional<ServerDelay> asked_pause(const Classified& found,
                                                     const Outcome& outcome, WallTime wall_now);

}  // namespace httpretry::guard
