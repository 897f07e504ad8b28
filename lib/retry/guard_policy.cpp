#include <httpretry/retry/guard_policy.hpp>

namespace httpretry {

BreakerPolicy::BreakerPolicy()
    : open_for(Backoff::exponential({.initial = std::chrono::seconds(5),
                                     .multiplier = 2,
                                     .max_interval = std::chrono::minutes(1),
                                     .jitter = Backoff::Jitter::Proportional})) {
  open_for.randomization = 0.2;
}

}  // namespace httpretry
