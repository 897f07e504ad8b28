#include "lib/core/base/saturating.hpp"
#include "lib/core/flow/detail/run_queue.hpp"

#include <httpretry/testing/testing.hpp>

#include <stdexcept>

namespace httpretry {

class ManualScheduler::Queue final : public RunQueue {
 public:
  explicit Queue(WallTime wall) : wall_(wall) {}

  [[nodiscard]] Time now() const override { return now_; }
  [[nodiscard]] WallTime wall_now() const override {
    return saturating::plus(wall_, now_.time_since_epoch());
  }

  void run() {
    const Driving driving(*this);
    run_ready();
  }

  // Runs what is ready and moves the clock to the next timer, in turn, until `done`. Throws
  // std::logic_error if no timer is left.
  void run_until(const std::atomic<bool>& done) override {
    const Driving driving(*this);
    for (;;) {
      run_ready();
      if (done.load(std::memory_order_acquire)) return;
      if (timers().next() == kNever) {
        throw std::logic_error(
            "ManualScheduler: the call waits for something, but no timer is set that could end the "
            "wait");
      }
      now_ = std::max(now_, timers().next());
    }
  }

  // Moves the clock from timer to timer, and then to the end of the duration.
  void advance(Duration by) {
    if (by < Duration::zero()) {
      throw std::invalid_argument("ManualScheduler::advance: the clock cannot go back");
    }
    const Driving driving(*this);
    const auto end = later(now_, by);
    run_ready();
    while (timers().next() <= end && timers().next() != kNever) {
      now_ = std::max(now_, timers().next());
      run_ready();
    }
    now_ = end;
  }

  void end() {
    close();
    run();
  }

 private:
  // Runs everything that is ready. Posted work, such as a stop request, may arrive without making a
  // coroutine ready, so an empty turn does not mean that nothing is left.
  void run_ready() {
    while (turn() || !idle()) {
    }
  }
  bool idle() {
    const bool nothing_posted = prepare_to_block();
    unblocked();
    return nothing_posted;
  }
  void wake() noexcept override {}

  Time now_{};
  WallTime wall_;
};

ManualScheduler::ManualScheduler(WallTime wall) : queue_(std::make_unique<Queue>(wall)) {}
ManualScheduler::~ManualScheduler() { queue_->end(); }
Time ManualScheduler::now() const { return queue_->now(); }
WallTime ManualScheduler::wall_now() const { return queue_->wall_now(); }
void ManualScheduler::post(std::coroutine_handle<> handle) { queue_->post(handle); }
Task<bool> ManualScheduler::sleep_until(Time when, std::stop_token stop) {
  return queue_->sleep_until(when, std::move(stop));
}
const RunQueue* ManualScheduler::queue() const { return queue_.get(); }
void ManualScheduler::run_until(const std::atomic<bool>& done) { queue_->run_until(done); }
void ManualScheduler::run() { queue_->run(); }
void ManualScheduler::advance(Duration by) { queue_->advance(by); }
std::size_t ManualScheduler::sleeping() const { return queue_->timers().size(); }
Time ManualScheduler::next() const { return queue_->timers().next(); }

}  // namespace httpretry
