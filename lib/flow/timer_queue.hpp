// TimerQueue: the timers of a scheduler.
#pragma once

#include <httpretry/http/time.hpp>

#include <map>
#include <memory_resource>
#include <optional>
#include <utility>

namespace httpretry {

class Timer {
 public:
  virtual ~Timer() = default;
  virtual void due() = 0;

 private:
  friend class TimerQueue;
  std::optional<std::pmr::multimap<Time, Timer*>::iterator> entry_;
};

// Ordered by time, then by arrival. Its memory is pooled: a timer that is set again takes none.
class TimerQueue {
 public:
  void add(Timer& timer, Time when) { timer.entry_ = entries_.emplace(when, &timer); }
  // Does nothing if it is not in the queue.
  void remove(Timer& timer) {
    if (timer.entry_) entries_.erase(*std::exchange(timer.entry_, std::nullopt));
  }
  [[nodiscard]] Time next() const { return entries_.empty() ? kNever : entries_.begin()->first; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  // Removes the next timer that is due at `now`; nullptr if there is none.
  Timer* take_due(Time now) {
    if (entries_.empty() || next() > now) return nullptr;
    Timer* timer = entries_.begin()->second;
    remove(*timer);
    return timer;
  }

 private:
  std::pmr::unsynchronized_pool_resource memory_;
  std::pmr::multimap<Time, Timer*> entries_{&memory_};
};

}  // namespace httpretry
