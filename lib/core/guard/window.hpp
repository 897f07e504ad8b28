// Window: counts of the sends of a recent period. It slides in tenths of its length.
//
// A process may have a window for each host, so a window is small: a count has 16 bits, in place.
// Counts that need more bits, and tenths of an earlier length, are kept in a list.
#pragma once

#include <httpretry/http/time.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace httpretry::guard {

struct Counts {
  std::uint32_t all = 0;
  std::uint32_t good = 0;
  std::uint32_t slow = 0;
  [[nodiscard]] std::uint32_t failed() const { return all > good ? all - good : 0; }
  Counts& operator+=(const Counts& other) {
    all += other.all;
    good += other.good;
    slow += other.slow;
    return *this;
  }
};

class Window {
 public:
  // Adds counts to the current tenth of the window. `length` is the length of the whole window. It
  // changes from one call to the next only if the policy has changed. Tenths of the current length
  // whose counts fit into 16 bits are in the array `tenths_`; all others are in the list `listed_`.
  void add(const Counts& more, Time now, Duration length) {
    const auto length_of_tenth = std::max<Duration>(length / kTenths, Duration(1));
    // All tenths in the array have the same length. Time() means that the array is empty.
    const bool array_is_empty = newest_end_ == Time();
    if (length_of_tenth != length_of_tenth_ && !array_is_empty) move_all_to_list();
    length_of_tenth_ = length_of_tenth;
    std::erase_if(listed_, [&](const Tenth& one) { return left_window(one.end, now); });
    if (listed_.empty()) listed_.shrink_to_fit();
    // The current tenth may be in the list, because its counts were too large or the length has
    // changed. Then it is the last one there, and the array has no later one.
    const auto listed_end = listed_.empty() ? Time() : listed_.back().end;
    const bool current_is_listed = now < listed_end && newest_end_ <= listed_end;
    if (current_is_listed) {
      listed_.back().counts += more;
      return;
    }
    if (now >= newest_end_) begin_tenth(now);  // at the front of `tenths_`
    auto& current = tenths_.front();
    Counts counts = current;
    counts += more;
    // Counts that no longer fit into the array move to the list. Zeros replace them in the array.
    const bool fits = std::max({counts.all, counts.good, counts.slow}) <= UINT16_MAX;
    if (!fits) listed_.push_back({.end = newest_end_, .counts = counts});
    current = fits ? SmallCounts(counts) : SmallCounts();
  }
  // Returns the counts of the window of the length last passed to `add`.
  [[nodiscard]] Counts sum(Time now) const {
    Counts sum;
    auto end = newest_end_;
    for (const auto& one : tenths_) {
      if (!left_window(end, now)) sum += one;
      end -= length_of_tenth_;
    }
    for (const auto& one : listed_) {
      if (!left_window(one.end, now)) sum += one.counts;
    }
    return sum;
  }
  void clear() { *this = Window(); }

 private:
  static constexpr int kTenths = 10;
  struct SmallCounts {
    SmallCounts() = default;
    explicit SmallCounts(const Counts& counts)
        : all(static_cast<std::uint16_t>(counts.all)),
          good(static_cast<std::uint16_t>(counts.good)),
          slow(static_cast<std::uint16_t>(counts.slow)) {}
    operator Counts() const { return {all, good, slow}; }

    std::uint16_t all = 0;
    std::uint16_t good = 0;
    std::uint16_t slow = 0;
  };
  struct Tenth {
    Time end;
    Counts counts;
  };

  // Returns whether a tenth has left the window, which has the current tenth and nine before it.
  [[nodiscard]] bool left_window(Time end, Time now) const {
    return now - end >= (kTenths - 1) * length_of_tenth_;
  }
  // Moves to the tenth of `now`, and drops those that leave the window. Tenths begin at multiples
  // of their length.
  void begin_tenth(Time now) {
    const auto since_epoch = std::max<Duration>(now.time_since_epoch(), Duration::zero());
    const auto end = Time((since_epoch / length_of_tenth_ + 1) * length_of_tenth_);
    const auto passed = std::min<std::int64_t>((end - newest_end_) / length_of_tenth_, kTenths);
    std::move_backward(tenths_.begin(), tenths_.end() - passed, tenths_.end());
    std::fill_n(tenths_.begin(), passed, SmallCounts());
    newest_end_ = end;
  }
  // Moves all tenths from the array to the list, because those that follow have another length.
  void move_all_to_list() {
    auto end = newest_end_ - kTenths * length_of_tenth_;
    for (auto one = tenths_.rbegin(); one != tenths_.rend(); ++one) {
      end += length_of_tenth_;
      listed_.push_back({end, *one});
    }
    tenths_ = {};
    newest_end_ = {};
  }

  Duration length_of_tenth_{};
  // Consecutive tenths of the same length, the newest first.
  std::array<SmallCounts, kTenths> tenths_{};
  Time newest_end_{};          // of the tenths in `tenths_`; Time() if it is empty
  std::vector<Tenth> listed_;  // tenths that do not fit into `tenths_`; the last has the latest end
};

}  // namespace httpretry::guard
