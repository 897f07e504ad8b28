// What the numbers and times of a policy may be, in a file and in code: far above any real value,
// and far below what would overflow.
#pragma once

#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <limits>
#include <string>
#include <string_view>

namespace httpretry::policy {

// A limit may also be kForever, "none" in a file.
inline constexpr auto kLongestDuration =
    std::chrono::duration_cast<Duration>(std::chrono::hours(365 * 24));

// Both ends are allowed. A number is a multiple of 1/`parts`, and what is stored is the number of
// these parts. A floating-point number, with one part, may be any.
struct NumberLimits {
  double least = 0;
  double most = 0;
  int parts = 1;
  std::string_view what = "a number";  // expected if a file has something else
  std::string_view note = {};          // added to the message for numbers below `least`
};

inline constexpr int kThousandths = 1000;  // in which amounts of budgets are stored
inline constexpr NumberLimits kFactors{0, 1e6};
inline constexpr NumberLimits kMultipliers{1, 1e6};
inline constexpr NumberLimits kShares{0, 1};
inline constexpr NumberLimits kSteps{1, 1000};
inline constexpr NumberLimits kDoublings{0, 52};  // as many as a double counts exactly
inline constexpr NumberLimits kCounts{1, std::numeric_limits<int>::max()};
inline constexpr NumberLimits kTokens{0, 1e12, kThousandths};
inline constexpr NumberLimits kRatios{0, 1000, kThousandths};
inline constexpr NumberLimits kRates{0, 1e9, kThousandths};
inline constexpr NumberLimits kPartsOfCalls{0, 1, kThousandths};
inline constexpr NumberLimits kExtras{0, std::numeric_limits<int>::max()};
inline constexpr NumberLimits kPartsOfSends{0.001, 1};  // of the sends, which is never none
inline constexpr NumberLimits kShareFactors{1, 1000};
inline constexpr NumberLimits kQueues{0, std::numeric_limits<int>::max()};
inline constexpr NumberLimits kProbes{1, 1000};
inline constexpr NumberLimits kRequests{1, 1e9};
inline constexpr auto kShortestWindow =
    std::chrono::duration_cast<Duration>(std::chrono::milliseconds(100));
inline constexpr NumberLimits kHedges{1, 4};

// Unlimited attempts would never end.
inline bool lacks_elapsed_limit(const RetryPolicy& policy) {
  return !policy.max_attempts && policy.max_elapsed_time == kForever;
}
// The limit of an attempt would never count.
inline bool attempt_outlasts_call(const RetryPolicy& policy) {
  return policy.attempt_timeout != kForever && policy.attempt_timeout > policy.max_elapsed_time;
}

// A server that asks for a delay is not heard.
inline bool ignores_servers(const ServerDelayPolicy& delay) {
  return delay.headers.empty() || delay.combine == ServerDelayPolicy::Combine::Own;
}
// "p95", "p99.9".
HTTPRETRY_API std::string quantile_text(double quantile);

// What `check` says of a policy; empty if it can be used.
HTTPRETRY_API std::string problem_of(const RetryPolicy& policy);

}  // namespace httpretry::policy
