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
  return sum_until(std::max(tenth_of(now, length), latest_));
}

Counts Window::sum_until(std::int64_t tenth) const {
  Counts sum;
  const auto first = std::max<std::int64_t>(tenth - kTenths + 1, 0);
  auto index = static_cast<std::size_t>(first % kTenths);
  for (auto number = first; number <= latest_; ++number) {
    const auto& one = tenths_[index];
    index = index + 1 == tenths_.size() ? 0 : index + 1;
    sum.all += one.all;
    sum.good += one.good;
    sum.slow += one.slow;
  }
  return sum;
}

}  // namespace httpretry::guard
