// RunQueue: the part that all our schedulers share: the coroutines that are ready, the timers, and
// the work that other threads post.
#pragma once

#include <httpretry/flow/scheduler.hpp>

#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace httpretry {

class Timer {
 public:
  virtual ~Timer() = default;
  virtual void due() = 0;

 private:
  friend class TimerQueue;
  std::optional<std::pmr::multimap<Time, Timer*>::iterator> entry_;
};

// The timers of a queue, ordered by time, then by arrival. Its memory is pooled: a timer that is
// set again takes none.
class TimerQueue {
 public:
  void add(Timer& timer, Time when) { timer.entry_ = entries_.emplace(when, &timer); }
  // Moves it there, whether it is in the queue or not; kNever only removes it.
  void set(Timer& timer, Time when) {
    if (timer.entry_ && (*timer.entry_)->first == when) return;
    remove(timer);
    if (when != kNever) add(timer, when);
  }
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

class RunQueue;

// A wait that can be canceled: by its stop token, from any thread, or when its queue is closed.
class CancelableWait {
 public:
  CancelableWait(RunQueue& queue, std::stop_token stop) : queue_(queue), stop_(std::move(stop)) {}
  CancelableWait(const CancelableWait&) = delete;
  CancelableWait& operator=(const CancelableWait&) = delete;
  virtual ~CancelableWait() { end_waiting(); }

 protected:
  // Called at most once, on the queue's thread, between `begin_waiting` and `end_waiting`.
  virtual void on_cancel() = 0;
  [[nodiscard]] bool stop_requested() const;
  void begin_waiting();
  void end_waiting();

  RunQueue& queue_;

 private:
  friend class RunQueue;
  struct PostCancel {
    CancelableWait* wait;
    void operator()() const;
  };
  // On its own, for most calls have no stop: 56 bytes less of each that waits.
  struct OnStop : detail::PooledFrame {
    OnStop(const std::stop_token& stop, CancelableWait* wait) : callback(stop, PostCancel{wait}) {}
    std::stop_callback<PostCancel> callback;
  };
  std::stop_token stop_;
  std::unique_ptr<OnStop> on_stop_;
  std::size_t index_ = 0;  // in the queue's list
  bool waiting_ = false;
  bool canceled_ = false;
  CancelableWait* next_posted_ = nullptr;  // guarded by the queue's mutex
};

// One thread at a time drives it. Only `post`, `close` and the stop tokens of its waits may be used
// by other threads. Exported for the test kit, which is a separate library.
class HTTPRETRY_API RunQueue : public Scheduler {
 public:
  ~RunQueue() override;

  // The queue that this thread is driving; nullptr if none.
  static RunQueue* current();
  // That of the scheduler, where this thread drives it; else nullptr.
  static RunQueue* driven_of(Scheduler& scheduler);
  // Whether this thread does not drive `home`, although it runs a coroutine of `home`: something
  // that a middleware awaited has resumed it here. It must return before it uses the queue.
  static bool is_not_driving(const Scheduler& home);

  void post(std::coroutine_handle<> handle) final;
  Task<bool> sleep_until(Time when, std::stop_token stop) final;

  // Cancels all waits, also those that begin later. For any thread. Allocates no memory.
  void close() noexcept;

  // now() is from here on the time of this moment, where time does not stand still.
  virtual void read_clock() {}

  // Allocates no memory for a coroutine in a wait of this queue: `enter` has reserved it.
  void ready(std::coroutine_handle<> handle) { ready_.push_back(handle); }
  TimerQueue& timers() { return timers_; }
  [[nodiscard]] const TimerQueue& timers() const { return timers_; }

 protected:
  // While it lives, this thread is the driver.
  class Driving {
   public:
    explicit Driving(RunQueue& queue);
    ~Driving();
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;

   private:
    RunQueue* before_;
  };

  // One turn: what was posted, the timers that are due, and then the coroutines that are ready.
  // True if it resumed any.
  bool turn();
  // Whether the driver may block. From then until `unblocked`, the first post calls `wake`.
  bool prepare_to_block();
  void unblocked() { blocked_.store(false, std::memory_order_relaxed); }
  virtual void wake() noexcept = 0;
  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }
  [[nodiscard]] bool has_posted() const { return has_posted_.load(std::memory_order_acquire); }

 private:
  friend class CancelableWait;
  RunQueue* queue() final { return this; }
  void enter(CancelableWait& wait);
  void leave(CancelableWait& wait);
  void post_cancel(CancelableWait& wait) noexcept;
  void take_posted();
  void notify();
  static void cancel(CancelableWait& wait);

  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> running_;
  TimerQueue timers_;
  std::vector<CancelableWait*> waits_;
  bool closed_ = false;

  std::mutex mutex_;  // guards the three below
  std::vector<std::coroutine_handle<>> posted_;
  CancelableWait* posted_cancels_ = nullptr;  // a list, which takes no memory
  bool close_asked_ = false;
  std::atomic<bool> has_posted_ = false;  // read without the mutex
  std::atomic<bool> blocked_ = false;
};

// What sleep_until waits for, in the frame of the coroutine that waits, which must be on the thread
// that drives the queue: a task of its own is 150 bytes more of each call that waits. co_await
// gives true (the time has come) or false (canceled).
class HTTPRETRY_API Sleep final : public CancelableWait, private Timer {
 public:
  Sleep(RunQueue& queue, Time when, std::stop_token stop)
      : CancelableWait(queue, std::move(stop)), when_(when) {}
  ~Sleep() override { end(); }
  [[nodiscard]] bool await_ready() const { return stop_requested(); }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter);
  bool await_resume() {
    end();
    return slept_;
  }

 private:
  void due() override;
  void on_cancel() override;
  void end();

  Time when_;
  std::coroutine_handle<> awaiter_;
  bool slept_ = false;
};

}  // namespace httpretry
