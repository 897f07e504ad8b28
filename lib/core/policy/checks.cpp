// Checks combinations of the values of a policy.
#include "policy_set_data.hpp"

#include "lib/core/base/saturating.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace httpretry::policy_file {
namespace {

// Returns for example "attempt_timeout (10s) is over max_elapsed_time (5s)".
std::string over(std::string_view key, Duration value, std::string_view limit_key, Duration limit) {
  return std::string(key) + " (" + httpretry::to_text(value) + ") is over " +
         std::string(limit_key) + " (" + httpretry::to_text(limit) + ")";
}

constexpr int kMaxWaitsChecked = 10'000;  // limits the time of the check

// Returns how many attempts can begin before max_elapsed_time ends the call, if each wait is as
// short as the jitter allows and the attempts take no time. Fewer than max_attempts means that the
// last attempts can never be reached. Returns max_attempts if all can begin, or if that is not
// known. Looks at kMaxWaitsChecked waits at most. The policy must limit max_attempts.
int attempts_reached(const RetryPolicy& retry) {
  const auto max_attempts = *retry.max_attempts;
  if (retry.max_elapsed_time == kForever) return max_attempts;
  // With `combine: server`, the server delay replaces the backoff and may be shorter.
  if (retry.server_delay.combine == ServerDelayPolicy::Combine::Server) return max_attempts;
  // The shortest and the longest wait after an attempt that failed, and after one that was
  // throttled. Each range depends on the range before it. They begin as 0 to 0.
  DelayRange normal_delay;
  DelayRange throttle_delay;
  Duration elapsed{};
  for (auto attempt = 1; attempt < std::min(max_attempts, kMaxWaitsChecked); ++attempt) {
    normal_delay = delay_range(retry.backoff, attempt, normal_delay);
    throttle_delay = delay_range(retry.throttle_backoff ? *retry.throttle_backoff : retry.backoff,
                                 attempt, throttle_delay);
    // Any attempt may be throttled or not, so the shorter wait counts.
    const auto wait = std::min(normal_delay.least, throttle_delay.least);
    const auto left = saturating::minus(retry.max_elapsed_time, elapsed);
    // IncludeWait: the whole wait must fit. ClipWait: some time must be left, and a longer wait
    // is clipped to it, which leaves no time for another one. BeforeWait: only the time before the
    // wait counts, so the limit must not have passed.
    const bool is_over = retry.elapsed_rule == ElapsedRule::IncludeWait ? wait > left
                         : retry.elapsed_rule == ElapsedRule::ClipWait  ? left <= Duration::zero()
                                                                        : left < Duration::zero();
    if (is_over) return attempt;  // the call ends instead of this wait
    elapsed = saturating::plus(elapsed, wait);
  }
  return max_attempts;
}

// The checks of a policy. Each reports values that contradict each other, or that can never have an
// effect.
struct PolicyChecker {
  // Makes all checks, and adds what they find to `problems`.
  void check() const {
    check_limits();
    check_backoff("backoff", resolved.backoff);
    if (resolved.throttle_backoff) check_backoff("throttle_backoff", *resolved.throttle_backoff);
    check_pending();
    check_attempts();
    const auto& guards = resolved.guards;
    check_pause();
    if (guards.rate) check_elapsed("rate.max_wait", guards.rate->max_wait);
    if (guards.concurrency) check_concurrency(*guards.concurrency);
    if (guards.breaker) check_breaker(*guards.breaker);
    check_priority();
    if (at("hedge") != nullptr && resolved.hedge) check_hedge(*resolved.hedge);
  }

  const Layered& layered;       // the values with their layers
  const RetryPolicy& resolved;  // the same values
  const JsonNode& policy;       // the top layer
  Problems& problems;

 private:
  // The keys of a problem, for example "max_elapsed_time" and "backoff.initial".
  using Keys = std::initializer_list<std::string>;

  // Returns the value of a key, or nullptr if no layer has it.
  [[nodiscard]] const Layered* at(std::string_view key) const {
    const auto* value = &layered;
    for (auto dot = key.find('.'); dot != key.npos && value != nullptr; dot = key.find('.')) {
      value = value->find(key.substr(0, dot));
      key.remove_prefix(dot + 1);
    }
    return value == nullptr ? nullptr : value->find(key);
  }

  // Returns whether the user wrote the value. The value of a preset is not the user's mistake.
  [[nodiscard]] bool is_written(std::string_view key) const {
    const auto* const value = at(key);
    return value != nullptr && (value->origin->positions || is_within(*value->json, policy));
  }

  // Reports a problem at the first of its keys that is in `policy`, otherwise at the first one in a
  // file. Without such a place, an error is reported at `policy`, and a warning is dropped.
  void error(Keys keys, std::string message) const {
    if (is_doubtful(keys)) return;
    const auto* const place = place_of(keys);
    problems.error(place == nullptr ? policy : *place, std::move(message));
  }
  void warn(Keys keys, std::string message) const {
    const auto* const place = place_of(keys);
    if (place != nullptr && !is_doubtful(keys)) problems.warn(*place, std::move(message));
  }

  // Warns if the user wrote a limit that max_elapsed_time always ends first.
  void check_elapsed(const std::string& key, Duration limit) const {
    const auto elapsed = resolved.max_elapsed_time;
    if (!is_written(key) || limit == kForever || limit <= elapsed) return;
    warn({key, "max_elapsed_time"}, over(key, limit, "max_elapsed_time", elapsed));
  }
  void check_backoff(const std::string& key, const Backoff& backoff) const {
    const auto initial = key + ".initial";
    const auto max = key + ".max_interval";
    if (at(initial) != nullptr && at(max) != nullptr && backoff.initial > backoff.max_interval) {
      error({initial, max}, over("initial", backoff.initial, "max_interval", backoff.max_interval));
    }
    if (at(key) != nullptr && backoff.low > backoff.high) {
      error({key + ".low", key + ".high"}, "low is over high");
    }
  }

  // Returns the value at which to report a problem of these keys, or nullptr. See `error`.
  [[nodiscard]] const JsonNode* place_of(Keys keys) const {
    for (const auto& key : keys) {
      const auto* const value = at(key);
      if (value != nullptr && is_within(*value->json, policy)) return value->json;
    }
    const auto* const key =
        std::ranges::find_if(keys, [this](auto& one) { return is_written(one); });
    return key == keys.end() ? nullptr : at(*key)->json;
  }

  // Returns whether a value of these keys is wrong by itself, which was reported before.
  [[nodiscard]] bool is_doubtful(Keys keys) const {
    return std::any_of(keys.begin(), keys.end(), [this](const std::string& key) {
      const auto* const value = at(key);
      return value != nullptr && value->doubtful;
    });
  }

  void check_limits() const {
    if (policy::lacks_elapsed_limit(resolved)) {
      error({"max_attempts", "max_elapsed_time"}, "\"unlimited\" attempts need a max_elapsed_time");
    }
    if (policy::attempt_outlasts_call(resolved)) {
      error({"attempt_timeout", "max_elapsed_time"},
            over("attempt_timeout", resolved.attempt_timeout, "max_elapsed_time",
                 resolved.max_elapsed_time));
    }
    check_elapsed("server_delay.max", resolved.server_delay.max);
  }

  // Checks retry_on.pending: keys that need another one, and waits that never allow a poll.
  void check_pending() const {
    const auto& pending = resolved.retry_on.pending;
    const std::string key = "retry_on.pending";
    if (at(key) == nullptr || !pending) return;
    check_backoff(key + ".backoff", pending->backoff);
    if (at(key + ".in") != nullptr && at(key + ".json") == nullptr) {
      error({key + ".in"}, "\"in\" needs \"json\", which says where the value is");
    }
    if (at(key + ".origins") != nullptr && at(key + ".url_from") == nullptr) {
      error({key + ".origins"}, "\"origins\" needs \"url_from\", which says where the URL is");
    }
    const auto elapsed = resolved.max_elapsed_time;
    if (elapsed == kForever && !pending->max) {
      warn({key}, "without its \"max\" or a max_elapsed_time, polling may never end");
    }
    const auto first_wait = delay_range(pending->backoff, /*attempt=*/1, {}).least;
    if (resolved.elapsed_rule == ElapsedRule::IncludeWait && first_wait > elapsed) {
      warn({key + ".backoff", key, "max_elapsed_time"},
           over("the wait of pending", first_wait, "max_elapsed_time", elapsed) +
               ": there is never a poll");
    }
  }

  // Warns of attempts that can never be made. The built-in number of attempts is not checked,
  // because the user did not ask for it.
  void check_attempts() const {
    const auto max = resolved.max_attempts;
    if (!max || at("max_attempts")->origin == built_in().find("max_attempts")->origin) return;
    const auto reached = attempts_reached(resolved);
    if (reached >= *max) return;
    warn({"max_attempts", "max_elapsed_time", "backoff"},
         "attempt " + std::to_string(reached + 1) + " of " + std::to_string(*max) +
             " can never be reached: even the shortest waits before it pass max_elapsed_time (" +
             httpretry::to_text(resolved.max_elapsed_time) + ")");
  }

  // Only a server delay begins a pause.
  void check_pause() const {
    if (!is_written("pause") || !resolved.guards.pause.enabled ||
        !policy::ignores_servers(resolved.server_delay)) {
      return;
    }
    warn({"pause", "server_delay"},
         "there is never a pause: server_delay ignores what a server asks for");
  }

  // Checks the order of min, initial and max, and that a LIFO queue has a timeout.
  void check_concurrency(const ConcurrencyPolicy& limits) const {
    const auto min = std::to_string(limits.min);
    const auto max = std::to_string(limits.max);
    if (limits.kind == ConcurrencyPolicy::Kind::Aimd) {
      if (limits.min > limits.max) {
        error({"concurrency.min", "concurrency.max", "concurrency"},
              "min (" + min + ") is over max (" + max + ")");
      } else if (at("concurrency.initial") != nullptr &&
                 (limits.initial < limits.min || limits.initial > limits.max)) {
        error({"concurrency.initial", "concurrency.min", "concurrency.max"},
              "initial (" + std::to_string(limits.initial) + ") is not between min (" + min +
                  ") and max (" + max + ")");
      }
    }
    if (at("concurrency.queue") != nullptr &&
        limits.queue.order == ConcurrencyPolicy::Order::Lifo && limits.queue.timeout == kForever) {
      error({"concurrency.queue.order", "concurrency.queue"},
            "\"lifo\" needs a \"timeout\": otherwise the first to arrive may wait forever");
    }
  }

  // Checks a window of the breaker. The breaker counts in tenths of it.
  void check_window(const std::string& key, Duration window) const {
    if (window >= policy::kShortestWindow) return;
    error({"breaker." + key, "breaker"}, key + " (" + httpretry::to_text(window) + ") is under " +
                                             httpretry::to_text(policy::kShortestWindow) +
                                             ", a tenth of which is too short to count in");
  }

  // Checks the times of a breaker, and that slow_ratio has a slow_after.
  void check_breaker(const BreakerPolicy& breaker) const {
    check_window("window", breaker.window);
    check_window("share_window", breaker.share_window);
    check_backoff("breaker.open_for", breaker.open_for);
    if (breaker.kind == BreakerPolicy::Kind::Share) return;  // it has no probes
    const auto attempt_timeout = resolved.attempt_timeout;
    if (attempt_timeout != kForever && breaker.probe_timeout < attempt_timeout) {
      error({"breaker.probe_timeout", "breaker", "attempt_timeout"},
            over("attempt_timeout", attempt_timeout, "probe_timeout", breaker.probe_timeout) +
                ": a probe that is still under way would count no more");
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
    warn({"priority"},
         "nothing waits without \"rate\", \"concurrency\" or \"breaker\": a priority "
         "says nothing");
  }

  // Checks that hedges can ever be sent, and that their budget is large enough.
  void check_hedge(const HedgePolicy& hedge) const {
    const bool has_quantile = hedge.quantile != 0;  // otherwise `after` is a time
    const bool after_attempt = hedge.after >= resolved.attempt_timeout;
    if (!has_quantile && (after_attempt || hedge.after >= resolved.max_elapsed_time)) {
      const std::string limit_key = after_attempt ? "attempt_timeout" : "max_elapsed_time";
      const auto limit = after_attempt ? resolved.attempt_timeout : resolved.max_elapsed_time;
      error({"hedge.after", limit_key},
            "hedge.after (" + httpretry::to_text(hedge.after) + ") is not under " + limit_key +
                " (" + httpretry::to_text(limit) + "): no hedge would ever be sent");
    } else if (has_quantile && hedge.min > hedge.max) {
      error({"hedge.min", "hedge.max", "hedge.after"},
            over("hedge.min", hedge.min, "hedge.max", hedge.max));
    }
    if (resolved.max_attempts == 1) {
      warn({"hedge.after", "max_attempts"},
           "max_attempts is 1, and counts hedges, too: no hedge would ever be sent");
    }
    if (resolved.repeat == Repeat::Never || resolved.repeat == Repeat::Refused) {
      warn({"hedge.after", "repeat"},
           "repeat forbids a second send of what may have been carried out: no hedge would "
           "ever be sent");
    }
    // For example 0.1 for p95. Rounded, because 1 - 0.9 is a little less than 0.1.
    const auto needed = std::round(2 * (1 - hedge.quantile) * 1e9) / 1e9;
    if (has_quantile && hedge.budget && *hedge.budget < needed) {
      warn({"hedge.budget", "hedge.after"},
           "hedge.budget (" + text_of(*hedge.budget) + ") is under " + text_of(needed) +
               ", twice the part of the calls that are slower than " +
               policy::quantile_text(hedge.quantile) +
               ": where many are slow at once, many of them get no hedge");
    }
  }
};

}  // namespace

void check_policy(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                  Problems& problems) {
  PolicyChecker{layered, resolved, policy, problems}.check();
}

}  // namespace httpretry::policy_file
