// EventLoopCore: the state of an EventLoop, which its clients share. It has a queue for coroutines
// that the program starts, and drives one loop for each client.
#pragma once

#include "loops.hpp"

#include "lib/core/base/descriptor.hpp"
#include "lib/core/curl/poller.hpp"

#include <httpretry/client/event_loop.hpp>

#include <atomic>

namespace httpretry::detail {

class EventLoopCore final : public RunQueue, public std::enable_shared_from_this<EventLoopCore> {
 public:
  EventLoopCore();

  // Adds a loop to drive until it is done. May be called from any thread.
  void carry(std::shared_ptr<BackgroundLoop> loop);
  // Returns whether this thread ran the last turn.
  [[nodiscard]] bool is_driver() const { return driver_ == std::this_thread::get_id(); }

  [[nodiscard]] int descriptor() const { return poller_.descriptor(); }
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_left() const;
  void run_turn();
  // Ends all calls and waits, because the EventLoop is destroyed, possibly inside a turn.
  void end();

  [[nodiscard]] Time now() const override { return now_.load(std::memory_order_relaxed); }
  [[nodiscard]] WallTime wall_now() const override { return std::chrono::system_clock::now(); }
  void run_until(const std::atomic<bool>& done) override;
  void read_clock() override {
    now_.store(std::chrono::steady_clock::now(), std::memory_order_relaxed);
  }

 private:
  void wake() noexcept override;
  void watch(int fd);
  void run_all();
  void run_queue();
  void finish();
  [[nodiscard]] Time next_turn() const;
  [[nodiscard]] std::shared_ptr<BackgroundLoop> loop_at(std::size_t index) const;
  void drop(const std::shared_ptr<BackgroundLoop>& loop);

  static constexpr char kFailure[] = "cannot make an event loop";

  const int process_;        // the process that made the loop
  Poller poller_{kFailure};  // watches the descriptors of the queue and of the loops
  EventFd wake_{kFailure};
  std::atomic<bool> woken_ = false;
  std::atomic<bool> in_turn_ = false;
  std::atomic<std::thread::id> driver_;  // no thread before the first turn
  bool ended_ = false;                   // `end` was called inside the current turn
  std::atomic<Time> now_{};              // atomic, because other threads may read it
  mutable std::mutex mutex_;             // guards `loops_`
  std::vector<std::shared_ptr<BackgroundLoop>> loops_;
};

}  // namespace httpretry::detail
