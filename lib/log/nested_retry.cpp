#include <httpretry/flow/inside_retry.hpp>

#include <spdlog/spdlog.h>

#include <atomic>

namespace httpretry::detail {

void warn_of_nested_retry() {
  static std::atomic<bool> said = false;
  const auto logger = spdlog::default_logger();
  if (!logger || said.exchange(true, std::memory_order_relaxed)) return;
  logger->warn(
      "httpretry: a call that retries was made inside of another one: their attempts multiply. "
      "Leave the retrying to one of them (RequestOptions::retry, max_attempts). Said only once.");
}

}  // namespace httpretry::detail
