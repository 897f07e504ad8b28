// Backoff: how long to wait before the next attempt. Data, and one pure function of it.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/time.hpp>

#include <cstdint>

namespace httpretry {

// `retry` below is 1 for the wait after the first attempt; `u` is uniform in [0, 1). All arithmetic
// saturates.
struct Backoff {
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
  bool cap_after_jitter = false;  // max_interval bounds the jittered wait, not v
  Duration initial{};             // "interval" of Constant, "slot" of Slots
  Duration increment{};
  Duration add{};
  Duration max_interval = kForever;
  double multiplier = 2;
  double randomization = 0.5;
  double low = 1;
  double high = 1;
  int steps = 10;  // "truncate" of Slots
  int abort = 16;

  friend bool operator==(const Backoff&, const Backoff&) = default;
};

// The wait after failed attempt number `retry`; `previous` is the wait before it (zero for the
// first).
[[nodiscard]] HTTPRETRY_API Duration delay(const Backoff& backoff, int retry, Duration previous,
                                           double unit_random);

}  // namespace httpretry
