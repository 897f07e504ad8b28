// Presets: ready-made policies, each named after the system whose behavior it reproduces.
//
// A preset is data: the JSON object with the keys of a policy that a policy file would contain. It
// always sets max_attempts, max_elapsed_time with its rule, both backoffs, retry_on, repeat and
// budget completely. It sets timeouts, server_delay and idempotency_key only if the system has its
// own values. Everything else comes from "standard", which is also the value of a
// default-constructed RetryPolicy.
#pragma once

#include <httpretry/export.hpp>

#include <span>
#include <string_view>

namespace httpretry {

// A ready-made policy, with its name and its JSON.
struct Preset {
  std::string_view name;
  std::string_view description;  // one line
  std::string_view json;         // the keys of a policy, as in a policy file
};

// Returns all presets, "standard" first.
[[nodiscard]] HTTPRETRY_API std::span<const Preset> presets();

// Returns the preset of that name, or nullptr.
[[nodiscard]] HTTPRETRY_API const Preset* find_preset(std::string_view name);

}  // namespace httpretry
