#include "virtual_time.hpp"

#include "lib/core/base/saturating.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace httpretry::simulation {
namespace {

// The date at which every simulation begins: 2026-01-01T00:00:00Z.
constexpr WallTime kStart{std::chrono::seconds(1'767'225'600)};

}  // namespace

Event::~Event() {
  if (clock_ != nullptr) clock_->remove(*this);
}

WallTime VirtualTime::wall_now() const { return saturating::plus(kStart, now_.time_since_epoch()); }

Task<bool> VirtualTime::sleep_until(Time when, std::stop_token stop) {
  Wait wait(*this, when, std::move(stop));
  const bool slept = co_await wait;
  co_return slept;
}

void VirtualTime::run_until(const std::atomic<bool>& done) {
  while (!done.load(std::memory_order_acquire)) {
    if (step() || done.load(std::memory_order_acquire)) continue;
    throw std::logic_error("VirtualTime: the call waits for something that no event will end");
  }
}

bool VirtualTime::step() {
  run_ready();
  if (events_.size() == 0) return false;
  now_ = std::max(now_, events_.next());
  events_.take_due(now_)->due();
  run_ready();
  return true;
}

// Iterates by index, because a coroutine that runs may post others.
void VirtualTime::run_ready() {
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    const auto handle = ready_[i];
    handle.resume();
  }
  ready_.clear();
}

void VirtualTime::forget(std::coroutine_handle<> handle) {
  std::replace(ready_.begin(), ready_.end(), handle,
               std::coroutine_handle<>(std::noop_coroutine()));
}

void VirtualTime::set(Event& event, Time when) {
  event.clock_ = this;
  events_.remove(event);
  events_.add(event, when);
}

Wait::~Wait() {
  on_stop_.reset();
  if (posted_) clock_.forget(awaiter_);
}

void Wait::await_suspend(std::coroutine_handle<> awaiter) {
  awaiter_ = awaiter;
  if (until_ != kNever) clock_.set(*this, until_);
  if (stop_.stop_possible()) on_stop_.emplace(stop_, Cancel{this});
}

bool Wait::await_resume() {
  on_stop_.reset();
  posted_ = false;
  return end_ == End::TimeUp;
}

void Wait::end(End how) {
  if (end_ != End::None) return;  // canceled, and posted to be resumed
  clock_.remove(*this);
  end_ = how;
  awaiter_.resume();
}

// Posts the coroutine, because resuming it here would run it inside of the call to request_stop.
void Wait::cancel() {
  if (end_ != End::None) return;
  end_ = End::Canceled;
  clock_.remove(*this);
  clock_.post(awaiter_);
  posted_ = true;
}

}  // namespace httpretry::simulation
