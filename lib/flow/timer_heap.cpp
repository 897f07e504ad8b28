#include "timer_heap.hpp"

namespace httpretry {

void TimerHeap::add(Timer& timer, Time when) {
  heap_.emplace_back();
  timer.index_ = heap_.size() - 1;
  heap_.back() = Entry{when, arrivals_++, &timer};
  sift_up(heap_.size() - 1);
}

void TimerHeap::remove(Timer& timer) {
  const auto index = timer.index_;
  if (index == Timer::kIdle) return;
  timer.index_ = Timer::kIdle;
  const auto last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  put(index, last);
  sift_up(index);
  sift_down(last.timer->index_);
}

Timer* TimerHeap::take_due(Time now) {
  if (heap_.empty() || heap_.front().when > now) return nullptr;
  Timer* timer = heap_.front().timer;
  remove(*timer);
  return timer;
}

void TimerHeap::put(std::size_t index, const Entry& entry) {
  heap_[index] = entry;
  entry.timer->index_ = index;
}

void TimerHeap::sift_up(std::size_t index) {
  const auto entry = heap_[index];
  while (index != 0 && before(entry, heap_[(index - 1) / 2])) {
    put(index, heap_[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  put(index, entry);
}

void TimerHeap::sift_down(std::size_t index) {
  const auto entry = heap_[index];
  for (;;) {
    auto child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], entry)) break;
    put(index, heap_[child]);
    index = child;
  }
  put(index, entry);
}

}  // namespace httpretry
