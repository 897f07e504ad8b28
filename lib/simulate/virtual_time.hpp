// VirtualTime: a scheduler whose clock jumps from one event to the next. All of it belongs to one
// thread, so it takes no lock.
#pragma once

#include <httpretry/flow/scheduler.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace httpretry::simulation {

// Something that happens at a time. It leaves the queue when it is destroyed.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  virtual ~Event();
  virtual void due() = 0;

 private:
  friend class VirtualTime;
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  class VirtualTime* queue_ = nullptr;
  std::size_t place_ = kNowhere;  // in the heap
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
  void remove(Event& event);
  // Runs what is ready, then the next event. False: there is none.
  bool step();

 private:
  struct Entry {
    Time when;
    std::uint64_t order;
    Event* event;
    [[nodiscard]] bool before(const Entry& other) const {
      return when != other.when ? when < other.when : order < other.order;
    }
  };
  void run_ready();
  void put(std::size_t place, const Entry& entry);
  void sift_up(std::size_t place, const Entry& entry);
  void sift_down(std::size_t place, const Entry& entry);

  Time now_{};
  std::uint64_t order_ = 0;
  std::vector<Entry> heap_;  // each entry has four below it
  std::vector<std::coroutine_handle<>> ready_;
};

}  // namespace httpretry::simulation
