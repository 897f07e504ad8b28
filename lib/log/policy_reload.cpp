#include "lib/policy/policy_set_data.hpp"

#include <spdlog/spdlog.h>

namespace httpretry {

void log_policy_reload(const PolicyReload& reload) {
  const auto logger = spdlog::default_logger();
  if (!logger) return;
  std::string lines;
  for (const auto& problem : reload.problems) lines += "\n" + to_string(problem);
  if (reload.accepted) {
    logger->info("httpretry: the policies of {} were read again{}", reload.file, lines);
  } else {
    logger->error("httpretry: {} is refused, and the policies read before stay in force:{}",
                  reload.file, lines);
  }
}

}  // namespace httpretry
