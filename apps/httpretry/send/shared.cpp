#include "send/shared.hpp"

#include "cli/message.hpp"
#include "cli/text.hpp"

#include <httpretry/fleet/redis.hpp>
#include <httpretry/log/log.hpp>

#include <stdexcept>

namespace httpretry::cli {

std::vector<Flag> shared_flags(std::optional<std::string>& url) {
  return {
      {'\0', "shared", "URL",
       "share rates, limits, circuits, pauses and budgets with all processes that use this Redis "
       "server: redis://:PASSWORD@HOST/DATABASE?workers=N (default: $HTTPRETRY_SHARED)",
       [&url](const std::string& value) { url = value; }}};
}

std::shared_ptr<SharedState> shared_state(const std::optional<std::string>& url, bool quiet) {
  constexpr const char* kSharedVariable = "HTTPRETRY_SHARED";
  const auto server = url ? *url : environment_variable(kSharedVariable);
  if (server.empty()) return nullptr;
  log_to([quiet](LogLevel, std::string_view line) {
    if (!quiet) print_message("httpretry: " + printable(line));
  });
  try {
    return redis(server);
  } catch (const std::invalid_argument& error) {
    const std::string source = url ? "option --shared" : kSharedVariable;
    throw UsageError(source + ": " + error.what());
  }
}

}  // namespace httpretry::cli
