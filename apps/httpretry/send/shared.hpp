// --shared: the limits of a run are shared with other processes.
#pragma once

#include "cli/args.hpp"

#include <httpretry/guard/shared_state.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry::cli {

#ifdef HTTPRETRY_WITH_FLEET
// The flag, which sets `url`.
std::vector<Flag> shared_flags(std::optional<std::string>& url);

// The state for the clients of the run, by `url` or the environment; null: none is wanted. What is
// wrong with the server is a message, unless `quiet`. Throws UsageError.
std::shared_ptr<SharedState> shared_state(const std::optional<std::string>& url, bool quiet);
#else
// Without httpretry::fleet there is no such option.
inline std::vector<Flag> shared_flags(std::optional<std::string>& /*url*/) { return {}; }
inline std::shared_ptr<SharedState> shared_state(const std::optional<std::string>& /*url*/,
                                                 bool /*quiet*/) {
  return nullptr;
}
#endif

}  // namespace httpretry::cli
