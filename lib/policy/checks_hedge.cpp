#include "lib/policy/checks.hpp"

#include "lib/retry/policy_limits.hpp"

#include <array>
#include <cstdio>

namespace httpretry::policy_file {
namespace {

std::string short_number(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

std::string not_under(std::string_view limit, Duration most, Duration after) {
  return "hedge.after (" + httpretry::to_text(after) + ") is not under " + std::string(limit) +
         " (" + httpretry::to_text(most) + "): no hedge would ever be sent";
}

class HedgeChecker : private PolicyChecker {
 public:
  HedgeChecker(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
               Problems& problems)
      : PolicyChecker(layered, policy, problems), resolved_(resolved) {}

  void run() {
    const auto* const object = layered_.find("hedge");
    if (object == nullptr || !resolved_.hedge) return;
    times(*object);
    never(*object);
    const auto& hedge = *resolved_.hedge;
    const auto hedged = 2 * (1 - hedge.quantile);
    if (hedge.quantile > 0 && hedge.budget && *hedge.budget < hedged - 1e-9) {
      warn({object->find("budget"), object->find("after")},
           "hedge.budget (" + short_number(*hedge.budget) + ") is under " + short_number(hedged) +
               ", twice the part of the calls that are slower than " +
               policy::quantile_text(hedge.quantile) +
               ": where many are slow at once, many of "
               "them get no hedge");
    }
  }

 private:
  void times(const Layered& object) {
    const auto& hedge = *resolved_.hedge;
    const auto* const after = object.find("after");
    if (hedge.quantile == 0) {
      if (resolved_.attempt_timeout <= hedge.after) {
        error({after, layered_.find("attempt_timeout")},
              not_under("attempt_timeout", resolved_.attempt_timeout, hedge.after));
      } else if (resolved_.max_elapsed_time <= hedge.after) {
        error({after, layered_.find("max_elapsed_time")},
              not_under("max_elapsed_time", resolved_.max_elapsed_time, hedge.after));
      }
    } else if (hedge.min > hedge.max) {
      error({object.find("min"), object.find("max"), after},
            over("hedge.min", hedge.min, "hedge.max", hedge.max));
    }
  }

  void never(const Layered& object) {
    const auto* const after = object.find("after");
    if (resolved_.max_attempts && *resolved_.max_attempts == 1) {
      warn({after, layered_.find("max_attempts")},
           "max_attempts is 1, and counts hedges, too: no hedge would ever be sent");
    }
    if (resolved_.repeat == Repeat::Never || resolved_.repeat == Repeat::Refused) {
      warn({after, layered_.find("repeat")},
           "repeat forbids a second send of what may have been carried out: no hedge would ever be "
           "sent");
    }
  }

  const RetryPolicy& resolved_;
};

}  // namespace

void check_hedge(const Layered& layered, const RetryPolicy& resolved, const JsonNode& policy,
                 Problems& problems) {
  HedgeChecker(layered, resolved, policy, problems).run();
}

}  // namespace httpretry::policy_file
