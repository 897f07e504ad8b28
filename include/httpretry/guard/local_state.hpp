// The states of one process, in memory.
#pragma once

#include <httpretry/guard/shared_state.hpp>

#include <memory>

namespace httpretry {

// For all who get it. Safe to use from many threads.
[[nodiscard]] HTTPRETRY_API std::shared_ptr<SharedState> local_state();

}  // namespace httpretry
