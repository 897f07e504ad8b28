#include "lib/policy/checks.hpp"

#include "lib/retry/policy_limits.hpp"

#include <array>
#include <cstdio>

namespace httpretry::policy_file {
namespace {

// Without a server delay there is nothing to pause for.
void check_pause(const PolicyChecker& checker) {
  const auto& resolved = checker.resolved;
  if (!checker.written("pause") || !resolved.guards.pause.enabled ||
      !policy::ignores_servers(resolved.server_delay)) {
    return;
  }
  checker.warn({"pause", "server_delay"},
               "there is never a pause: server_delay ignores what a server asks for");
}

void check_rate(const PolicyChecker& checker, const RatePolicy& rate) {
  const auto elapsed = checker.resolved.max_elapsed_time;
  if (checker.written("rate.max_wait") && rate.max_wait != kForever && rate.max_wait > elapsed) {
    checker.warn({"rate.max_wait", "max_elapsed_time"},
                 over("rate.max_wait", rate.max_wait, "max_elapsed_time", elapsed));
  }
}

void check_concurrency(const PolicyChecker& checker, const ConcurrencyPolicy& limits) {
  const auto min = std::to_string(limits.min);
  const auto max = std::to_string(limits.max);
  if (limits.kind == ConcurrencyPolicy::Kind::Aimd) {
    if (limits.min > limits.max) {
      checker.error({"concurrency.min", "concurrency.max", "concurrency"},
                    "min (" + min + ") is over max (" + max + ")");
    } else if (checker.at("concurrency.initial") != nullptr &&
               (limits.initial < limits.min || limits.initial > limits.max)) {
      checker.error({"concurrency.initial", "concurrency.min", "concurrency.max"},
                    "initial (" + std::to_string(limits.initial) + ") is not between min (" + min +
                        ") and max (" + max + ")");
    }
  }
  if (checker.at("concurrency.queue") != nullptr &&
      limits.queue.order == ConcurrencyPolicy::Order::Lifo && limits.queue.timeout == kForever) {
    checker.error({"concurrency.queue.order", "concurrency.queue"},
                  "\"lifo\" needs a \"timeout\": those that came first may else wait for ever");
  }
}

void check_window(const PolicyChecker& checker, const std::string& key, Duration window) {
  if (window >= policy::kShortestWindow) return;
  checker.error({"breaker." + key, "breaker"}, key + " (" + httpretry::to_text(window) +
                                                   ") is under " +
                                                   httpretry::to_text(policy::kShortestWindow) +
                                                   ", a tenth of which is too short to count in");
}

void check_breaker(const PolicyChecker& checker, const BreakerPolicy& breaker) {
  check_window(checker, "window", breaker.window);
  check_window(checker, "share_window", breaker.share_window);
  checker.check_backoff("breaker.open_for", breaker.open_for);
  if (breaker.kind == BreakerPolicy::Kind::Share) return;
  const auto attempt = checker.resolved.attempt_timeout;
  if (attempt != kForever && breaker.probe_timeout < attempt) {
    checker.error({"breaker.probe_timeout", "breaker", "attempt_timeout"},
                  over("attempt_timeout", attempt, "probe_timeout", breaker.probe_timeout) +
                      ": a probe that is still under way would count no more");
  }
  if (checker.written("breaker.slow_ratio") && !checker.written("breaker.slow_after")) {
    checker.error({"breaker.slow_ratio"},
                  "\"slow_ratio\" needs \"slow_after\", which says what is slow");
  }
}

// Who goes first matters only where something waits.
void check_priority(const PolicyChecker& checker) {
  const auto& guards = checker.resolved.guards;
  if (!checker.written("priority") || guards.priority == Priority::Normal || guards.has_limits()) {
    return;
  }
  checker.warn({"priority"},
               "nothing waits without \"rate\", \"concurrency\" or \"breaker\": a priority "
               "says nothing");
}

std::string short_number(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

// Reports a hedge that comes too late, and returns whether it does.
bool comes_too_late(const PolicyChecker& checker, const std::string& limit, Duration most) {
  const auto after = checker.resolved.hedge->after;
  if (after < most) return false;
  checker.error({"hedge.after", limit},
                "hedge.after (" + httpretry::to_text(after) + ") is not under " + limit + " (" +
                    httpretry::to_text(most) + "): no hedge would ever be sent");
  return true;
}

void check_time_of_hedge(const PolicyChecker& checker, const HedgePolicy& hedge) {
  const auto& resolved = checker.resolved;
  if (hedge.quantile == 0) {
    if (comes_too_late(checker, "attempt_timeout", resolved.attempt_timeout)) return;
    comes_too_late(checker, "max_elapsed_time", resolved.max_elapsed_time);
  } else if (hedge.min > hedge.max) {
    checker.error({"hedge.min", "hedge.max", "hedge.after"},
                  over("hedge.min", hedge.min, "hedge.max", hedge.max));
  }
}

void check_hedge(const PolicyChecker& checker, const HedgePolicy& hedge) {
  const auto& resolved = checker.resolved;
  check_time_of_hedge(checker, hedge);
  if (resolved.max_attempts == 1) {
    checker.warn({"hedge.after", "max_attempts"},
                 "max_attempts is 1, and counts hedges, too: no hedge would ever be sent");
  }
  if (resolved.repeat == Repeat::Never || resolved.repeat == Repeat::Refused) {
    checker.warn({"hedge.after", "repeat"},
                 "repeat forbids a second send of what may have been carried out: no hedge would "
                 "ever be sent");
  }
  const auto hedged = 2 * (1 - hedge.quantile);
  if (hedge.quantile > 0 && hedge.budget && *hedge.budget < hedged - 1e-9) {
    checker.warn({"hedge.budget", "hedge.after"},
                 "hedge.budget (" + short_number(*hedge.budget) + ") is under " +
                     short_number(hedged) + ", twice the part of the calls that are slower than " +
                     policy::quantile_text(hedge.quantile) +
                     ": where many are slow at once, many of them get no hedge");
  }
}

}  // namespace

void check_guards(const PolicyChecker& checker) {
  const auto& guards = checker.resolved.guards;
  check_pause(checker);
  if (guards.rate) check_rate(checker, *guards.rate);
  if (guards.concurrency) check_concurrency(checker, *guards.concurrency);
  if (guards.breaker) check_breaker(checker, *guards.breaker);
  check_priority(checker);
  if (checker.at("hedge") != nullptr && checker.resolved.hedge) {
    check_hedge(checker, *checker.resolved.hedge);
  }
}

}  // namespace httpretry::policy_file
