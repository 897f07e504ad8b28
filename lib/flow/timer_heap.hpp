// TimerHeap: the timers of a scheduler.
#pragma once

#include <httpretry/http/time.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace httpretry {

// An entry of the timer heap. It is a member of its owner, so it needs no allocation.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void due() = 0;

 private:
  friend class TimerHeap;
  static constexpr std::size_t kIdle = ~std::size_t{0};
  std::size_t index_ = kIdle;
};

// A binary heap by (time, order of arrival), from which any entry can be removed.
class TimerHeap {
 public:
  void add(Timer& timer, Time when);
  void remove(Timer& timer);  // does nothing if it is not in the heap
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front().when; }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  // Removes the next timer that is due at `now`; nullptr if there is none.
  Timer* take_due(Time now);

 private:
  struct Entry {
    Time when;
    std::uint64_t order;
    Timer* timer;
  };
  static bool before(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when < b.when : a.order < b.order;
  }
  void put(std::size_t index, const Entry& entry);
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);

  std::vector<Entry> heap_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace httpretry
