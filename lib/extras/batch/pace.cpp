#include "pace.hpp"

#include <algorithm>

namespace httpretry::batch {
namespace {

constexpr std::size_t kCalls = 511;  // for the median
constexpr Duration kMarkEvery = std::chrono::seconds(1);
constexpr Duration kRateOver = std::chrono::seconds(10);

}  // namespace

// Adds the duration to the ring buffer, and once a second a mark for the rate.
void Pace::ended(Time now, Duration took) {
  ++count_;
  if (last_.size() < kCalls) {
    last_.push_back(took);
  } else {
    last_[next_++ % kCalls] = took;
  }
  if (now - marks_.back().first < kMarkEvery) return;
  marks_.emplace_back(now, count_);
  // Keeps one mark that is older than kRateOver: the rate counts from it.
  while (marks_.size() > 2 && now - marks_[1].first > kRateOver) marks_.pop_front();
}

double Pace::per_second(Time now) const {
  const auto& [mark_time, mark_count] = marks_.front();
  const auto seconds = std::chrono::duration<double>(now - mark_time).count();
  return seconds > 0 ? static_cast<double>(count_ - mark_count) / seconds : 0;
}

std::optional<Duration> Pace::median() const {
  if (last_.empty()) return std::nullopt;
  auto sorted = last_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace httpretry::batch
