#include "lib/core/flow/detail/run_queue.hpp"

#include "resume_on.hpp"

#include <httpretry/flow/sleep.hpp>

#include <algorithm>
#include <new>
#include <stdexcept>

namespace httpretry {
namespace {

thread_local RunQueue* driven = nullptr;  // the queue that this thread drives

// Makes sure that the list can hold `count` elements without allocating, and grows it at least to
// twice its capacity, because a vector's own `reserve` may grow it by one element at a time.
template <class T>
void reserve_room(std::vector<T>& list, std::size_t count) {
  if (list.capacity() < count) list.reserve(std::max(count, 2 * list.capacity()));
}

}  // namespace

Scheduler::~Scheduler() = default;

void Sleep::await_suspend(std::coroutine_handle<> awaiter) {
  awaiter_ = awaiter;
  begin_waiting();
}

void Sleep::due() {
  slept_ = true;
  resume_soon();
}

void Sleep::on_cancel() {
  if (slept_) return;  // the timer fired in the same turn
  queue_.timers().remove(*this);
  resume_soon();
}

void Sleep::resume_soon() {
  is_ready_ = true;
  queue_.ready(awaiter_);
}

void Sleep::end() {
  queue_.timers().remove(*this);
  end_waiting();
}

bool CancelableWait::stop_requested() const { return queue_.closed_ || stop_.stop_requested(); }

void CancelableWait::begin_waiting() {
  queue_.enter(*this);
  waiting_ = true;
  if (!stop_.stop_possible()) return;
  on_stop_ = std::make_unique<std::stop_callback<PostCancel>>(stop_, PostCancel{this});
}

void CancelableWait::end_waiting() {
  if (!waiting_) return;
  waiting_ = false;
  on_stop_.reset();  // waits until a callback on another thread has returned
  queue_.leave(*this);
}

// Runs on the thread that requests the stop. It only posts, because that thread may hold locks.
void CancelableWait::PostCancel::operator()() const { wait->queue_.post_cancel(*wait); }

RunQueue::~RunQueue() = default;

RunQueue* RunQueue::current() { return driven; }

RunQueue* RunQueue::driven_of(const Scheduler& scheduler) {
  return driven != nullptr && driven == scheduler.queue() ? driven : nullptr;
}

void detail::check_may_block(const char* function) {
  if (driven == nullptr) return;
  throw std::logic_error(std::string(function) +
                         " was called on a thread that drives a loop (in a callback or a "
                         "middleware): it would deadlock; use co_await there");
}

bool RunQueue::is_not_driving(const Scheduler& home) {
  return driven != &home && home.queue() == &home;
}

RunQueue::Driving::Driving(RunQueue& queue) : before_(driven) { driven = &queue; }
RunQueue::Driving::~Driving() { driven = before_; }

void RunQueue::post(std::coroutine_handle<> handle) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(handle);
  notify();
}

void RunQueue::post_cancel(CancelableWait& wait) noexcept {
  const std::lock_guard lock(mutex_);
  wait.next_posted_ = std::exchange(posted_cancels_, &wait);
  notify();
}

void RunQueue::close() noexcept {
  const std::lock_guard lock(mutex_);
  close_requested_ = true;
  notify();
}

// The caller holds the mutex, so the driver cannot destroy the queue during this call: before it
// finds that it is done, it takes what was posted, for which it needs the mutex.
void RunQueue::notify() {
  has_posted_.store(true, std::memory_order_seq_cst);
  if (blocked_.exchange(false, std::memory_order_seq_cst)) wake();
}

// Stores `blocked_` and then reads `has_posted_`. `notify` does it in the opposite order, so that
// at least one of them sees what the other has stored, and no post is missed.
bool RunQueue::prepare_to_block() {
  if (!ready_.empty()) return false;
  blocked_.store(true, std::memory_order_seq_cst);
  if (!has_posted_.load(std::memory_order_seq_cst)) return true;
  unblocked();
  return false;
}

// Runs one iteration of the loop. Returns true if it resumed any coroutine.
bool RunQueue::turn() {
  if (has_posted()) take_posted();
  const auto time = now();
  while (Timer* timer = timers_.take_due(time)) timer->due();
  if (ready_.empty()) return false;
  // Coroutines that become ready now wait for the next iteration, so that sockets are not starved.
  const auto count = ready_.size();
  // By index, because a wait that begins may reallocate the vector.
  for (std::size_t i = 0; i < count; ++i) {
    const auto handle = ready_[i];
    handle.resume();
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  return true;
}

// `turn` may be in its loop over `ready_`, so a coroutine that does nothing takes the place there.
void RunQueue::forget(std::coroutine_handle<> handle) {
  const std::coroutine_handle<> nothing = std::noop_coroutine();
  std::replace(ready_.begin(), ready_.end(), handle, nothing);
  const std::lock_guard lock(mutex_);
  std::erase(posted_, handle);
}

void RunQueue::forget(const Scheduler& scheduler, std::coroutine_handle<> handle) {
  // Coroutines are posted only to queues that are not const.
  if (const auto* queue = scheduler.queue()) const_cast<RunQueue*>(queue)->forget(handle);
}

// Takes over what other threads have posted to this loop: makes their coroutines ready to resume,
// and cancels the waits for which they requested a stop, or all waits if they closed the loop. Does
// nothing if memory is lacking; the posts remain, and the next iteration tries again.
void RunQueue::take_posted() {
  CancelableWait* canceled = nullptr;  // a linked list, the wait that was posted first at the front
  {
    const std::lock_guard lock(mutex_);
    try {
      // Each wait adds at most one coroutine, when it is canceled. After this, nothing can throw.
      reserve_room(ready_, ready_.size() + posted_.size() + waits_.size());
    } catch (const std::bad_alloc&) {
      return;
    }
    has_posted_.store(false, std::memory_order_relaxed);
    ready_.insert(ready_.end(), posted_.begin(), posted_.end());
    posted_.clear();
    // Moves the list `posted_cancels_` to `canceled`, and reverses it: its front was posted last.
    while (posted_cancels_ != nullptr) {
      auto* wait = std::exchange(posted_cancels_, posted_cancels_->next_posted_);
      wait->next_posted_ = std::exchange(canceled, wait);
    }
    closed_ = close_requested_;
  }
  // `cancel` resumes no coroutine, so neither list changes in these loops.
  while (canceled != nullptr) cancel(*std::exchange(canceled, canceled->next_posted_));
  if (closed_) std::for_each(waits_.begin(), waits_.end(), [](auto* wait) { cancel(*wait); });
}

void RunQueue::cancel(CancelableWait& wait) {
  if (!std::exchange(wait.canceled_, true)) wait.on_cancel();
}

// Returns true if the time has come, and false if the wait was stopped.
Task<bool> RunQueue::sleep_until(Time when, std::stop_token stop) {
  if (driven != nullptr && driven != this) {
    const ResumeOn home(*this);
    co_await home;
  }
  Sleep sleep(*this, when, std::move(stop));
  const bool slept = co_await sleep;
  co_return slept;
}

Task<bool> sleep_for(Scheduler& loop, Duration time, std::stop_token stop) {
  const ReturnTo return_to_loop(loop);
  co_await return_to_loop;
  // The loop reads the clock once per iteration, and this one may have begun long ago.
  if (driven == &loop) driven->read_clock();
  const auto when = later(loop.now(), std::max(time, Duration::zero()));
  const bool slept = co_await loop.sleep_until(when, std::move(stop));
  co_return slept;
}

// Adds the wait to the list. Reserves all memory that the wait will need: if memory is short, only
// here can an exception reach the coroutine that waits.
void RunQueue::enter(CancelableWait& wait) {
  const auto count = waits_.size() + 1;
  reserve_room(waits_, count);
  reserve_room(ready_, ready_.size() + count);
  wait.index_ = static_cast<std::uint32_t>(waits_.size());
  waits_.push_back(&wait);
}

// Removes the wait from the list, and its cancellation if that was posted but has not been handled.
void RunQueue::leave(CancelableWait& wait) {
  waits_[wait.index_] = waits_.back();  // the last one takes its place
  waits_[wait.index_]->index_ = wait.index_;
  waits_.pop_back();
  if (!wait.stop_.stop_requested()) return;  // no cancellation was posted
  const std::lock_guard lock(mutex_);
  auto** link = &posted_cancels_;  // becomes the pointer that points to the wait, or to the end
  while (*link != nullptr && *link != &wait) link = &(*link)->next_posted_;
  if (*link != nullptr) *link = wait.next_posted_;
}

}  // namespace httpretry
