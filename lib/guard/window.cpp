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

// The window has nine tenths and the one that `now` is in.
bool Window::is_over(Time end, Time now) const {
  return now - end >= (kTenths - 1) * length_of_tenth_;
}

void Window::add(const Counts& more, Time now, Duration length) {
  const auto of_tenth = std::max(length / kTenths, Duration(1));
  if (of_tenth != length_of_tenth_ && end_ != Time()) list_all();
  length_of_tenth_ = of_tenth;
  std::erase_if(listed_, [&](const Tenth& one) { return is_over(one.end, now); });
  if (listed_.empty()) listed_.shrink_to_fit();
  const auto listed_until = listed_.empty() ? Time() : listed_.back().end;
  if (now < listed_until && end_ <= listed_until) {
    listed_.back().counts += more;
    return;
  }
  if (now >= end_) begin_tenth(now);
  auto& newest = tenths_.front();
  Counts counts{newest.all, newest.good, newest.slow};
  counts += more;
  if (std::max({counts.all, counts.good, counts.slow}) > kMostSmall) {
    listed_.push_back({end_, counts});
    newest = {};
  } else {
    newest = {static_cast<std::uint16_t>(counts.all), static_cast<std::uint16_t>(counts.good),
              static_cast<std::uint16_t>(counts.slow)};
  }
}

// Drops those that are over then.
void Window::begin_tenth(Time now) {
  const auto end = end_of_tenth(now, length_of_tenth_);
  const auto passed = std::min<std::int64_t>((end - end_) / length_of_tenth_, kTenths);
  std::move_backward(tenths_.begin(), tenths_.end() - passed, tenths_.end());
  std::fill_n(tenths_.begin(), passed, SmallCounts());
  end_ = end;
}

// Those that follow have another length.
void Window::list_all() {
  end_ -= kTenths * length_of_tenth_;
  for (auto one = tenths_.rbegin(); one != tenths_.rend(); ++one) {
    end_ += length_of_tenth_;
    listed_.push_back({end_, {one->all, one->good, one->slow}});
  }
  tenths_ = {};
  end_ = {};
}

Counts Window::sum(Time now) const {
  Counts sum;
  auto end = end_;
  for (const auto& one : tenths_) {
    if (!is_over(end, now)) sum += {one.all, one.good, one.slow};
    end -= length_of_tenth_;
  }
  for (const auto& one : listed_) {
    if (!is_over(one.end, now)) sum += one.counts;
  }
  return sum;
}

}  // namespace httpretry::guard
