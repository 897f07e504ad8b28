// Presets: ready-made policies, named after the systems whose behaviour they are.
//
// A preset is data: the text that a policy file would hold, an object with the keys of a policy. It
// states max_attempts, max_elapsed_time with its rule, both backoffs, retry_on, repeat and budget
// whole; timeouts, server_delay and idempotency_key only where that system has its own. The rest
// comes from `standard`, which is also what a default-constructed RetryPolicy holds.
#pragma once

#include <httpretry/export.hpp>

#include <span>
#include <string_view>

namespace httpretry {

struct Preset {
  std::string_view name;
  std::string_view description;  // one line
  std::string_view json;
};

// All of them; `standard` first.
[[nodiscard]] HTTPRETRY_API std::span<const Preset> presets();

// nullptr where there is none of that name.
[[nodiscard]] HTTPRETRY_API const Preset* find_preset(std::string_view name);

}  // namespace httpretry
