#include <httpretry/retry/backoff.hpp>

#include <algorithm>
#include <cmath>

namespace httpretry {
namespace {

// The first number of nanoseconds that does not fit into a Duration. Doubles are exact to the
// nanosecond up to 104 days, and to 4 ns up to a year, the longest wait in a policy file.
constexpr double kTooLong = 0x1p63;

// Returns a finite power, because 0 times infinity would be NaN.
double power(double base, double exponent) { return std::min(std::pow(base, exponent), 0x1p200); }

double nanoseconds(Duration wait) { return static_cast<double>(wait.count()); }

Duration saturated(double ns) {
  if (!(ns > 0)) return Duration::zero();  // also NaN
  return ns >= kTooLong ? kForever : Duration(static_cast<Duration::rep>(ns));
}

// A range of waits in nanoseconds. The wait is random: min(cap, U(low, high)), where U is uniform.
// Kind::Slots, which counts whole slots, is the only kind of backoff that is not such a range.
struct WaitRange {
  double low = 0;
  double high = 0;
  Duration cap = kForever;
};

// Returns the range {low, high, cap} of the wait before retry number `retry` (1, 2, ...): a random
// time between low and high, but at most cap. The wait is initial * multiplier^(retry - 1), spread
// by the jitter: 100, 200, 400 ms with full jitter becomes 0-100, 0-200, 0-400 ms. `max_interval`
// limits the wait before the jitter, or with `cap_after_jitter` the result.
WaitRange exponential(const Backoff& backoff, double retry) {
  const auto max = backoff.max_interval;
  // A wait of kTooLong (2^63 ns) or more does not fit into a Duration, and counts as kForever.
  auto wait =
      std::min(nanoseconds(backoff.initial) * power(backoff.multiplier, retry - 1), kTooLong);
  if (!backoff.cap_after_jitter) wait = std::min(wait, nanoseconds(max));
  const auto cap = backoff.cap_after_jitter ? max : kForever;
  const auto spread = backoff.randomization;  // 0.2 means up to 20 % shorter or longer
  switch (backoff.jitter) {
    // These three never lengthen the wait. If `max` has limited it above, the cap `max` has no
    // further effect.
    case Backoff::Jitter::None: return {wait, wait, max};
    case Backoff::Jitter::Full: return {0, wait, max};
    case Backoff::Jitter::Equal: return {wait / 2, wait, max};
    // These may lengthen the wait.
    case Backoff::Jitter::Proportional: return {wait * (1 - spread), wait * (1 + spread), cap};
    case Backoff::Jitter::Range: return {wait * backoff.low, wait * backoff.high, cap};
    case Backoff::Jitter::Additive: return {wait, wait + nanoseconds(backoff.add), cap};
  }
  return {};
}

// Returns waits from `initial` up to a multiple of the previous wait. As in AWS's formula, the
// first wait grows from `initial`.
WaitRange decorrelated(const Backoff& backoff, Duration previous) {
  const auto low = nanoseconds(backoff.initial);
  const auto grows_from = previous > Duration::zero() ? nanoseconds(previous) : low;
  return {low, std::max(low, grows_from * backoff.multiplier), backoff.max_interval};
}

// Returns waits up to a bound that doubles with each retry, and reaches the maximum at retry number
// `steps`.
WaitRange truncated_binary(const Backoff& backoff, double retry) {
  const auto steps = static_cast<double>(std::max(backoff.steps, 1));
  const auto high = nanoseconds(backoff.max_interval) * std::exp2(std::min(retry, steps) - steps);
  return {0, high, backoff.max_interval};
}

// Returns the range {low, high, cap} of the wait before retry number `retry_number` (1, 2, ...): a
// random time between low and high, but at most cap. `previous` is the wait before the last retry,
// which matters only for Kind::Decorrelated. {} means no wait, and the cap kForever no limit.
WaitRange wait_range(const Backoff& backoff, int retry_number, Duration previous) {
  const auto retry = static_cast<double>(std::max(retry_number, 1));
  const auto initial = nanoseconds(backoff.initial);
  switch (backoff.kind) {
    case Backoff::Kind::None: return {};
    case Backoff::Kind::Constant: return {initial, initial, kForever};
    case Backoff::Kind::Linear: {
      const auto wait = initial + nanoseconds(backoff.increment) * (retry - 1);
      return {wait, wait, backoff.max_interval};
    }
    case Backoff::Kind::Exponential: return exponential(backoff, retry);
    case Backoff::Kind::Decorrelated: return decorrelated(backoff, previous);
    case Backoff::Kind::TruncatedBinary: return truncated_binary(backoff, retry);
    case Backoff::Kind::Slots: return {};  // not reached: `delay` chooses among whole slots instead
  }
  return {};
}

// Returns the number of slots to choose from: 2^min(retry, steps).
double slot_count(const Backoff& backoff, int retry) {
  return std::exp2(std::clamp(retry, 0, std::clamp(backoff.steps, 0, 52)));
}

// Returns the wait for the random number `unit_random`, which is in [0, 1].
Duration wait_at(const WaitRange& range, double unit_random) {
  return std::min(range.cap, saturated(range.low + unit_random * (range.high - range.low)));
}

// Returns the mean of min(cap, U(low, high)).
Duration mean(const WaitRange& range) {
  const auto cap = nanoseconds(range.cap);
  if (range.high <= cap || range.high <= range.low) return wait_at(range, 0.5);
  if (range.low >= cap) return range.cap;
  const auto uncapped_part = (cap - range.low) / (range.high - range.low);
  return saturated(uncapped_part * (range.low + cap) / 2 + (1 - uncapped_part) * cap);
}

}  // namespace

Backoff Backoff::exponential(const ExponentialBackoff& parameters) {
  Backoff backoff;
  backoff.initial = parameters.initial;
  backoff.multiplier = parameters.multiplier;
  backoff.max_interval = parameters.max_interval;
  backoff.jitter = parameters.jitter;
  return backoff;
}

Backoff Backoff::constant(Duration interval) {
  Backoff backoff;
  backoff.kind = Kind::Constant;
  backoff.initial = interval;
  return backoff;
}

Duration delay(const Backoff& backoff, int retry, Duration previous, double unit_random) {
  const auto u = unit_random >= 0 ? std::min(unit_random, 1.0) : 0.0;  // NaN becomes 0
  if (backoff.kind != Backoff::Kind::Slots) return wait_at(wait_range(backoff, retry, previous), u);
  const auto slots = slot_count(backoff, retry);
  const auto slot = std::min(std::floor(u * slots), slots - 1);  // from 0 on; u may be 1
  return saturated(slot * nanoseconds(backoff.initial));
}

bool gives_up(const Backoff& backoff, int failures) {
  return backoff.kind == Backoff::Kind::Slots && failures >= backoff.abort;
}

DelayRange delay_range(const Backoff& backoff, int retry, const DelayRange& previous) {
  DelayRange range;
  range.least = delay(backoff, retry, previous.least, 0);
  range.most = delay(backoff, retry, previous.most, 1);
  range.mean = backoff.kind == Backoff::Kind::Slots
                   ? saturated((slot_count(backoff, retry) - 1) / 2 * nanoseconds(backoff.initial))
                   : mean(wait_range(backoff, retry, previous.mean));
  return range;
}

}  // namespace httpretry
