// The limits of a policy's numbers and times, in a file and in code. They are far above any real
// value, and far below any that would overflow.
#pragma once

#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <limits>
#include <string>
#include <string_view>

namespace httpretry::policy {

// A limit may also be kForever, which is "none" in a file.
inline constexpr Duration kLongestDuration = std::chrono::hours(365 * 24);

// The range of a number; both ends are allowed. A number is stored as a count of 1/`parts`, and
// must be a multiple of it. With one part, a floating-point number may have any value in the range.
struct NumberLimits {
  double least = 0;
  double most = 0;
  int parts = 1;
  std::string_view what = "a number";  // used in "expected ..." if a file has something different
  std::string_view note = {};          // added to the message for numbers below `least`
};

inline constexpr int kThousandths = 1000;  // the unit of stored budget amounts
inline constexpr NumberLimits kFactors{0, 1e6};
inline constexpr NumberLimits kMultipliers{1, 1e6};
inline constexpr NumberLimits kShares{0, 1};
inline constexpr NumberLimits kSteps{1, 1000};
inline constexpr NumberLimits kDoublings{0, 52};  // a double counts exactly up to 2^52
inline constexpr NumberLimits kCounts{1, std::numeric_limits<int>::max()};
inline constexpr NumberLimits kTokens{0, 1e12, kThousandths};
inline constexpr NumberLimits kRatios{0, 1000, kThousandths};
inline constexpr NumberLimits kRates{0, 1e9, kThousandths};
inline constexpr NumberLimits kPartsOfCalls{0, 1, kThousandths};
inline constexpr NumberLimits kExtras{0, std::numeric_limits<int>::max()};
inline constexpr NumberLimits kPartsOfSends{0.001, 1};  // a share of the sends, never 0
inline constexpr NumberLimits kShareFactors{1, 1000};
inline constexpr NumberLimits kQueues{0, std::numeric_limits<int>::max()};
inline constexpr NumberLimits kProbes{1, 1000};
inline constexpr NumberLimits kRequests{1, 1e9};
inline constexpr Duration kShortestWindow = std::chrono::milliseconds(100);
inline constexpr NumberLimits kHedges{1, 4};

// Returns whether the attempts might never end.
inline bool lacks_elapsed_limit(const RetryPolicy& policy) {
  return !policy.max_attempts && policy.max_elapsed_time == kForever;
}
// Returns whether the per-attempt timeout could never apply.
inline bool attempt_outlasts_call(const RetryPolicy& policy) {
  return policy.attempt_timeout != kForever && policy.attempt_timeout > policy.max_elapsed_time;
}

// Returns whether the policy ignores every delay that a server asks for.
inline bool ignores_servers(const ServerDelayPolicy& delay) {
  return delay.headers.empty() || delay.combine == ServerDelayPolicy::Combine::Own;
}
// Returns "p95" or "p99.9".
std::string quantile_text(double quantile);

// Returns the message of the exception that `check` throws, or "" if the policy is valid.
std::string problem_of(const RetryPolicy& policy);

}  // namespace httpretry::policy
