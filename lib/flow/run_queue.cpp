#include "run_queue.hpp"

#include "hop.hpp"

#include <algorithm>
#include <new>

namespace httpretry {
namespace {

thread_local RunQueue* driven = nullptr;

template <class T>
void have_room(std::vector<T>& list, std::size_t count) {
  if (list.capacity() < count) list.reserve(std::max(count, 2 * list.capacity()));
}

}  // namespace

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

Waiter::Waiter(RunQueue& queue, std::stop_token stop) : queue_(queue), stop_(std::move(stop)) {}
Waiter::~Waiter() { end_waiting(); }

bool Waiter::stop_requested() const { return queue_.closed_ || stop_.stop_requested(); }

void Waiter::begin_waiting() {
  queue_.enter(*this);
  waiting_ = true;
  if (stop_.stop_possible()) {
    on_stop_.emplace(stop_, Mail{&queue_, slot_, queue_.slots_[slot_].generation});
  }
}

void Waiter::end_waiting() {
  if (!waiting_) return;
  waiting_ = false;
  on_stop_.reset();  // waits for a callback that is running on another thread
  queue_.leave(*this);
}

// On whatever thread requests the stop, which may be in the middle of anything: so only mail.
void Waiter::Mail::operator()() const { queue->mail_call_off({slot, generation}); }

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

void Sleep::called_off() {
  if (slept_) return;  // due in the same turn: it has slept in full
  queue_.timers().remove(*this);
  queue_.ready(awaiter_);
}

void Sleep::end() {
  queue_.timers().remove(*this);
  end_waiting();
}

RunQueue::~RunQueue() = default;

RunQueue* RunQueue::current() { return driven; }

bool RunQueue::strayed_from(const Scheduler& home) {
  return driven != &home && dynamic_cast<const RunQueue*>(&home) != nullptr;
}

RunQueue::Driving::Driving(RunQueue& queue) : before_(driven) { driven = &queue; }
RunQueue::Driving::~Driving() { driven = before_; }

void RunQueue::post(std::coroutine_handle<> handle) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(handle);
  mail_came();
}

void RunQueue::mail_call_off(CallOff which) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    call_offs_.push_back(which);
  } catch (const std::bad_alloc&) {
    call_offs_lost_ = true;
  }
  mail_came();
}

void RunQueue::close(Closed* told) noexcept {
  const std::lock_guard lock(mutex_);
  close_asked_ = true;
  if (told != nullptr) tell_closed_ = told;
  mail_came();
}

// With the mutex held, so that whoever drives the queue cannot end it meanwhile: it takes the mail,
// and so the mutex, before it finds that it is done.
void RunQueue::mail_came() {
  mail_.store(true, std::memory_order_seq_cst);
  if (blocked_.exchange(false, std::memory_order_seq_cst)) wake();
}

bool RunQueue::prepare_to_block() {
  if (!ready_.empty()) return false;
  blocked_.store(true, std::memory_order_seq_cst);
  if (!mail_.load(std::memory_order_seq_cst)) return true;
  unblocked();
  return false;
}

bool RunQueue::turn() {
  if (mail_.load(std::memory_order_acquire)) take_mail();
  const auto time = now();
  while (Timer* timer = timers_.take_due(time)) timer->due();
  if (ready_.empty()) return false;
  // What becomes ready meanwhile waits for the next turn, so that the sockets get theirs.
  running_.swap(ready_);
  // By index: whoever begins to wait may make room in it.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const auto handle = running_[i];
    handle.resume();
  }
  running_.clear();
  return true;
}

void RunQueue::take_mail() {
  std::vector<CallOff> call_offs;
  Closed* tell = nullptr;
  bool lost = false;
  {
    const std::lock_guard lock(mutex_);
    try {
      have_room(ready_, ready_.size() + posted_.size() + slots_.size());
    } catch (const std::bad_alloc&) {
      return;  // the mail stays where it is, for the next turn
    }
    mail_.store(false, std::memory_order_relaxed);
    ready_.insert(ready_.end(), posted_.begin(), posted_.end());
    posted_.clear();
    call_offs.swap(call_offs_);
    if (close_asked_) closed_ = true;
    lost = std::exchange(call_offs_lost_, false);
    tell = std::exchange(tell_closed_, nullptr);
  }
  for (const auto& which : call_offs) {
    const auto& slot = slots_[which.slot];
    if (slot.generation == which.generation && slot.waiter != nullptr) call_off(*slot.waiter);
  }
  if (closed_ || lost) call_off_stopped();
  if (tell != nullptr) tell->closed();
}

void RunQueue::call_off_stopped() {
  for (const auto& slot : slots_) {
    if (slot.waiter != nullptr && slot.waiter->stop_requested()) call_off(*slot.waiter);
  }
}

void RunQueue::call_off(Waiter& waiter) {
  if (std::exchange(waiter.called_off_, true)) return;
  waiter.called_off();
}

Task<bool> RunQueue::sleep_until(Time when, std::stop_token stop) {
  if (driven != nullptr && driven != this) {
    const Hop home(*this);
    co_await home;
  }
  Sleep sleep(*this, when, std::move(stop));
  const bool slept = co_await sleep;
  co_return slept;
}

// All memory that a waiter will need until it leaves is taken here, where its coroutine can be told
// that there is none.
void RunQueue::enter(Waiter& waiter) {
  if (free_slots_.empty()) {
    have_room(free_slots_, slots_.size() + 1);
    slots_.emplace_back();
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  have_room(ready_, ready_.size() + slots_.size());
  have_room(running_, slots_.size());
  waiter.slot_ = free_slots_.back();
  free_slots_.pop_back();
  slots_[waiter.slot_].waiter = &waiter;
}

// A new generation: mail that is under way for this waiter will not find the slot's next one.
void RunQueue::leave(Waiter& waiter) {
  auto& slot = slots_[waiter.slot_];
  slot.waiter = nullptr;
  ++slot.generation;
  free_slots_.push_back(waiter.slot_);
}

}  // namespace httpretry
