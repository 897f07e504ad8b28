// Arithmetic with times that saturates instead of overflowing.
#pragma once

#include <chrono>
#include <cstdint>

namespace httpretry::saturating {

using Nanoseconds = std::chrono::nanoseconds;

inline Nanoseconds plus(Nanoseconds a, Nanoseconds b) {
  Nanoseconds::rep sum = 0;
  if (!__builtin_add_overflow(a.count(), b.count(), &sum)) return Nanoseconds(sum);
  return a < Nanoseconds::zero() ? Nanoseconds::min() : Nanoseconds::max();
}

inline Nanoseconds minus(Nanoseconds a, Nanoseconds b) {
  Nanoseconds::rep rest = 0;
  if (!__builtin_sub_overflow(a.count(), b.count(), &rest)) return Nanoseconds(rest);
  return a < Nanoseconds::zero() ? Nanoseconds::min() : Nanoseconds::max();
}

template <class Clock>
auto plus(std::chrono::time_point<Clock, Nanoseconds> time, Nanoseconds wait) {
  return decltype(time)(plus(time.time_since_epoch(), wait));
}

template <class Point>
Nanoseconds between(Point from, Point to) {
  return minus(to.time_since_epoch(), from.time_since_epoch());
}

// Requires a `unit` of at least 0.
inline Nanoseconds times(std::uint64_t count, Nanoseconds unit) {
  Nanoseconds::rep product = 0;
  return __builtin_mul_overflow(count, unit.count(), &product) ? Nanoseconds::max()
                                                               : Nanoseconds(product);
}

// Returns the next multiple of `unit`, or 0 for a negative wait.
inline Nanoseconds round_up(Nanoseconds wait, Nanoseconds unit) {
  if (wait <= Nanoseconds::zero()) return Nanoseconds::zero();
  const auto rest = wait % unit;
  return rest == Nanoseconds::zero() ? wait : plus(wait, unit - rest);
}

}  // namespace httpretry::saturating
