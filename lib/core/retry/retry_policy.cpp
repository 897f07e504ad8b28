#include <httpretry/retry/retry_policy.hpp>

#include "lib/core/base/text.hpp"
#include "policy_limits.hpp"

#include <algorithm>
#include <cmath>

namespace httpretry {

using namespace std::chrono_literals;

StatusSet::StatusSet(std::initializer_list<int> statuses) {
  for (const auto status : statuses) add(status);
}

void StatusSet::add(int first, int last) {
  for (auto status = std::max(first, 100); status <= std::min(last, 599); ++status) {
    bits_.set(static_cast<std::size_t>(status - 100));
  }
}

void StatusSet::remove(int first, int last) {
  StatusSet removed;
  removed.add(first, last);
  bits_ &= ~removed.bits_;
}

ErrorRule::ErrorRule(Family rules) : family(rules) {}

PendingRule::PendingRule() {
  backoff.kind = Backoff::Kind::Constant;
  backoff.initial = 1s;
}

// 501, 505, 507 and 511 mean that a retry would give the same result. A 413 with Retry-After means
// that the server has no room now (RFC 9110 §15.5.14).
RetryOn::RetryOn() : statuses{408, 421, 425}, throttle_statuses{429} {
  statuses.add(500, 599);
  for (const auto hopeless : {501, 505, 507, 511}) statuses.remove(hopeless, hopeless);
  using Family = ErrorRule::Family;
  for (const auto family :
       {Family::Aws, Family::Google, Family::Github, Family::Openai, Family::Stripe}) {
    error_codes.emplace_back(family);
  }
  auto& too_large_now = error_codes.emplace_back();
  too_large_now.status = StatusSet{413};
  too_large_now.source = ErrorRule::Source::Header;
  too_large_now.selector = "retry-after";
  too_large_now.as = Class::Throttle;
}

ServerDelayPolicy::ServerDelayPolicy()
    : headers{ServerDelaySource::RetryAfter,      ServerDelaySource::RetryAfterMs,
              ServerDelaySource::XMsRetryAfterMs, ServerDelaySource::XAmzRetryAfter,
              ServerDelaySource::XRateLimitReset, ServerDelaySource::XRateLimitResets,
              ServerDelaySource::AnthropicResets, ServerDelaySource::RateLimitReset,
              ServerDelaySource::RateLimit,       ServerDelaySource::GrpcRetryPushback},
      max(1min) {}

BreakerPolicy::BreakerPolicy()
    : open_for(Backoff::exponential({.initial = 5s,
                                     .multiplier = 2,
                                     .max_interval = 1min,
                                     .jitter = Backoff::Jitter::Proportional})) {
  open_for.randomization = 0.2;
}

// Sets the defaults. Five attempts survive a restart of 2.5 s; tests/retry/standard_test.cpp has
// the figures. Equal jitter waits at least half of 1, 2, 4 and 8 times the initial wait.
RetryPolicy::RetryPolicy()
    : max_attempts(5),
      max_elapsed_time(60s),
      connect_timeout(10s),
      stall_timeout(30s),
      backoff(Backoff::exponential({.initial = 300ms})),
      throttle_backoff(Backoff::exponential({.initial = 1s})) {
  budget.kind = BudgetPolicy::Kind::Tokens;
  budget.retry_cost = 5'000;
  budget.throttle_cost = 5'000;
  budget.timeout_cost = 10'000;
}

RetryPolicy RetryPolicy::standard(const StandardPolicy& changes) {
  RetryPolicy policy;
  policy.max_attempts = changes.max_attempts;
  policy.max_elapsed_time = changes.max_elapsed_time;
  policy.attempt_timeout = changes.attempt_timeout;
  policy.response_timeout = changes.response_timeout;
  policy.repeat = changes.repeat;
  policy.retry_on.statuses.add(changes.also_retry);
  return policy;
}

std::string policy::quantile_text(double quantile) {
  return "p" + text_of(std::round(quantile * 1e5) / 1e3);
}

std::string_view to_string(TransportKind kind) {
  return enum_word<TransportKind::Partial>(
      kind, {"resolve", "connect", "tls", "timeout", "send", "receive", "protocol", "partial"});
}

std::string_view to_string(ErrorRule::Family family) {
  return enum_word<ErrorRule::Family::Stripe>(
      family, {"custom", "aws", "google", "github", "openai", "anthropic", "stripe"});
}

std::string_view to_string(ServerDelaySource source) {
  return enum_word<ServerDelaySource::Function>(
      source, {"retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after", "retry-after",
               "x-ratelimit-reset", "x-ratelimit-reset-*", "anthropic-ratelimit-*-reset",
               "ratelimit-reset", "ratelimit", "grpc-retry-pushback-ms", "google.rpc.RetryInfo",
               "github secondary rate limit", "function"});
}

}  // namespace httpretry
