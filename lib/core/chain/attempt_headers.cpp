#include "lib/core/chain/detail/attempt_headers.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/chain/detail/call_state.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace httpretry {
namespace {

// Returns the value of `grpc-timeout`: at most eight digits and a unit.
std::string grpc_timeout(std::int64_t milliseconds) {
  constexpr std::int64_t kEnd = 100'000'000;
  if (milliseconds < kEnd) return std::to_string(milliseconds) + "m";
  const auto seconds = milliseconds / 1000;
  return seconds < kEnd ? std::to_string(seconds) + "S" : std::to_string(seconds / 3600) + "H";
}

// Returns the text of the time left, in the form that belongs to the header.
std::string deadline_text(std::string_view header, Duration left) {
  const std::int64_t milliseconds =
      std::max<std::int64_t>(std::chrono::floor<std::chrono::milliseconds>(left).count(), 0);
  return equal_ignoring_case(header, "grpc-timeout") ? grpc_timeout(milliseconds)
                                                     : std::to_string(milliseconds);
}

void add_header(Request& request, const std::string& name, const std::string& value) {
  if (!request.headers().contains(name)) request.set_header(name, value);
}

}  // namespace

void detail::add_attempt_headers(Request& request, const Call& call,
                                 const CurrentAttempt& attempt) {
  const auto& policy = *attempt.policy;
  const auto& url = request.parsed_url();
  if (!url || url->origin() != call.origin()) return;
  if (!policy.attempt_header.empty()) {
    // Counted from 0, and anew after a redirect.
    const auto number = call.attempt() - attempt.loop.attempts_before() - 1;
    add_header(request, policy.attempt_header, std::to_string(number));
  }
  if (policy.deadline_header.empty()) return;
  const auto deadline = std::min(call.deadline(), call.limits(request).respond_by);
  if (deadline == kNever) return;
  const auto now = call.scheduler().now();
  add_header(request, policy.deadline_header,
             deadline_text(policy.deadline_header, std::max(deadline, now) - now));
}

}  // namespace httpretry
