// RunQueue: what every scheduler has, whatever its clock and its sockets: the coroutines that are
// ready, the timers, and the mailbox through which other threads reach it.
#pragma once

#include <httpretry/flow/scheduler.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace httpretry {

// An entry of the timer heap. It lives where its owner puts it (a coroutine frame): no allocation.
class Timer {
 public:
  virtual ~Timer() = default;
  virtual void due() = 0;

 private:
  friend class TimerHeap;
  static constexpr std::size_t kIdle = ~std::size_t{0};
  std::size_t index_ = kIdle;
};

// A binary heap by (time, order of arrival) that can give up any of its entries.
class TimerHeap {
 public:
  void add(Timer& timer, Time when);
  void remove(Timer& timer);  // does nothing where it is not in
  [[nodiscard]] Time next() const { return heap_.empty() ? kNever : heap_.front().when; }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  // Takes out the next timer that is due at `now`; nullptr where there is none.
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

class RunQueue;

// Something that a coroutine waits for and that can be called off: by the stop token it was begun
// with, from any thread, or by the end of its queue.
class Waiter {
 public:
  Waiter(RunQueue& queue, std::stop_token stop);
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  virtual ~Waiter();

 protected:
  // On the queue's thread, at any time between `begin_waiting` and `end_waiting`, once.
  virtual void called_off() = 0;
  [[nodiscard]] bool stop_requested() const;
  void begin_waiting();
  void end_waiting();

  RunQueue& queue_;

 private:
  friend class RunQueue;
  struct Mail {
    RunQueue* queue;
    std::uint32_t slot;
    std::uint32_t generation;
    void operator()() const;
  };
  std::stop_token stop_;
  std::optional<std::stop_callback<Mail>> on_stop_;
  std::uint32_t slot_ = 0;
  bool waiting_ = false;
  bool called_off_ = false;
};

// Awaited for true (its time has come) or false (called off).
class Sleep final : public Waiter, private Timer {
 public:
  Sleep(RunQueue& queue, Time when, std::stop_token stop)
      : Waiter(queue, std::move(stop)), when_(when) {}
  ~Sleep() override { end(); }
  [[nodiscard]] bool await_ready() const { return stop_requested(); }
  void await_suspend(std::coroutine_handle<> awaiter);
  bool await_resume();

 private:
  void due() override;
  void called_off() override;
  void end();

  Time when_;
  std::coroutine_handle<> awaiter_;
  bool slept_ = false;
};

// Not synchronised but for `post` and `call_off`: one thread at a time drives it.
// Exported for the test kit, which is a library of its own.
class HTTPRETRY_API RunQueue : public Scheduler {
 public:
  ~RunQueue() override;

  // The queue that this thread is driving; nullptr where it drives none.
  static RunQueue* current();
  // Whether this thread drives another one than `home`, or none: what a stage awaited resumed it
  // here, and what is of `home` must get back there.
  static bool strayed_from(const Scheduler& home);

  void post(std::coroutine_handle<> handle) final;
  Task<bool> sleep_until(Time when, std::stop_token stop) final;

  // Told by the driver when it has called everything off.
  class Closed {
   public:
    virtual void closed() noexcept = 0;

   protected:
    ~Closed() = default;
  };
  // From any thread: calls off everything that waits here, now and from now on. Takes no memory.
  void close(Closed* told = nullptr) noexcept;

  // For a coroutine that waits here, as a Waiter, this takes no memory: there is room for it.
  void ready(std::coroutine_handle<> handle) { ready_.push_back(handle); }
  TimerHeap& timers() { return timers_; }
  [[nodiscard]] const TimerHeap& timers() const { return timers_; }

 protected:
  // Marks this thread as the driver, for as long as it lives.
  class Driving {
   public:
    explicit Driving(RunQueue& queue);
    ~Driving();
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;

   private:
    RunQueue* before_;
  };

  // One turn: the mail, the timers that are due, and the coroutines that were ready then. True
  // where it did anything.
  bool turn();
  // Whether the driver may block: it then must look at the mailbox again when `wake` was called.
  // Between the two, `wake` is called at the first mail.
  bool prepare_to_block();
  void unblocked() { blocked_.store(false, std::memory_order_relaxed); }
  virtual void wake() noexcept = 0;
  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }

 private:
  friend class Waiter;
  struct Slot {
    Waiter* waiter = nullptr;
    std::uint32_t generation = 0;
  };
  struct CallOff {
    std::uint32_t slot;
    std::uint32_t generation;
  };
  void enter(Waiter& waiter);
  void leave(Waiter& waiter);
  void mail_call_off(CallOff which) noexcept;
  void take_mail();
  void call_off_stopped();
  void mail_came();
  static void call_off(Waiter& waiter);

  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> running_;
  TimerHeap timers_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  bool closed_ = false;

  std::mutex mutex_;  // guards the five below
  std::vector<std::coroutine_handle<>> posted_;
  std::vector<CallOff> call_offs_;
  bool call_offs_lost_ = false;  // there was no memory to write one down
  bool close_asked_ = false;
  Closed* tell_closed_ = nullptr;
  std::atomic<bool> mail_ = false;  // read without the mutex
  std::atomic<bool> blocked_ = false;
};

}  // namespace httpretry
