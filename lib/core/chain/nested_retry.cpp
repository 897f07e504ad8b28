#include "nested_retry.hpp"

#include <httpretry/log/log.hpp>

#include <atomic>

namespace httpretry {

void warn_of_nested_retry() {
  static std::atomic<bool> warned = false;
  if (warned.exchange(true, std::memory_order_relaxed)) return;
  write_log(LogLevel::Warning,
            "httpretry: a call that retries was made inside the function of retry_call: their "
            "attempts multiply. Let only one of them retry (RequestOptions::retry, max_attempts). "
            "Logged only once.");
}

}  // namespace httpretry
