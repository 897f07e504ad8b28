// What all SendLimits do alike: those of this process (LocalState), and those that processes share
// (FleetState of lib/fleet).
#pragma once

#include "pause.hpp"
#include "slots.hpp"

#include <httpretry/flow/shared_state.hpp>

#include <optional>
#include <string_view>

namespace httpretry::guard {

// Behind the pauses of LimitKeys, the ramp of a breaker that calls wait for: they do not go out all
// at once when it closes.
inline constexpr std::size_t kRamp = 2;

// "https://api.example.com /policies/careful": the key without its kind.
[[nodiscard]] HTTPRETRY_API std::string_view without_kind(std::string_view key);

[[nodiscard]] HTTPRETRY_API const PausePolicy& pause_policy(const LimitKeys& keys,
                                                            std::size_t which);
[[nodiscard]] HTTPRETRY_API bool asks_breaker(const LimitKeys& keys, const SendAsk& ask);
[[nodiscard]] HTTPRETRY_API Pause::End ramp_end(const SendEnd* end);
// A limit that follows how sends end.
HTTPRETRY_API void learn(Slots& slots, const LimitKeys& keys, const SendEnd& end, Time now,
                         StateChanges& changes);
// Nothing for a time that never comes.
[[nodiscard]] HTTPRETRY_API std::optional<WallTime> wall_time(Time when, Time now,
                                                              WallTime wall_now);

}  // namespace httpretry::guard
