#include "pace.hpp"

#include <algorithm>

namespace httpretry::batch {
namespace {

constexpr std::size_t kCalls = 511;  // for the median
constexpr Duration kStep = std::chrono::seconds(1);
constexpr Duration kLately = std::chrono::seconds(10);

}  // namespace

void Pace::ended(Time now, Duration took) {
  ++count_;
  if (last_.size() < kCalls) {
    last_.push_back(took);
  } else {
    last_[next_++ % kCalls] = took;
  }
  if (now - marks_.back().first < kStep) return;
  marks_.emplace_back(now, count_);
  while (marks_.size() > 2 && now - marks_[1].first > kLately) marks_.pop_front();
}

double Pace::per_second(Time now) const {
  const auto& [since, before] = marks_.front();
  const auto seconds = std::chrono::duration<double>(now - since).count();
  return seconds > 0 ? static_cast<double>(count_ - before) / seconds : 0;
}

std::optional<Duration> Pace::median() const {
  if (last_.empty()) return std::nullopt;
  auto sorted = last_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace httpretry::batch
