// What the tests of the exporter share.
#pragma once

#include <httpretry/retry/retry_policy.hpp>
#include <httpretry/telemetry/otlp.hpp>
#include <httpretry/testing/testing.hpp>

#include <chrono>

namespace httpretry {

inline RetryPolicy quick() {
  RetryPolicy policy;
  policy.backoff = Backoff::constant(std::chrono::milliseconds(1));
  policy.throttle_backoff.reset();
  policy.max_attempts = 3;
  return policy;
}

// Only flush sends.
inline OtlpOptions to(const FaultServer& collector) {
  OtlpOptions options;
  options.endpoint = collector.url();
  options.policy = quick();
  options.policy->repeat = Repeat::Always;
  options.interval = options.metrics_interval = std::chrono::hours(1);
  options.timeout = std::chrono::milliseconds(300);
  options.shutdown = Duration::zero();
  return options;
}

}  // namespace httpretry
