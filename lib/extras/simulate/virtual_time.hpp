// VirtualTime: a scheduler whose clock jumps from one event to the next. It takes no locks, because
// only one thread uses it.
#pragma once

#include "lib/core/flow/detail/run_queue.hpp"

#include <optional>

namespace httpretry::simulation {

class VirtualTime;

// Event: something that happens at a set time. The destructor removes it from the queue.
class Event : public Timer {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() override;

 private:
  friend class VirtualTime;
  VirtualTime* clock_ = nullptr;  // the latest that it was set on
};

class VirtualTime final : public Scheduler {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  [[nodiscard]] WallTime wall_now() const override;
  void post(std::coroutine_handle<> handle) override { ready_.push_back(handle); }
  // Removes a posted coroutine, which is destroyed before it could run.
  void forget(std::coroutine_handle<> handle);
  Task<bool> sleep_until(Time when, std::stop_token stop) override;
  // Throws std::logic_error if no event is left that could end the wait.
  void run_until(const std::atomic<bool>& done) override;

  // Sets or moves an event. Events with the same time are due in the order in which they were set.
  void set(Event& event, Time when);
  void remove(Event& event) { events_.remove(event); }
  // Resumes all posted coroutines, and then runs the next event. Returns false if there is none.
  bool step();

 private:
  void run_ready();

  Time now_{};
  TimerQueue events_;
  std::vector<std::coroutine_handle<>> ready_;
};

// Wait: an awaitable that ends at a time, with a stop request, or when a derived class ends it
// early. Await it right after construction.
class Wait : public Event {
 public:
  // With kNever, the wait has no time limit.
  Wait(VirtualTime& clock, Time until, std::stop_token stop)
      : clock_(clock), until_(until), stop_(std::move(stop)) {}
  ~Wait() override;

  [[nodiscard]] bool await_ready() const { return stop_.stop_requested(); }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter);
  // Returns true if the time was reached.
  bool await_resume();

 protected:
  enum class End : std::uint8_t { None, TimeUp, Canceled, Early };
  // Resumes the coroutine.
  void end(End how);

  VirtualTime& clock_;
  End end_ = End::None;  // stays None if a stop was requested before the wait began

 private:
  struct Cancel {
    Wait* wait;
    void operator()() const { wait->cancel(); }
  };
  void due() final { end(End::TimeUp); }
  void cancel();

  Time until_;
  std::stop_token stop_;
  std::optional<std::stop_callback<Cancel>> on_stop_;
  std::coroutine_handle<> awaiter_;
  bool posted_ = false;
};

}  // namespace httpretry::simulation
