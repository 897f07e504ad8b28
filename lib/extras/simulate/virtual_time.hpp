// VirtualTime: a scheduler whose clock jumps from one event to the next. All of it belongs to one
// thread, so it takes no lock.
#pragma once

#include "lib/core/flow/detail/run_queue.hpp"

#include <optional>

namespace httpretry::simulation {

class VirtualTime;

// Something that happens at a time. It leaves the queue when it is destroyed.
class Event : public Timer {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() override;

 private:
  friend class VirtualTime;
  VirtualTime* clock_ = nullptr;  // in whose queue it was last
};

class VirtualTime final : public Scheduler {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  [[nodiscard]] WallTime wall_now() const override;
  void post(std::coroutine_handle<> handle) override { ready_.push_back(handle); }
  // What was posted is destroyed before it could run.
  void forget(std::coroutine_handle<> handle);
  Task<bool> sleep_until(Time when, std::stop_token stop) override;
  // Throws std::logic_error where nothing is left that could end the wait.
  void run_until(const std::atomic<bool>& done) override;

  // Events of one time are due in the order in which they were set. One that is set is moved.
  void set(Event& event, Time when);
  void remove(Event& event) { events_.remove(event); }
  // Runs what is ready, then the next event. False: there is none.
  bool step();

 private:
  void run_ready();

  Time now_{};
  TimerQueue events_;
  std::vector<std::coroutine_handle<>> ready_;
};

// The wait of a coroutine for a time, for something that ends it earlier, or for a stop. To be
// awaited at once.
class Wait : public Event {
 public:
  // With kNever there is no time.
  Wait(VirtualTime& clock, Time until, std::stop_token stop)
      : clock_(clock), until_(until), stop_(std::move(stop)) {}
  ~Wait() override;

  [[nodiscard]] bool await_ready() const { return stop_.stop_requested(); }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter);
  // Returns true if the time has come.
  bool await_resume();

 protected:
  enum class End : std::uint8_t { None, TimeUp, Canceled, Early };
  // Resumes the coroutine.
  void end(End how);

  VirtualTime& clock_;
  End end_ = End::None;  // which it stays where a stop was requested before it began

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
