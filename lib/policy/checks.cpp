#include "lib/policy/checks.hpp"

#include "lib/retry/policy_limits.hpp"
#include "lib/retry/saturating.hpp"

#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <string>

namespace httpretry::policy_file {
namespace {

constexpr int kMaxWaitsChecked = 10'000;

bool is_finite(Duration duration) { return duration != kForever; }

class Checker : private PolicyChecker {
 public:
  Checker(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
          Problems& problems)
      : PolicyChecker(layered, policy, problems), resolved_(resolved) {}

  void run() {
    limits();
    check_backoff(layered_.find("backoff"), resolved_.backoff);
    if (resolved_.throttle_backoff) {
      check_backoff(layered_.find("throttle_backoff"), *resolved_.throttle_backoff);
    }
    server_delay();
    pending();
    attempts();
  }

 private:
  void limits() {
    const auto* const elapsed = layered_.find("max_elapsed_time");
    const auto* const attempts = layered_.find("max_attempts");
    if (policy::lacks_elapsed_limit(resolved_)) {
      error({attempts, elapsed}, "\"unlimited\" attempts need a max_elapsed_time");
    }
    if (policy::attempt_outlasts_call(resolved_)) {
      error({layered_.find("attempt_timeout"), elapsed},
            over("attempt_timeout", resolved_.attempt_timeout, "max_elapsed_time",
                 resolved_.max_elapsed_time));
    }
  }

  void server_delay() {
    const auto elapsed = resolved_.max_elapsed_time;
    const auto* const object = layered_.find("server_delay");
    const auto* const max = object == nullptr ? nullptr : object->find("max");
    if (max == nullptr) return;
    if (written(max) && is_finite(resolved_.server_delay.max) &&
        resolved_.server_delay.max > elapsed) {
      warn({max, layered_.find("max_elapsed_time")},
           over("server_delay.max", resolved_.server_delay.max, "max_elapsed_time", elapsed));
    }
  }

  void pending() {
    const auto& resolved = resolved_.retry_on.pending;
    const auto* const object = layered_.find("retry_on")->find("pending");
    if (object == nullptr || !resolved) return;
    check_backoff(object->find("backoff"), resolved->backoff);
    const auto* const in = object->find("in");
    if (in != nullptr && object->find("json") == nullptr) {
      error({in}, "\"in\" needs \"json\", which says where the value is");
    }
    const auto* const origins = object->find("origins");
    if (origins != nullptr && object->find("url_from") == nullptr) {
      error({origins}, "\"origins\" needs \"url_from\", which says where the URL is");
    }
    const auto elapsed = resolved_.max_elapsed_time;
    if (!is_finite(elapsed) && !resolved->max) {
      warn({object}, "without its \"max\" or a max_elapsed_time, polling may never end");
    }
    const auto wait = delay_range(resolved->backoff, 1, {}).least;
    if (resolved_.elapsed_rule == ElapsedRule::IncludeWait && wait > elapsed) {
      warn({object->find("backoff"), object, layered_.find("max_elapsed_time")},
           over("the wait of pending", wait, "max_elapsed_time", elapsed) +
               ": there is never a poll");
    }
  }

  void attempts() {
    const auto* const most = layered_.find("max_attempts");
    if (most->origin == built_in().find("max_attempts")->origin) return;  // nobody asked for them
    const auto reached = attempts_reached();
    if (resolved_.max_attempts && reached < *resolved_.max_attempts) {
      warn({most, layered_.find("max_elapsed_time"), layered_.find("backoff")},
           "attempt " + std::to_string(reached + 1) + " of " +
               std::to_string(*resolved_.max_attempts) +
               " can never be reached: even the shortest waits before it pass max_elapsed_time (" +
               httpretry::to_text(resolved_.max_elapsed_time) + ")");
    }
  }

  // How many attempts fit into max_elapsed_time where the waits are the shortest possible.
  [[nodiscard]] int attempts_reached() const {
    const auto most = resolved_.max_attempts.value_or(1);
    if (!is_finite(resolved_.max_elapsed_time)) return most;
    const auto& other =
        resolved_.throttle_backoff ? *resolved_.throttle_backoff : resolved_.backoff;
    // With `combine: server` the server delay replaces the backoff, and may be shorter than it.
    if (resolved_.server_delay.combine == ServerDelayPolicy::Combine::Server) return most;
    const auto rule = resolved_.elapsed_rule;
    DelayRange own;
    DelayRange throttled;
    Duration spent{};
    for (auto attempt = 1; attempt < std::min(most, kMaxWaitsChecked); ++attempt) {
      own = delay_range(resolved_.backoff, attempt, own);
      throttled = delay_range(other, attempt, throttled);
      const auto wait = std::min(own.least, throttled.least);
      const auto left = policy::minus(resolved_.max_elapsed_time, spent);
      const auto needed = rule == ElapsedRule::IncludeWait ? wait : Duration::zero();
      const bool none_left = rule == ElapsedRule::ClipWait && left <= Duration::zero();
      if (needed > left || none_left) return attempt;
      spent = policy::plus(spent, wait);
    }
    return most;
  }

  const RetryPolicy& resolved_;
};

}  // namespace

void check_policy(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                  Problems& problems) {
  Checker(layered, resolved, policy, problems).run();
  check_guards(layered, resolved, policy, problems);
  check_hedge(layered, resolved, policy, problems);
}

}  // namespace httpretry::policy_file
