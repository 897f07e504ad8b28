#include "lib/policy/checks.hpp"

#include "lib/retry/policy_limits.hpp"
#include "lib/retry/saturating.hpp"

#include <httpretry/retry/decide.hpp>

#include <algorithm>

namespace httpretry::policy_file {

const Layered* PolicyChecker::at(std::string_view key) const {
  const auto* value = &layered;
  for (auto dot = key.find('.'); dot != key.npos && value != nullptr; dot = key.find('.')) {
    value = value->find(key.substr(0, dot));
    key.remove_prefix(dot + 1);
  }
  return value == nullptr ? nullptr : value->find(key);
}

bool PolicyChecker::written(std::string_view key) const {
  const auto* const value = at(key);
  return value != nullptr && (value->origin->positions || is_within(*value->json, policy));
}

const JsonNode* PolicyChecker::place_of(Keys keys) const {
  for (const auto& key : keys) {
    const auto* const value = at(key);
    if (value != nullptr && is_within(*value->json, policy)) return value->json;
  }
  for (const auto& key : keys) {
    const auto* const value = at(key);
    if (value != nullptr && value->origin->positions) return value->json;
  }
  return nullptr;
}

bool PolicyChecker::doubtful(Keys keys) const {
  return std::any_of(keys.begin(), keys.end(), [this](const std::string& key) {
    const auto* const value = at(key);
    return value != nullptr && value->doubtful;
  });
}

void PolicyChecker::error(Keys keys, std::string message) const {
  if (doubtful(keys)) return;
  const auto* const place = place_of(keys);
  problems.error(place == nullptr ? policy : *place, std::move(message));
}

void PolicyChecker::warn(Keys keys, std::string message) const {
  const auto* const place = place_of(keys);
  if (place != nullptr && !doubtful(keys)) problems.warn(*place, std::move(message));
}

void PolicyChecker::check_backoff(const std::string& key, const Backoff& backoff) const {
  const auto initial = key + ".initial";
  const auto max = key + ".max_interval";
  if (at(initial) != nullptr && at(max) != nullptr && backoff.initial > backoff.max_interval) {
    error({initial, max}, over("initial", backoff.initial, "max_interval", backoff.max_interval));
  }
  if (at(key) != nullptr && backoff.low > backoff.high) {
    error({key + ".low", key + ".high"}, "low is over high");
  }
}

std::string over(std::string_view key, Duration value, std::string_view limit, Duration most) {
  return std::string(key) + " (" + httpretry::to_text(value) + ") is over " + std::string(limit) +
         " (" + httpretry::to_text(most) + ")";
}

namespace {

constexpr int kMaxWaitsChecked = 10'000;

void check_limits(const PolicyChecker& checker) {
  const auto& resolved = checker.resolved;
  if (policy::lacks_elapsed_limit(resolved)) {
    checker.error({"max_attempts", "max_elapsed_time"},
                  "\"unlimited\" attempts need a max_elapsed_time");
  }
  if (policy::attempt_outlasts_call(resolved)) {
    checker.error({"attempt_timeout", "max_elapsed_time"},
                  over("attempt_timeout", resolved.attempt_timeout, "max_elapsed_time",
                       resolved.max_elapsed_time));
  }
  const auto max = resolved.server_delay.max;
  if (checker.written("server_delay.max") && max != kForever && max > resolved.max_elapsed_time) {
    checker.warn({"server_delay.max", "max_elapsed_time"},
                 over("server_delay.max", max, "max_elapsed_time", resolved.max_elapsed_time));
  }
}

void check_pending(const PolicyChecker& checker) {
  const auto& pending = checker.resolved.retry_on.pending;
  const std::string key = "retry_on.pending";
  if (checker.at(key) == nullptr || !pending) return;
  checker.check_backoff(key + ".backoff", pending->backoff);
  if (checker.at(key + ".in") != nullptr && checker.at(key + ".json") == nullptr) {
    checker.error({key + ".in"}, "\"in\" needs \"json\", which says where the value is");
  }
  if (checker.at(key + ".origins") != nullptr && checker.at(key + ".url_from") == nullptr) {
    checker.error({key + ".origins"},
                  "\"origins\" needs \"url_from\", which says where the URL is");
  }
  const auto elapsed = checker.resolved.max_elapsed_time;
  if (elapsed == kForever && !pending->max) {
    checker.warn({key}, "without its \"max\" or a max_elapsed_time, polling may never end");
  }
  const auto wait = delay_range(pending->backoff, 1, {}).least;
  if (checker.resolved.elapsed_rule == ElapsedRule::IncludeWait && wait > elapsed) {
    checker.warn(
        {key + ".backoff", key, "max_elapsed_time"},
        over("the wait of pending", wait, "max_elapsed_time", elapsed) + ": there is never a poll");
  }
}

// Returns how many attempts fit into max_elapsed_time if the waits are the shortest possible.
int attempts_reached(const RetryPolicy& retry) {
  const auto most = retry.max_attempts.value_or(1);
  if (retry.max_elapsed_time == kForever) return most;
  const auto& other = retry.throttle_backoff ? *retry.throttle_backoff : retry.backoff;
  // With `combine: server` the server delay replaces the backoff, and may be shorter than it.
  if (retry.server_delay.combine == ServerDelayPolicy::Combine::Server) return most;
  const auto rule = retry.elapsed_rule;
  DelayRange own;
  DelayRange throttled;
  Duration spent{};
  for (auto attempt = 1; attempt < std::min(most, kMaxWaitsChecked); ++attempt) {
    own = delay_range(retry.backoff, attempt, own);
    throttled = delay_range(other, attempt, throttled);
    const auto wait = std::min(own.least, throttled.least);
    const auto left = policy::minus(retry.max_elapsed_time, spent);
    const auto needed = rule == ElapsedRule::IncludeWait ? wait : Duration::zero();
    const bool none_left = rule == ElapsedRule::ClipWait && left <= Duration::zero();
    if (needed > left || none_left) return attempt;
    spent = policy::plus(spent, wait);
  }
  return most;
}

void check_attempts(const PolicyChecker& checker) {
  const auto& resolved = checker.resolved;
  // Nobody asked for the built-in number of attempts.
  if (checker.at("max_attempts")->origin == built_in().find("max_attempts")->origin) return;
  const auto reached = attempts_reached(resolved);
  if (!resolved.max_attempts || reached >= *resolved.max_attempts) return;
  checker.warn({"max_attempts", "max_elapsed_time", "backoff"},
               "attempt " + std::to_string(reached + 1) + " of " +
                   std::to_string(*resolved.max_attempts) +
                   " can never be reached: even the shortest waits before it pass "
                   "max_elapsed_time (" +
                   httpretry::to_text(resolved.max_elapsed_time) + ")");
}

}  // namespace

void check_policy(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                  Problems& problems) {
  const PolicyChecker checker{layered, resolved, policy, problems};
  check_limits(checker);
  checker.check_backoff("backoff", resolved.backoff);
  if (resolved.throttle_backoff) {
    checker.check_backoff("throttle_backoff", *resolved.throttle_backoff);
  }
  check_pending(checker);
  check_attempts(checker);
  check_guards(checker);
}

}  // namespace httpretry::policy_file
