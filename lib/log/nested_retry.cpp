#include "lib/flow/nested_retry.hpp"

#include <spdlog/spdlog.h>

#include <atomic>

namespace httpretry {

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
