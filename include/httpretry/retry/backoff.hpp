// Backoff: how long to wait before the next attempt. Plain data, and pure functions of it.
//
// Why it is random: clients that failed together and then wait the same time come back together.
// "Full" jitter spreads them over the whole wait and needs the fewest calls in total.
//
// Exponential, initial 100 ms, multiplier 2, max_interval 1 s:
//
//   retry                1     2     3     4     5      6
//   v                  100   200   400   800  1000   1000 ms
//   jitter none        100   200   400   800  1000   1000
//   full              0-100 0-200 0-400 0-800 0-1000 0-1000
//   equal            50-100 ...
//   proportional 0.5 50-150 ...                      500-1500   (the cap is on v: Google's rule)
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/time.hpp>

#include <cstdint>

namespace httpretry {

struct ExponentialBackoff;

// Backoff holds the kind and the parameters of a wait. In the formulas, `retry` is 1 for the wait
// after the first attempt, `u` is uniform in [0, 1), and U(a, b) is uniform between a and b. All
// arithmetic saturates.
//
//   policy.backoff = Backoff::exponential({.initial = 50ms});
//   policy.backoff = Backoff::constant(1s);
struct HTTPRETRY_API Backoff {
  Backoff() = default;  // prevents `= {.initial = 50ms}`, which has no upper limit
  // Return waits that grow exponentially, and waits that are always the same.
  static Backoff exponential(const ExponentialBackoff& parameters);
  static Backoff constant(Duration interval);

  // How the wait grows.
  enum class Kind : std::uint8_t {
    None,             // 0
    Constant,         // initial
    Linear,           // min(max_interval, initial + increment * (retry - 1))
    Exponential,      // v = min(max_interval, initial * multiplier^(retry - 1)), then jitter
    Decorrelated,     // min(max_interval, U(initial, previous * multiplier)), previous starts at
                      // initial
    TruncatedBinary,  // U(0, a * 2^(min(retry, steps) - 1)), a = max_interval / 2^(steps - 1)
    Slots,  // randint[0, 2^min(retry, steps) - 1] * initial; no retry after `abort` failures
  };
  // The random part of an exponential wait.
  enum class Jitter : std::uint8_t {
    None,          // v
    Full,          // U(0, v)
    Equal,         // v/2 + U(0, v/2)
    Proportional,  // v * (1 - randomization) + u * 2 * randomization * v
    Range,         // v * (low + u * (high - low))
    Additive,      // v + U(0, add)
  };

  Kind kind = Kind::Exponential;
  Jitter jitter = Jitter::Full;
  bool cap_after_jitter = false;  // max_interval limits the wait after jitter, instead of v
  Duration initial{};             // "interval" of Constant, "slot" of Slots
  Duration increment{};
  Duration add{};
  Duration max_interval = kForever;
  double multiplier = 2;
  double randomization = 0.5;
  double low = 1;
  double high = 1;
  int steps = 10;  // "truncate" of Slots
  int abort = 16;  // for Slots: no retry after this many failures

  friend bool operator==(const Backoff&, const Backoff&) = default;
};

// The parameters of Backoff::exponential. The defaults are those of the preset "standard".
struct ExponentialBackoff {
  Duration initial = std::chrono::milliseconds(300);
  double multiplier = 2;
  Duration max_interval = std::chrono::seconds(20);
  Backoff::Jitter jitter = Backoff::Jitter::Equal;
};

// Returns the wait after failed attempt number `retry`. `previous` is the backoff before that
// attempt, zero for the first; only Decorrelated uses it. `unit_random` is uniform in [0, 1): 0
// results in the shortest wait and 1 in the longest, and values outside are clamped. The result is
// never negative, and kForever if the arithmetic would overflow.
[[nodiscard]] HTTPRETRY_API Duration delay(const Backoff& backoff, int retry, Duration previous,
                                           double unit_random);

// Returns whether the backoff itself allows no more attempts: Slots after `abort` failures.
[[nodiscard]] HTTPRETRY_API bool gives_up(const Backoff& backoff, int failures);

// The shortest, mean and longest wait.
struct DelayRange {
  Duration least{};
  Duration mean{};
  Duration most{};
  friend bool operator==(const DelayRange&, const DelayRange&) = default;
};

// Returns the range of `delay`, to show a policy before it is used. `previous` is the range of the
// previous wait. The mean is exact except for Decorrelated after the first wait, for which it is
// computed from the mean of the previous wait.
[[nodiscard]] HTTPRETRY_API DelayRange delay_range(const Backoff& backoff, int retry,
                                                   const DelayRange& previous = {});

}  // namespace httpretry
