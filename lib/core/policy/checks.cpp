// Checks combinations of the values of a policy.
#include "checks.hpp"

#include "lib/core/base/saturating.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace httpretry::detail::policy_file {
namespace {

constexpr int kMaxWaitsChecked = 10'000;  // limits the time of the check

// Returns whether `rule` ends the call instead of a wait. `time_left` remains of max_elapsed_time,
// or is negative.
bool ends_call(ElapsedRule rule, Duration wait, Duration time_left) {
  if (rule == ElapsedRule::IncludeWait) return wait > time_left;
  // ClipWait shortens a longer wait to the time that is left.
  if (rule == ElapsedRule::ClipWait) return time_left <= Duration::zero();
  return time_left < Duration::zero();  // BeforeWait counts only the time before the wait
}

// Returns how many of the first `checked` attempts can begin before max_elapsed_time ends the call,
// if each wait is as short as the jitter allows and the attempts take no time. Returns `checked` if
// all can begin, or if that is not known. Looks at kMaxWaitsChecked waits at most.
int attempts_reached(const RetryPolicy& retry, int checked) {
  if (retry.max_elapsed_time == kForever) return checked;
  // With `combine: server`, the server delay replaces the backoff and may be shorter.
  if (retry.server_delay.combine == ServerDelayPolicy::Combine::Server) return checked;
  // The shortest and the longest wait after an attempt that failed, and after one that was
  // throttled. Each range depends on the range before it. They begin as 0 to 0.
  DelayRange normal_delay;
  DelayRange throttle_delay;
  Duration elapsed{};
  for (auto attempt = 1; attempt < std::min(checked, kMaxWaitsChecked); ++attempt) {
    normal_delay = delay_range(retry.backoff, attempt, normal_delay);
    throttle_delay = delay_range(retry.throttle_backoff ? *retry.throttle_backoff : retry.backoff,
                                 attempt, throttle_delay);
    // Any attempt may be throttled or not, so the shorter wait counts.
    const auto wait = std::min(normal_delay.least, throttle_delay.least);
    const auto time_left = saturating::minus(retry.max_elapsed_time, elapsed);
    if (ends_call(retry.elapsed_rule, wait, time_left)) return attempt;
    elapsed = saturating::plus(elapsed, wait);
  }
  return checked;
}

// Returns for example "attempt_timeout (10s) is greater than max_elapsed_time (5s)".
std::string excess_text(std::string_view key, Duration value, std::string_view limit_key,
                        Duration limit) {
  return std::string(key) + " (" + httpretry::to_text(value) + ") is greater than " +
         std::string(limit_key) + " (" + httpretry::to_text(limit) + ")";
}

// The checks of a policy. Each reports values that contradict each other, or that can never have an
// effect.
struct PolicyChecker : PolicyCheck {
  explicit PolicyChecker(const PolicyCheck& base) : PolicyCheck(base) {}

  // Makes all checks of the policy's values with each other, and adds what they find to `problems`.
  void check() const {
    check_limits();
    check_backoff("backoff", resolved.backoff);
    if (resolved.throttle_backoff) check_backoff("throttle_backoff", *resolved.throttle_backoff);
    check_pending();
    check_attempts();
    check_parts_of_attempt();
    check_time_for_retry();
    const auto& guards = resolved.guards;
    check_pause();
    if (guards.rate) check_rates(*guards.rate);
    if (guards.concurrency) check_concurrency(*guards.concurrency);
    if (guards.breaker) check_breaker(*guards.breaker);
    check_priority();
    if (resolved.hedge) check_hedge(*resolved.hedge);
  }

 private:
  // Warns if the user wrote a limit that max_elapsed_time always ends first. Only IncludeWait ends
  // every wait and attempt. With the other rules, the last attempt may begin at or after the limit.
  void warn_if_over_elapsed(const std::string& key, Duration limit) const {
    const auto elapsed = resolved.max_elapsed_time;
    if (!is_written(key) || limit == kForever || limit <= elapsed) return;
    if (resolved.elapsed_rule != ElapsedRule::IncludeWait) return;
    warn(Warning::NoEffect, {key, "max_elapsed_time"},
         excess_text(key, limit, "max_elapsed_time", elapsed));
  }
  void check_backoff(const std::string& key, const Backoff& backoff) const {
    const auto initial = key + ".initial";
    const auto max = key + ".max_interval";
    if (at(initial) != nullptr && at(max) != nullptr && backoff.initial > backoff.max_interval) {
      error({initial, max},
            excess_text("initial", backoff.initial, "max_interval", backoff.max_interval));
    }
    if (at(key) != nullptr && backoff.low > backoff.high) {
      error({key + ".low", key + ".high"}, "low is greater than high");
    }
  }

  void check_limits() const {
    if (policy::lacks_elapsed_limit(resolved)) {
      error({"max_attempts", "max_elapsed_time"}, "\"unlimited\" attempts need a max_elapsed_time");
    }
    if (policy::attempt_outlasts_call(resolved)) {
      error({"attempt_timeout", "max_elapsed_time"},
            excess_text("attempt_timeout", resolved.attempt_timeout, "max_elapsed_time",
                        resolved.max_elapsed_time));
    }
    warn_if_over_elapsed("server_delay.max", resolved.server_delay.max);
  }

  // Checks retry_on.pending, the rule for responses that mean "not yet", after which the request is
  // sent again (a poll): its keys that need another one, and waits that never allow a poll.
  void check_pending() const {
    const auto& pending = resolved.retry_on.pending;
    const std::string key = "retry_on.pending";
    if (!pending) return;
    check_backoff(key + ".backoff", pending->backoff);
    // `at` returns nullptr if neither the policy nor anything that it builds on states the key.
    if (at(key + ".in") != nullptr && at(key + ".json") == nullptr) {
      error({key + ".in"}, "\"in\" needs \"json\", which says where the value is");
    }
    if (at(key + ".origins") != nullptr && at(key + ".url_from") == nullptr) {
      error({key + ".origins"}, "\"origins\" needs \"url_from\", which says where the URL is");
    }
    const auto elapsed = resolved.max_elapsed_time;
    if (elapsed == kForever && !pending->max) {
      warn(Warning::NoTimeLimit, {key},
           "without its \"max\" or a max_elapsed_time, polling may never end");
    }
    const auto first_wait = delay_range(pending->backoff, /*attempt=*/1, {}).least;
    // With `combine: server`, the server delay replaces the wait and may be shorter.
    const bool backoff_counts = resolved.server_delay.combine != ServerDelayPolicy::Combine::Server;
    if (resolved.elapsed_rule == ElapsedRule::IncludeWait && backoff_counts &&
        first_wait > elapsed) {
      warn(Warning::NoEffect, {key + ".backoff", key, "max_elapsed_time"},
           excess_text("the wait of pending", first_wait, "max_elapsed_time", elapsed) +
               ": no poll would ever be sent");
    }
  }

  // Warns of attempts that can never be made. Checks all attempts that the user asked for. If their
  // number is built in or unlimited, checks only the first retry, which is attempt 2.
  void check_attempts() const {
    const auto max = resolved.max_attempts;
    const bool is_built_in = at("max_attempts")->origin == built_in().find("max_attempts")->origin;
    const auto checked = max && !is_built_in ? *max : std::min(max.value_or(2), 2);
    const auto reached = attempts_reached(resolved, checked);
    if (reached >= checked) return;
    warn(Warning::NoEffect, {"max_attempts", "max_elapsed_time", "backoff"},
         "attempt " + std::to_string(reached + 1) +
             (max ? " of " + std::to_string(*max) : std::string()) +
             " can never be reached: even the shortest waits before it exceed max_elapsed_time (" +
             httpretry::to_text(resolved.max_elapsed_time) + ")");
  }

  // Warns of a connect_timeout or response_timeout in the user's file that can never take effect,
  // because a shorter limit ends the attempt first.
  void check_parts_of_attempt() const {
    const auto attempt_limit = resolved.attempt_timeout;
    for (const auto& [key, limit] : {std::pair("connect_timeout", resolved.connect_timeout),
                                     std::pair("response_timeout", resolved.response_timeout)}) {
      if (limit == kForever || !is_written(key)) continue;
      if (limit > attempt_limit) {
        warn(Warning::NoEffect, {key, "attempt_timeout"},
             excess_text(key, limit, "attempt_timeout", attempt_limit) +
                 ", which ends the attempt first");
      } else {
        warn_if_over_elapsed(key, limit);
      }
    }
  }

  // Warns if an attempt that takes the whole attempt_timeout leaves no time for its retry.
  void check_time_for_retry() const {
    const auto attempt_limit = resolved.attempt_timeout;
    const auto call_limit = resolved.max_elapsed_time;
    // Over the call's limit, an attempt_timeout is an error, which check_limits has reported.
    if (attempt_limit == kForever || attempt_limit > call_limit) return;
    const bool retries_timeouts =
        resolved.max_attempts != 1 && resolved.retry_on.covers(TransportKind::Timeout);
    // With BeforeWait, a retry follows whenever the attempt before it ended in time.
    if (!retries_timeouts || resolved.elapsed_rule == ElapsedRule::BeforeWait) return;
    // With IncludeWait, the wait must end in time as well. ClipWait shortens it.
    const bool includes_wait = resolved.elapsed_rule == ElapsedRule::IncludeWait;
    const auto wait = includes_wait ? delay_range(resolved.backoff, /*retry=*/1).least : Duration();
    if (saturating::plus(attempt_limit, wait) < call_limit) return;
    warn(Warning::NoEffect, {"attempt_timeout", "max_elapsed_time"},
         "an attempt that takes attempt_timeout (" + httpretry::to_text(attempt_limit) +
             ") is never retried: max_elapsed_time (" + httpretry::to_text(call_limit) +
             ") leaves no time for it");
  }

  // Only a server delay begins a pause.
  void check_pause() const {
    if (!is_written("pause") || !resolved.guards.pause.enabled ||
        !policy::ignores_servers(resolved.server_delay)) {
      return;
    }
    warn(Warning::NoEffect, {"pause", "server_delay"},
         "pause has no effect: server_delay ignores what a server asks for");
  }

  // Warns of a rate that has no effect, because another one of the list is at least as strict.
  void check_rates(const RatePolicy& rate) const {
    warn_if_over_elapsed("rate.max_wait", rate.max_wait);
    std::vector<const RatePolicy*> rates{&rate};
    for (const auto& further : rate.further) rates.push_back(&further);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      for (std::size_t other = 0; other < rates.size(); ++other) {
        // If two rates are equal, only the later one has no effect.
        if (!makes_useless(*rates[other], *rates[i], /*if_equal=*/other < i)) continue;
        warn(Warning::NoEffect, {"rate"},
             "rate " + std::to_string(i + 1) + " of the list has no effect: rate " +
                 std::to_string(other + 1) + " is at least as strict");
        break;
      }
    }
  }

  // Returns whether `rate` allows no more than `other`, neither in a burst nor in the long run.
  // Returns `if_equal` if both allow the same.
  static bool makes_useless(const RatePolicy& rate, const RatePolicy& other, bool if_equal) {
    if (rate.counts != other.counts || rate.burst > other.burst) return false;
    // Compares requests / per, both multiplied by the two periods.
    const auto a = static_cast<double>(rate.requests) * static_cast<double>(other.per.count());
    const auto b = static_cast<double>(other.requests) * static_cast<double>(rate.per.count());
    if (a == b && rate.burst == other.burst) return if_equal;
    return a <= b;
  }

  // Checks the order of min, initial and max, and that a LIFO queue has a timeout. `error` reports
  // at the first of its keys that the policy has.
  void check_concurrency(const ConcurrencyPolicy& limits) const {
    const auto min = std::to_string(limits.min);
    const auto max = std::to_string(limits.max);
    // The limiter clamps the default of `initial` to min and max, so only another one is checked. A
    // set that is printed states the default.
    const bool has_own_initial = limits.initial != ConcurrencyPolicy().initial;
    if (limits.kind == ConcurrencyPolicy::Kind::Aimd) {  // no other kind uses min and initial
      if (limits.min > limits.max) {
        error({"concurrency.min", "concurrency.max", "concurrency"},
              "min (" + min + ") is greater than max (" + max + ")");
      } else if (has_own_initial && (limits.initial < limits.min || limits.initial > limits.max)) {
        error({"concurrency.initial", "concurrency.min", "concurrency.max"},
              "initial (" + std::to_string(limits.initial) + ") is not between min (" + min +
                  ") and max (" + max + ")");
      }
    }
    if (limits.queue.order == ConcurrencyPolicy::Order::Lifo && limits.queue.timeout == kForever) {
      error({"concurrency.queue.order", "concurrency.queue"},
            "\"lifo\" needs a \"timeout\": otherwise the first to arrive may wait forever");
    }
  }

  // Checks a window of the breaker. The breaker counts in tenths of it.
  void check_window(const std::string& key, Duration window) const {
    if (window >= policy::kShortestWindow) return;
    error({"breaker." + key, "breaker"},
          key + " (" + httpretry::to_text(window) + ") is less than " +
              httpretry::to_text(policy::kShortestWindow) +
              ": the breaker counts in tenths of it, which would be too short");
  }

  // Checks the times of a breaker, and that slow_ratio has a slow_after.
  void check_breaker(const BreakerPolicy& breaker) const {
    check_window("window", breaker.window);
    check_window("share_window", breaker.share_window);
    check_backoff("breaker.open_for", breaker.open_for);
    if (breaker.kind == BreakerPolicy::Kind::Share) return;  // it has no probes
    const auto attempt_timeout = resolved.attempt_timeout;
    if (attempt_timeout != kForever && breaker.probe_timeout < attempt_timeout) {
      error(
          {"breaker.probe_timeout", "breaker", "attempt_timeout"},
          excess_text("attempt_timeout", attempt_timeout, "probe_timeout", breaker.probe_timeout) +
              ": a probe still in flight would no longer count");
    }
    if (is_written("breaker.slow_ratio") && !is_written("breaker.slow_after")) {
      error({"breaker.slow_ratio"}, "\"slow_ratio\" needs \"slow_after\", which says what is slow");
    }
  }

  // A priority has an effect only if sends can wait.
  void check_priority() const {
    const auto& guards = resolved.guards;
    if (!is_written("priority") || guards.priority == Priority::Normal || guards.has_limits()) {
      return;
    }
    warn(Warning::NoEffect, {"priority"},
         "a priority has no effect without \"rate\", \"concurrency\" or \"breaker\"");
  }

  // Checks that hedges can ever be sent, and that their budget is large enough.
  void check_hedge(const HedgePolicy& hedge) const {
    const bool has_quantile = hedge.quantile != 0;  // otherwise `after` is a time
    const bool attempt_ends_first = hedge.after >= resolved.attempt_timeout;
    if (has_quantile) {
      if (hedge.min > hedge.max) {
        error({"hedge.min", "hedge.max", "hedge.after"},
              excess_text("hedge.min", hedge.min, "hedge.max", hedge.max));
      }
    } else if (attempt_ends_first || hedge.after >= resolved.max_elapsed_time) {
      const std::string limit_key = attempt_ends_first ? "attempt_timeout" : "max_elapsed_time";
      const auto limit = attempt_ends_first ? resolved.attempt_timeout : resolved.max_elapsed_time;
      error({"hedge.after", limit_key},
            "hedge.after (" + httpretry::to_text(hedge.after) + ") is not less than " + limit_key +
                " (" + httpretry::to_text(limit) + "): no hedge would ever be sent");
    }
    if (resolved.max_attempts == 1) {
      warn(Warning::NoEffect, {"hedge.after", "max_attempts"},
           "max_attempts is 1, and also counts hedges: no hedge would ever be sent");
    }
    if (resolved.repeat == Repeat::Never || resolved.repeat == Repeat::Refused) {
      warn(Warning::NoEffect, {"hedge.after", "repeat"},
           "repeat forbids a second send of a request that may have been executed: no hedge would "
           "ever be sent");
    }
    // On average, calls that are slower than the quantile need a hedge: 0.05 of all calls for p95.
    // Twice as much leaves a reserve for times when many calls are slow at once. The result is
    // rounded, because 2 * (1 - 0.95) is not exactly 0.1 as a double.
    const auto needed = std::round(2 * (1 - hedge.quantile) * 1e9) / 1e9;
    if (has_quantile && hedge.budget && *hedge.budget < needed) {
      warn(Warning::NoEffect, {"hedge.budget", "hedge.after"},
           "hedge.budget (" + text_of(*hedge.budget) + ") is less than " + text_of(needed) +
               ", twice the share of calls that are slower than " +
               policy::quantile_text(hedge.quantile) +
               ": if many are slow at once, many of them get no hedge");
    }
  }
};

}  // namespace

const Layered* PolicyCheck::at(std::string_view key) const {
  const auto* value = &layered;
  for (auto dot = key.find('.'); dot != key.npos && value != nullptr; dot = key.find('.')) {
    value = value->find(key.substr(0, dot));
    key.remove_prefix(dot + 1);
  }
  return value == nullptr ? nullptr : value->find(key);
}

bool PolicyCheck::is_written(std::string_view key) const {
  const auto* const value = at(key);
  return value != nullptr && (value->origin->is_file || is_within(*value->json, policy));
}

void PolicyCheck::error(Keys keys, std::string message) const {
  if (is_doubtful(keys)) return;
  const auto* const place = place_of(keys);
  problems.error(place == nullptr ? policy : *place, std::move(message));
}

void PolicyCheck::warn(Warning warning, Keys keys, std::string message) const {
  const auto* const place = place_of(keys);
  if (place == nullptr || is_doubtful(keys) || is_allowed(warning, layered)) return;
  message += how_to_allow(warning);
  auto& added = warnings.emplace_back(problems.place_of(*place));
  added.warning = true;
  added.message = message;
  problems.warn(*place, std::move(message));
}

// Returns the value at which to report a problem of these keys, or nullptr. See `error`.
const JsonNode* PolicyCheck::place_of(Keys keys) const {
  for (const auto& key : keys) {
    const auto* const value = at(key);
    if (value != nullptr && is_within(*value->json, policy)) return value->json;
  }
  const auto* const key = std::ranges::find_if(keys, [this](auto& one) { return is_written(one); });
  return key == keys.end() ? nullptr : at(*key)->json;
}

// Returns whether a value of these keys is wrong by itself, which was reported before.
bool PolicyCheck::is_doubtful(Keys keys) const {
  return std::any_of(keys.begin(), keys.end(), [this](const std::string& key) {
    const auto* const value = at(key);
    return value != nullptr && value->doubtful;
  });
}

std::string how_to_allow(Warning warning) {
  return "; \"allow\": [" + quoted_text(to_string(warning)) + "] silences this";
}

bool is_allowed(Warning warning, const Layered& layered) {
  const auto* const allow = layered.find("allow");
  return allow != nullptr && std::ranges::any_of(allow->json->children, [&](const JsonNode* word) {
           return word->text == to_string(warning);
         });
}

std::vector<Problem> check_policy(const Layered& layered, const RetryPolicy& resolved,
                                  const JsonNode& policy, Problems& problems) {
  std::vector<Problem> warnings;
  const PolicyCheck check{layered, resolved, policy, problems, warnings};
  PolicyChecker(check).check();
  check_risks(check);
  std::ranges::stable_sort(
      warnings, {}, [](const Problem& warning) { return std::pair(warning.line, warning.column); });
  return warnings;
}

}  // namespace httpretry::detail::policy_file
