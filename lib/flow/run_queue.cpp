#include "run_queue.hpp"

#include "resume_on.hpp"

#include <algorithm>
#include <new>

namespace httpretry {
namespace {

thread_local RunQueue* driven = nullptr;

template <class T>
void reserve_room(std::vector<T>& list, std::size_t count) {
  if (list.capacity() < count) list.reserve(std::max(count, 2 * list.capacity()));
}

}  // namespace

CancelableWait::CancelableWait(RunQueue& queue, std::stop_token stop)
    : queue_(queue), stop_(std::move(stop)) {}
CancelableWait::~CancelableWait() { end_waiting(); }

bool CancelableWait::stop_requested() const { return queue_.closed_ || stop_.stop_requested(); }

void CancelableWait::begin_waiting() {
  queue_.enter(*this);
  waiting_ = true;
  if (stop_.stop_possible()) {
    on_stop_.emplace(stop_, PostCancel{&queue_, slot_, queue_.slots_[slot_].generation});
  }
}

void CancelableWait::end_waiting() {
  if (!waiting_) return;
  waiting_ = false;
  on_stop_.reset();  // waits until a callback on another thread has returned
  queue_.leave(*this);
}

// Runs on the thread that requests the stop, which may hold locks of its own: so it only posts.
void CancelableWait::PostCancel::operator()() const { queue->post_cancel({slot, generation}); }

void Sleep::await_suspend(std::coroutine_handle<> awaiter) {
  awaiter_ = awaiter;
  begin_waiting();
  queue_.timers().add(*this, when_);
}

bool Sleep::await_resume() {
  end();
  return slept_;
}

void Sleep::due() {
  slept_ = true;
  queue_.ready(awaiter_);
}

void Sleep::on_cancel() {
  if (slept_) return;  // the timer was due in the same turn
  queue_.timers().remove(*this);
  queue_.ready(awaiter_);
}

void Sleep::end() {
  queue_.timers().remove(*this);
  end_waiting();
}

RunQueue::~RunQueue() = default;

RunQueue* RunQueue::current() { return driven; }

bool RunQueue::is_not_driving(const Scheduler& home) {
  return driven != &home && dynamic_cast<const RunQueue*>(&home) != nullptr;
}

RunQueue::Driving::Driving(RunQueue& queue) : before_(driven) { driven = &queue; }
RunQueue::Driving::~Driving() { driven = before_; }

void RunQueue::post(std::coroutine_handle<> handle) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(handle);
  notify();
}

void RunQueue::post_cancel(Cancel which) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    cancels_.push_back(which);
  } catch (const std::bad_alloc&) {
    cancels_lost_ = true;
  }
  notify();
}

void RunQueue::close(Closed* told) noexcept {
  const std::lock_guard lock(mutex_);
  close_asked_ = true;
  if (told != nullptr) on_closed_ = told;
  notify();
}

// The mutex is held, so the driver cannot destroy the queue meanwhile: it takes what was posted,
// and for that the mutex, before it finds that it is done.
void RunQueue::notify() {
  has_posted_.store(true, std::memory_order_seq_cst);
  if (blocked_.exchange(false, std::memory_order_seq_cst)) wake();
}

bool RunQueue::prepare_to_block() {
  if (!ready_.empty()) return false;
  blocked_.store(true, std::memory_order_seq_cst);
  if (!has_posted_.load(std::memory_order_seq_cst)) return true;
  unblocked();
  return false;
}

bool RunQueue::turn() {
  if (has_posted_.load(std::memory_order_acquire)) take_posted();
  const auto time = now();
  while (Timer* timer = timers_.take_due(time)) timer->due();
  if (ready_.empty()) return false;
  // Coroutines that become ready now are left for the next turn, so that sockets are not starved.
  running_.swap(ready_);
  // By index: a wait that begins may reallocate the vector.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const auto handle = running_[i];
    handle.resume();
  }
  running_.clear();
  return true;
}

void RunQueue::take_posted() {
  std::vector<Cancel> cancels;
  Closed* tell = nullptr;
  bool lost = false;
  {
    const std::lock_guard lock(mutex_);
    try {
      reserve_room(ready_, ready_.size() + posted_.size() + slots_.size());
    } catch (const std::bad_alloc&) {
      return;  // the next turn tries again
    }
    has_posted_.store(false, std::memory_order_relaxed);
    ready_.insert(ready_.end(), posted_.begin(), posted_.end());
    posted_.clear();
    cancels.swap(cancels_);
    if (close_asked_) closed_ = true;
    lost = std::exchange(cancels_lost_, false);
    tell = std::exchange(on_closed_, nullptr);
  }
  for (const auto& which : cancels) {
    const auto& slot = slots_[which.slot];
    if (slot.generation == which.generation && slot.waiter != nullptr) cancel(*slot.waiter);
  }
  if (closed_ || lost) cancel_stopped();
  if (tell != nullptr) tell->closed();
}

void RunQueue::cancel_stopped() {
  for (const auto& slot : slots_) {
    if (slot.waiter != nullptr && slot.waiter->stop_requested()) cancel(*slot.waiter);
  }
}

void RunQueue::cancel(CancelableWait& waiter) {
  if (std::exchange(waiter.canceled_, true)) return;
  waiter.on_cancel();
}

Task<bool> RunQueue::sleep_until(Time when, std::stop_token stop) {
  if (driven != nullptr && driven != this) {
    const ResumeOn home(*this);
    co_await home;
  }
  Sleep sleep(*this, when, std::move(stop));
  const bool slept = co_await sleep;
  co_return slept;
}

// Reserves all memory that the wait will need, because here its coroutine can be told that there is
// none.
void RunQueue::enter(CancelableWait& waiter) {
  if (free_slots_.empty()) {
    reserve_room(free_slots_, slots_.size() + 1);
    slots_.emplace_back();
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  reserve_room(ready_, ready_.size() + slots_.size());
  reserve_room(running_, slots_.size());
  waiter.slot_ = free_slots_.back();
  free_slots_.pop_back();
  slots_[waiter.slot_].waiter = &waiter;
}

// The new generation invalidates cancellations that were posted for this wait.
void RunQueue::leave(CancelableWait& waiter) {
  auto& slot = slots_[waiter.slot_];
  slot.waiter = nullptr;
  ++slot.generation;
  free_slots_.push_back(waiter.slot_);
}

}  // namespace httpretry
