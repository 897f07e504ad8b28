#include "send/print_result.hpp"

#include "cli/input.hpp"
#include "cli/text.hpp"
#include "send/poll_until.hpp"

#include <httpretry/retry/decide.hpp>

#include <algorithm>

namespace httpretry::cli {
namespace {

std::string whole_seconds(Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count());
}

// Returns a hint that names the options to raise if the server asked for a longer wait than they
// allow: "the server asks for a wait of 1.50 min; --set server_delay.max=90s allows it". Returns ""
// if the server asked for no wait, or if the wait would exceed -m, so that raising these limits
// would not help.
std::string advice_on_server_delay(const SendOptions& options, const EndedCall& ended) {
  const auto& history = history_of(ended.outcome);
  const auto* last = history.last();
  if (last == nullptr || !last->server_delay) return {};
  const auto delay = *last->server_delay;
  const auto delay_end = history.elapsed + delay;
  const auto max_time = options.max_time.value_or(kForever);  // -m
  if (delay_end >= max_time) return {};
  std::string flags;  // each with a space before it
  if (delay > ended.policy.server_delay.max) {
    flags = " --set server_delay.max=" + whole_seconds(delay) + "s";
  }
  if (delay_end >= ended.policy.max_elapsed_time) {
    constexpr auto kForRetries = std::chrono::minutes(1);  // the time left after the wait
    flags += " --retry-max-time " + whole_seconds(delay_end + kForRetries);
  }
  if (flags.empty()) return {};
  return "the server asks for a wait of " + duration_text(delay) + ";" + flags + " allows it";
}

// Returns "" if the body can be sent again. In that case, the call was not retried because a part
// of the response was written already.
std::string advice_on_long_pipe(const Request& request) {
  if (request.body().replayable()) return {};
  return "the body came from a pipe and is longer than " + std::to_string(kMaxPipeBuffer >> 20U) +
         " MiB, so it cannot be sent again; save it in a file and use -T FILE";
}

}  // namespace

// Returns a hint at an option that would help the user after a call that failed or was not retried,
// such as "the retry budget is used up; --set budget=none removes it". Returns "" if no option
// would help.
std::string advice(const SendOptions& options, const EndedCall& ended) {
  const auto& outcome = ended.outcome;
  // Headers that are too large have the same code, but their limit is fixed, so no option would
  // help. Only the message tells them apart: "the response body is larger than 100 bytes".
  const bool body_is_too_large = !outcome && outcome.error().code == Errc::TooLarge &&
                                 outcome.error().message.find("body is") != std::string::npos;
  if (body_is_too_large && !options.max_file_size) {
    return "the response is too large to hold in memory; --max-filesize BYTES raises the limit";
  }
  if (!options.until.empty() && ended_pending(outcome)) {
    return "the condition of --until was not met: " + printable(options.until);
  }
  switch (history_of(outcome).stop_reason) {
    case Reason::UnsafeToRepeat:
      // With these values of `repeat`, the options below would not allow a retry.
      if (ended.policy.repeat == Repeat::Never || ended.policy.repeat == Repeat::Refused) {
        return {};
      }
      return "not retried, because the server may have processed the request; "
             "--idempotency-key or --retry-all-errors allows retries";
    case Reason::BudgetExhausted:
      return "the retry budget is used up; --set budget=none removes it";
    case Reason::ServerDelayTooLong:
    case Reason::ElapsedExhausted: return advice_on_server_delay(options, ended);
    case Reason::NotReplayable: return advice_on_long_pipe(ended.request);
    default: return {};
  }
}

std::string repeat_warning(const EndedCall& ended) {
  const auto& attempts = history_of(ended.outcome).attempts;
  const auto repeated = std::ranges::find_if(attempts, &Attempt::retried_unsafely);
  if (repeated == attempts.end()) return {};
  if (repeated + 1 == attempts.end()) return {};  // the call ended before the repeated send
  return "the " + printable(ended.request.method()) + " was sent again after attempt " +
         std::to_string(repeated->number) +
         ", which the server may have executed (the policy says repeat: always)";
}

}  // namespace httpretry::cli
