// A SharedState in the memory of this process.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/guard/shared_state.hpp>

#include <memory>

namespace httpretry {

// Returns a new state, for all clients that receive it. It is thread-safe.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<SharedState> local_state();

}  // namespace httpretry
