// --shared: shares the limits of a run with other processes.
#pragma once

#include "cli/args.hpp"

#include <httpretry/guard/shared_state.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::cli {

#ifdef HTTPRETRY_WITH_FLEET
// Returns the flag, which sets `url`.
std::vector<Flag> shared_flags(std::optional<std::string>& url);

// Returns the state for the clients of the run, from `url` or the environment, or null if neither
// names a server. Prints problems with the server, unless `quiet`. Throws UsageError.
std::shared_ptr<SharedState> shared_state(const std::optional<std::string>& url, bool quiet);
#else
// Without httpretry::fleet the option does not exist.
inline std::vector<Flag> shared_flags(std::optional<std::string>& /*url*/) { return {}; }
inline std::shared_ptr<SharedState> shared_state(const std::optional<std::string>& /*url*/,
                                                 bool /*quiet*/) {
  return nullptr;
}
#endif

}  // namespace httpretry::cli
