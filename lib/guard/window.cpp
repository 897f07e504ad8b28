#include "window.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

constexpr int kTenths = 10;

// Tenths begin at multiples of their length.
Time end_of_tenth(Time now, Duration length) {
  const auto since = std::max(now.time_since_epoch(), Duration::zero());
  return Time((since / length + 1) * length);
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  all += other.all;
  good += other.good;
  slow += other.slow;
  return *this;
}

Counts& Counts::operator-=(const Counts& other) {
  all -= other.all;
  good -= other.good;
  slow -= other.slow;
  return *this;
}

// The window has nine tenths and the one that `now` is in.
bool Window::is_over(const Tenth& one, Time now) const {
  return now >= later(one.end, (kTenths - 1) * length_of_tenth_);
}

void Window::add(const Counts& more, Time now, Duration length) {
  length_of_tenth_ = std::max(length / kTenths, Duration(1));
  auto first = tenths_.begin();
  for (; first != tenths_.end() && is_over(*first, now); ++first) sum_ -= first->counts;
  tenths_.erase(tenths_.begin(), first);
  if (tenths_.empty() || now >= tenths_.back().end) {
    if (!tenths_.empty()) tenths_.reserve(kTenths);
    tenths_.push_back({end_of_tenth(now, length_of_tenth_), {}});
  }
  tenths_.back().counts += more;
  sum_ += more;
}

Counts Window::sum(Time now) const {
  auto sum = sum_;
  for (const auto& one : tenths_) {
    if (!is_over(one, now)) break;
    sum -= one.counts;
  }
  return sum;
}

}  // namespace httpretry::guard
