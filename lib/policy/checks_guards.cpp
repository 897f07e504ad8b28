#include "lib/policy/checks.hpp"

#include "lib/retry/policy_limits.hpp"

#include <algorithm>

namespace httpretry::policy_file {

std::string over(std::string_view key, Duration value, std::string_view limit, Duration most) {
  return std::string(key) + " (" + httpretry::to_text(value) + ") is over " + std::string(limit) +
         " (" + httpretry::to_text(most) + ")";
}

void PolicyChecker::check_backoff(const Layered* object, const Backoff& backoff) {
  if (object == nullptr) return;
  const auto* const initial = object->find("initial");
  const auto* const max = object->find("max_interval");
  if (initial != nullptr && max != nullptr && backoff.initial > backoff.max_interval) {
    error({initial, max}, over("initial", backoff.initial, "max_interval", backoff.max_interval));
  }
  if (backoff.low > backoff.high)
    error({object->find("low"), object->find("high")}, "low is over high");
}

bool PolicyChecker::written(const Layered* value) const {
  return value != nullptr && (value->origin->positions || is_within(*value->json, policy_));
}

// At a value of this policy, else at one of a layer below that is in a file.
const JsonNode* PolicyChecker::reported_at(Parts parts) const {
  for (const auto* const part : parts) {
    if (part != nullptr && is_within(*part->json, policy_)) return part->json;
  }
  for (const auto* const part : parts) {
    if (part != nullptr && part->origin->positions) return part->json;
  }
  return nullptr;
}

bool PolicyChecker::doubtful(Parts parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const Layered* part) { return part != nullptr && part->doubtful; });
}

void PolicyChecker::error(Parts parts, std::string message) {
  if (doubtful(parts)) return;
  const auto* const at = reported_at(parts);
  problems_.error(at == nullptr ? policy_ : *at, std::move(message));
}

void PolicyChecker::warn(Parts parts, std::string message) {
  const auto* const at = reported_at(parts);
  if (at != nullptr && !doubtful(parts)) problems_.warn(*at, std::move(message));
}

namespace {

std::string too_short(std::string_view key, Duration window) {
  return std::string(key) + " (" + httpretry::to_text(window) + ") is under " +
         httpretry::to_text(policy::kShortestWindow) +
         ", a tenth of which is too short to count in";
}

class GuardChecker : private PolicyChecker {
 public:
  GuardChecker(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
               Problems& problems)
      : PolicyChecker(layered, policy, problems), resolved_(resolved) {}

  void run() {
    pause();
    const auto& guards = resolved_.guards;
    if (guards.rate) rate(*layered_.find("rate"), *guards.rate);
    if (guards.concurrency) concurrency(*layered_.find("concurrency"), *guards.concurrency);
    if (guards.breaker) breaker(*layered_.find("breaker"), *guards.breaker);
    priority();
  }

 private:
  // Without a server delay there is nothing to pause for.
  void pause() {
    const auto* const object = layered_.find("pause");
    const auto& delay = resolved_.server_delay;
    if (!written(object) || !resolved_.guards.pause.enabled || !policy::ignores_servers(delay)) {
      return;
    }
    warn({object, layered_.find("server_delay")},
         "there is never a pause: server_delay ignores what a server asks for");
  }

  void rate(const Layered& object, const RatePolicy& rate) {
    const auto* const wait = object.find("max_wait");
    if (written(wait) && rate.max_wait != kForever && rate.max_wait > resolved_.max_elapsed_time) {
      warn({wait, layered_.find("max_elapsed_time")},
           over("rate.max_wait", rate.max_wait, "max_elapsed_time", resolved_.max_elapsed_time));
    }
  }

  void concurrency(const Layered& object, const ConcurrencyPolicy& limits) {
    if (limits.kind == ConcurrencyPolicy::Kind::Aimd) {
      const auto* const min = object.find("min");
      const auto* const max = object.find("max");
      const auto* const initial = object.find("initial");
      if (limits.min > limits.max) {
        error({min, max, &object}, "min (" + std::to_string(limits.min) + ") is over max (" +
                                       std::to_string(limits.max) + ")");
      } else if (initial != nullptr &&
                 (limits.initial < limits.min || limits.initial > limits.max)) {
        error({initial, min, max}, "initial (" + std::to_string(limits.initial) +
                                       ") is not between min (" + std::to_string(limits.min) +
                                       ") and max (" + std::to_string(limits.max) + ")");
      }
    }
    const auto* const queue = object.find("queue");
    if (queue == nullptr) return;
    if (limits.queue.order == ConcurrencyPolicy::Order::Lifo && limits.queue.timeout == kForever) {
      error({queue->find("order"), queue},
            "\"lifo\" needs a \"timeout\": those that came first may else wait for ever");
    }
  }

  void breaker(const Layered& object, const BreakerPolicy& breaker) {
    const auto* const window = object.find("window");
    if (breaker.window < policy::kShortestWindow) {
      error({window, &object}, too_short("window", breaker.window));
    }
    if (breaker.share_window < policy::kShortestWindow) {
      error({object.find("share_window"), &object},
            too_short("share_window", breaker.share_window));
    }
    check_backoff(object.find("open_for"), breaker.open_for);
    if (breaker.kind == BreakerPolicy::Kind::Share) return;
    const auto* const probe = object.find("probe_timeout");
    const auto* const attempt = layered_.find("attempt_timeout");
    if (resolved_.attempt_timeout != kForever &&
        breaker.probe_timeout < resolved_.attempt_timeout) {
      error({probe, &object, attempt}, over("attempt_timeout", resolved_.attempt_timeout,
                                            "probe_timeout", breaker.probe_timeout) +
                                           ": a probe that is still under way would count no more");
    }
    const auto* const ratio = object.find("slow_ratio");
    if (written(ratio) && !written(object.find("slow_after"))) {
      error({ratio}, "\"slow_ratio\" needs \"slow_after\", which says what is slow");
    }
  }

  // Who goes first matters only where something waits.
  void priority() {
    const auto* const key = layered_.find("priority");
    const auto& guards = resolved_.guards;
    if (!written(key) || guards.priority == Priority::Normal || guards.has_limits()) return;
    warn({key},
         "nothing waits without \"rate\", \"concurrency\" or \"breaker\": a priority "
         "says nothing");
  }

  const RetryPolicy& resolved_;
};

}  // namespace

void check_guards(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                  Problems& problems) {
  GuardChecker(layered, resolved, policy, problems).run();
}

}  // namespace httpretry::policy_file
