#include "window.hpp"

#include <algorithm>
#include <limits>

namespace httpretry::guard {
namespace {

constexpr std::uint32_t kMostSmall = std::numeric_limits<std::uint16_t>::max();

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

bool Window::SmallCounts::has_room(const Counts& more) const {
  return more.all <= kMostSmall - all && more.good <= kMostSmall - good &&
         more.slow <= kMostSmall - slow;
}

// Where there is room for it.
Window::SmallCounts& Window::SmallCounts::operator+=(const Counts& more) {
  all = static_cast<std::uint16_t>(all + more.all);
  good = static_cast<std::uint16_t>(good + more.good);
  slow = static_cast<std::uint16_t>(slow + more.slow);
  return *this;
}

// The window has nine tenths and the one that `now` is in.
bool Window::is_over(Time end, Time now) const {
  return now - end >= (kTenths - 1) * length_of_tenth_;
}

void Window::add(const Counts& more, Time now, Duration length) {
  const auto of_tenth = std::max(length / kTenths, Duration(1));
  if (of_tenth != length_of_tenth_ && !large_ && end_ != Time::min()) make_large();
  length_of_tenth_ = of_tenth;
  if (large_) drop_over(now);
  if (!large_ && now >= end_) begin_tenth(now);
  if (!large_ && !tenths_.front().has_room(more)) make_large();
  if (large_ && now >= large_->back().end) large_->push_back({end_of_tenth(now, of_tenth), {}});
  if (large_) {
    large_->back().counts += more;
  } else {
    tenths_.front() += more;
  }
  sum_ += more;
}

// Drops those that are over then.
void Window::begin_tenth(Time now) {
  const auto end = end_of_tenth(now, length_of_tenth_);
  std::int64_t passed = kTenths;
  if (end_ != Time::min()) {
    passed = std::min<std::int64_t>(passed, (end - end_) / length_of_tenth_);
  }
  const auto first_over = tenths_.end() - passed;
  for (auto one = first_over; one != tenths_.end(); ++one) sum_ -= Counts(*one);
  std::move_backward(tenths_.begin(), first_over, tenths_.end());
  std::fill_n(tenths_.begin(), passed, SmallCounts());
  end_ = end;
}

void Window::make_large() {
  auto large = std::make_unique<Large>();
  large->reserve(kTenths);
  auto end = end_ - (kTenths - 1) * length_of_tenth_;
  for (auto one = tenths_.rbegin(); one != tenths_.rend(); ++one, end += length_of_tenth_) {
    large->push_back({end, Counts(*one)});
  }
  large_ = std::move(large);
}

// Of a large window, which is small again when nothing is left of it.
void Window::drop_over(Time now) {
  auto first = large_->begin();
  for (; first != large_->end() && is_over(first->end, now); ++first) sum_ -= first->counts;
  large_->erase(large_->begin(), first);
  if (!large_->empty()) return;
  large_.reset();
  tenths_ = {};
  end_ = Time::min();
}

Counts Window::sum(Time now) const {
  auto sum = sum_;
  if (large_) {
    for (const auto& one : *large_) {
      if (!is_over(one.end, now)) break;
      sum -= one.counts;
    }
  } else if (now >= end_ && end_ != Time::min()) {
    auto end = end_ - (kTenths - 1) * length_of_tenth_;
    for (auto one = tenths_.rbegin(); one != tenths_.rend() && is_over(end, now); ++one) {
      sum -= Counts(*one);
      end += length_of_tenth_;
    }
  }
  return sum;
}

}  // namespace httpretry::guard
