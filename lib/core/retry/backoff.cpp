#include <httpretry/retry/backoff.hpp>

#include <algorithm>
#include <cmath>

namespace httpretry {
namespace {

// The first number of nanoseconds that does not fit into a Duration. Doubles are exact to the
// nanosecond up to 104 days, and to 4 ns up to a year, the longest wait in a policy file.
constexpr double kTooLong = 0x1p63;

double nanoseconds(Duration wait) { return static_cast<double>(wait.count()); }

Duration saturated(double ns) {
  if (!(ns > 0)) return Duration::zero();  // also NaN
  return ns >= kTooLong ? kForever : Duration(static_cast<Duration::rep>(ns));
}

// A wait is min(cap, U(low, high)). Slots, which counts whole slots, is the only other kind.
struct Span {
  double low = 0;
  double high = 0;
  Duration cap = kForever;
};

// Finite, because 0 times infinity would be NaN.
double power(double base, double exponent) { return std::min(std::pow(base, exponent), 0x1p200); }

Span exponential(const Backoff& backoff, double retry) {
  auto v = std::min(nanoseconds(backoff.initial) * power(backoff.multiplier, retry - 1), kTooLong);
  if (!backoff.cap_after_jitter) v = std::min(v, nanoseconds(backoff.max_interval));
  const auto max = backoff.max_interval;
  const auto cap = backoff.cap_after_jitter ? max : kForever;
  const auto r = backoff.randomization;
  switch (backoff.jitter) {
    case Backoff::Jitter::None: return {v, v, max};
    case Backoff::Jitter::Full: return {0, v, max};
    case Backoff::Jitter::Equal: return {v / 2, v, max};
    case Backoff::Jitter::Proportional: return {v * (1 - r), v * (1 + r), cap};
    case Backoff::Jitter::Range: return {v * backoff.low, v * backoff.high, cap};
    case Backoff::Jitter::Additive: return {v, v + nanoseconds(backoff.add), cap};
  }
  return {};
}

// As in AWS's formula, the first wait grows from `initial`.
Span decorrelated(const Backoff& backoff, Duration previous) {
  const auto low = nanoseconds(backoff.initial);
  const auto before = previous > Duration::zero() ? nanoseconds(previous) : low;
  return {low, std::max(low, before * backoff.multiplier), backoff.max_interval};
}

Span truncated_binary(const Backoff& backoff, double retry) {
  const auto steps = static_cast<double>(std::max(backoff.steps, 1));
  const auto high = nanoseconds(backoff.max_interval) * std::exp2(std::min(retry, steps) - steps);
  return {0, high, backoff.max_interval};
}

Span span(const Backoff& backoff, int retry_number, Duration previous) {
  const auto retry = static_cast<double>(std::max(retry_number, 1));
  const auto initial = nanoseconds(backoff.initial);
  switch (backoff.kind) {
    case Backoff::Kind::None: return {};
    case Backoff::Kind::Constant: return {initial, initial, kForever};
    case Backoff::Kind::Linear: {
      const auto v = initial + nanoseconds(backoff.increment) * (retry - 1);
      return {v, v, backoff.max_interval};
    }
    case Backoff::Kind::Exponential: return exponential(backoff, retry);
    case Backoff::Kind::Decorrelated: return decorrelated(backoff, previous);
    case Backoff::Kind::TruncatedBinary: return truncated_binary(backoff, retry);
    case Backoff::Kind::Slots: return {};
  }
  return {};
}

// Returns the number of slots to choose from: 2^min(retry, steps).
double slot_count(const Backoff& backoff, int retry) {
  return std::exp2(std::clamp(retry, 0, std::clamp(backoff.steps, 0, 52)));
}

Duration at(const Span& span, double u) {
  return std::min(span.cap, saturated(span.low + u * (span.high - span.low)));
}

// Returns the mean of min(cap, U(low, high)).
Duration mean(const Span& span) {
  const auto cap = nanoseconds(span.cap);
  if (span.high <= cap || span.high <= span.low) return at(span, 0.5);
  if (span.low >= cap) return span.cap;
  const auto uncapped = (cap - span.low) / (span.high - span.low);
  return saturated(uncapped * (span.low + cap) / 2 + (1 - uncapped) * cap);
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
  const auto u = unit_random >= 0 ? std::min(unit_random, 1.0) : 0.0;
  if (backoff.kind != Backoff::Kind::Slots) return at(span(backoff, retry, previous), u);
  const auto slots = slot_count(backoff, retry);
  return saturated(std::min(std::floor(u * slots), slots - 1) * nanoseconds(backoff.initial));
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
                   : mean(span(backoff, retry, previous.mean));
  return range;
}

}  // namespace httpretry
