// RunQueue, and the timers and waits that it consists of.
#pragma once

#include <httpretry/flow/scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

namespace httpretry {

// Timer is the base of everything that a TimerQueue calls at a time. A timer must be removed from
// its queue before it is destroyed.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void due() = 0;

 private:
  friend class TimerQueue;
  static constexpr auto kNowhere = static_cast<std::uint32_t>(-1);
  std::uint32_t place_ = kNowhere;  // index in the queue
};

// The timers of a queue, ordered by time and then by arrival. A binary heap with 24 bytes per
// timer. Setting a timer again does not allocate.
class TimerQueue {
 public:
  void add(Timer& timer, Time when) {
    heap_.push_back({.when = when, .arrival = ++arrivals_, .timer = &timer});
    move_up(heap_.size() - 1);
  }
  // Sets the timer to `when`, whether or not it is in the queue. kNever only removes it.
  void set(Timer& timer, Time when) {
    const bool is_set = timer.place_ != Timer::kNowhere;
    if (is_set && heap_[timer.place_].when == when) return;
    remove(timer);
    if (when != kNever) add(timer, when);
  }
  // Does nothing if the timer is not in the queue.
  void remove(Timer& timer) {
    const auto place = std::exchange(timer.place_, Timer::kNowhere);
    if (place == Timer::kNowhere) return;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;  // the timer was the last one
    heap_[place] = last;
    move_up(place);
    move_down(last.timer->place_);
  }
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front().when; }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  // Removes and returns the next timer that is due at `now`, or returns nullptr.
  Timer* take_due(Time now) {
    if (heap_.empty() || next() > now) return nullptr;
    Timer* timer = heap_.front().timer;
    remove(*timer);
    return timer;
  }

 private:
  struct Entry {
    Time when;
    std::uint64_t arrival;
    Timer* timer;
    [[nodiscard]] bool before(const Entry& other) const {
      return when != other.when ? when < other.when : arrival < other.arrival;
    }
  };
  void put(const Entry& entry, std::size_t place) {
    heap_[place] = entry;
    entry.timer->place_ = static_cast<std::uint32_t>(place);
  }
  // Moves the entry towards the front while it comes before its parent.
  void move_up(std::size_t place) {
    const Entry entry = heap_[place];
    for (; place > 0 && entry.before(heap_[(place - 1) / 2]); place = (place - 1) / 2) {
      put(heap_[(place - 1) / 2], place);
    }
    put(entry, place);
  }
  // Moves the entry towards the end while a child comes before it.
  void move_down(std::size_t place) {
    const Entry entry = heap_[place];
    for (auto child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1].before(heap_[child])) ++child;
      if (!heap_[child].before(entry)) break;
      put(heap_[child], place);
      place = child;
    }
    put(entry, place);
  }

  std::vector<Entry> heap_;
  std::uint64_t arrivals_ = 0;
};

using detail::RunQueue;

// A wait that ends early when its stop token is stopped, by any thread, or when its queue is
// closed. It has a timer as well.
class CancelableWait : protected Timer {
 public:
  CancelableWait(RunQueue& queue, std::stop_token stop) : queue_(queue), stop_(std::move(stop)) {}
  CancelableWait(const CancelableWait&) = delete;
  CancelableWait& operator=(const CancelableWait&) = delete;
  ~CancelableWait() override { end_waiting(); }

 protected:
  // Called at most once, on the queue's thread, between `begin_waiting` and `end_waiting`.
  virtual void on_cancel() = 0;
  [[nodiscard]] bool stop_requested() const;
  void begin_waiting();
  void end_waiting();

  RunQueue& queue_;

 private:
  friend RunQueue;
  struct PostCancel {
    CancelableWait* wait;
    void operator()() const;
  };

  std::stop_token stop_;
  // Separately allocated, because few waits can be stopped.
  std::unique_ptr<std::stop_callback<PostCancel>> on_stop_;
  CancelableWait* next_posted_ = nullptr;  // guarded by the queue's mutex
  std::uint32_t index_ = 0;                // in the queue's list
  bool waiting_ = false;
  bool canceled_ = false;
};

namespace detail {

// RunQueue is a Scheduler that resumes coroutines on the thread that drives it. It is the base of
// the library's schedulers: Loop adds sockets and libcurl, and the test kit a clock that a test
// moves. It holds the coroutines that are ready, the timers, and the work that other threads post.
// One thread at a time drives it. Other threads may use only `post`, `close` and the stop tokens of
// its waits. Exported for the test kit, which is a separate library.
class HTTPRETRY_API RunQueue : public Scheduler {
 public:
  ~RunQueue() override;

  // Returns the queue that this thread is driving, or nullptr.
  static RunQueue* current();
  // Returns the queue of `scheduler` if this thread is driving it, otherwise nullptr.
  static RunQueue* driven_of(const Scheduler& scheduler);
  // Returns whether `home` is itself a RunQueue and this thread does not drive it. Next checks this
  // before it passes on a request of a call whose scheduler is `home`: an operation that a
  // middleware awaited may have resumed the coroutine of the call on the thread of another loop.
  // The coroutine must return to `home` before it uses that queue.
  static bool is_not_driving(const Scheduler& home);

  // These two are described in Scheduler. `sleep_until` returns true if the time has come, and
  // false if the wait was canceled by a stop or by `close`.
  void post(std::coroutine_handle<> handle) final;
  Task<bool> sleep_until(Time when, std::stop_token stop) final;

  // Cancels all waits, including later ones. Thread-safe. Does not allocate.
  void close() noexcept;

  // Updates the time that now() returns, in schedulers that use a real clock.
  virtual void read_clock() {}

  // Adds a coroutine that the driver resumes in this turn or the next one. Called only by the
  // thread that drives the queue. Does not allocate for a coroutine in a wait of this queue,
  // because `enter` has reserved the memory when the wait began.
  void ready(std::coroutine_handle<> handle) { ready_.push_back(handle); }
  // Removes a coroutine that was posted or is ready. Called by the thread that drives the queue, if
  // the coroutine is destroyed before it was resumed.
  void forget(std::coroutine_handle<> handle);
  // Does nothing for a scheduler that is not the library's.
  static void forget(const Scheduler& scheduler, std::coroutine_handle<> handle);
  TimerQueue& timers() { return timers_; }
  [[nodiscard]] const TimerQueue& timers() const { return timers_; }

 protected:
  // Makes this thread the driver of the queue as long as the object exists. After that, the thread
  // drives the queue that it drove before, if any.
  class Driving {
   public:
    explicit Driving(RunQueue& queue);
    ~Driving();
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;

   private:
    RunQueue* before_;
  };

  // Runs one turn: takes what was posted, fires the timers that are due, and resumes the
  // coroutines that are ready. Returns true if it resumed any.
  bool turn();
  // Returns whether the driver may block. From then until `unblocked`, the first post calls `wake`.
  bool prepare_to_block();
  void unblocked() { blocked_.store(false, std::memory_order_relaxed); }
  virtual void wake() noexcept = 0;
  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }
  [[nodiscard]] bool has_posted() const { return has_posted_.load(std::memory_order_acquire); }

 private:
  friend CancelableWait;
  [[nodiscard]] const RunQueue* queue() const final { return this; }
  void enter(CancelableWait& wait);
  void leave(CancelableWait& wait);
  void post_cancel(CancelableWait& wait) noexcept;
  void take_posted();
  void notify();
  static void cancel(CancelableWait& wait);

  std::vector<std::coroutine_handle<>> ready_;
  TimerQueue timers_;
  std::vector<CancelableWait*> waits_;
  bool closed_ = false;

  std::mutex mutex_;  // guards the next three members
  std::vector<std::coroutine_handle<>> posted_;
  CancelableWait* posted_cancels_ = nullptr;  // an intrusive list, which does not allocate
  bool close_requested_ = false;
  std::atomic<bool> has_posted_ = false;  // may be read without the mutex
  std::atomic<bool> blocked_ = false;
};

}  // namespace detail

// Awaited like sleep_until, but lives in the frame of the waiting coroutine. A separate task would
// add 150 bytes to each call that waits. co_await returns true if the time has come, and false if
// the wait was canceled.
class Sleep final : public CancelableWait {
 public:
  // Must be called on the thread that drives the queue, and awaited immediately. The timer runs
  // from now on.
  Sleep(RunQueue& queue, Time when, std::stop_token stop) : CancelableWait(queue, std::move(stop)) {
    queue.timers().add(*this, when);
  }
  ~Sleep() override {
    end();
    if (is_ready_) queue_.forget(awaiter_);
  }
  [[nodiscard]] bool await_ready() const { return stop_requested(); }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter);
  bool await_resume() {
    end();
    is_ready_ = false;
    return slept_;
  }

 private:
  void due() override;
  void on_cancel() override;
  void resume_soon();
  void end();

  bool slept_ = false;
  bool is_ready_ = false;  // the queue will resume the awaiter
  std::coroutine_handle<> awaiter_;
};

}  // namespace httpretry
