#include "window.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

std::int64_t tenth_of(Time now, Duration length) {
  return std::max<std::int64_t>(now.time_since_epoch() / std::max(length / 10, Duration(1)), 0);
}

}  // namespace

Counts& Window::at(Time now, Duration length) {
  const auto tenth = std::max(tenth_of(now, length), latest_);
  const auto passed = std::min(tenth - latest_, kTenths);
  for (auto number = tenth - passed + 1; number <= tenth; ++number) {
    tenths_[static_cast<std::size_t>(number % kTenths)] = {};
  }
  latest_ = tenth;
  return tenths_[static_cast<std::size_t>(tenth % kTenths)];
}

Counts Window::sum(Time now, Duration length) const {
  const auto tenth = std::max(tenth_of(now, length), latest_);
  Counts sum;
  for (auto number = std::max<std::int64_t>(tenth - kTenths + 1, 0); number <= latest_; ++number) {
    const auto& one = tenths_[static_cast<std::size_t>(number % kTenths)];
    sum.all += one.all;
    sum.good += one.good;
    sum.slow += one.slow;
  }
  return sum;
}

}  // namespace httpretry::guard
