// What the library itself logs.
#include "lib/flow/nested_retry.hpp"
#include "lib/policy/policy_set_data.hpp"

#include <spdlog/spdlog.h>

#include <atomic>

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

void warn_of_nested_retry() {
  static std::atomic<bool> warned = false;
  const auto logger = spdlog::default_logger();
  if (!logger || warned.exchange(true, std::memory_order_relaxed)) return;
  logger->warn(
      "httpretry: a call that retries was made inside the function of retry_call: their attempts "
      "multiply. Let only one of them retry (RequestOptions::retry, max_attempts). Logged only "
      "once.");
}

}  // namespace httpretry
