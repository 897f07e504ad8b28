// Arithmetic with times that saturates instead of overflowing.
#pragma once

#include <chrono>
#include <cstdint>

namespace httpretry::saturating {

using Duration = std::chrono::nanoseconds;

inline Duration plus(Duration a, Duration b) {
  Duration::rep sum = 0;
  if (!__builtin_add_overflow(a.count(), b.count(), &sum)) return Duration(sum);
  return a < Duration::zero() ? Duration::min() : Duration::max();
}

inline Duration minus(Duration a, Duration b) {
  Duration::rep rest = 0;
  if (!__builtin_sub_overflow(a.count(), b.count(), &rest)) return Duration(rest);
  return a < Duration::zero() ? Duration::min() : Duration::max();
}

template <class Point>
Point plus(Point point, Duration wait) {
  return Point(plus(point.time_since_epoch(), wait));
}

template <class Point>
Duration between(Point from, Point to) {
  return minus(to.time_since_epoch(), from.time_since_epoch());
}

// Requires a `unit` of at least 0.
inline Duration times(std::uint64_t count, Duration unit) {
  Duration::rep product = 0;
  return __builtin_mul_overflow(count, unit.count(), &product) ? Duration::max()
                                                               : Duration(product);
}

// Returns the next multiple of `unit`, or 0 for a negative wait.
inline Duration round_up(Duration wait, Duration unit) {
  if (wait <= Duration::zero()) return Duration::zero();
  const auto rest = wait % unit;
  return rest == Duration::zero() ? wait : plus(wait, unit - rest);
}

}  // namespace httpretry::saturating
