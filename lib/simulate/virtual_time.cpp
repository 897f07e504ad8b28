#include "virtual_time.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace httpretry::simulation {
namespace {

constexpr std::size_t kBranches = 4;

// The date at which every simulation begins: 2026-01-01T00:00:00Z.
constexpr WallTime kStart{std::chrono::seconds(1'767'225'600)};

// co_await gives true (the time has come) or false (a stop was requested).
class VirtualSleep final : private Event {
 public:
  VirtualSleep(VirtualTime& clock, Time when, std::stop_token stop)
      : clock_(clock), when_(when), stop_(std::move(stop)) {}
  VirtualSleep(const VirtualSleep&) = delete;
  VirtualSleep& operator=(const VirtualSleep&) = delete;
  ~VirtualSleep() override {
    on_stop_.reset();
    if (posted_) clock_.forget(awaiter_);
  }

  [[nodiscard]] bool await_ready() const { return stop_.stop_requested(); }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter) {
    awaiter_ = awaiter;
    if (when_ != kNever) clock_.set(*this, when_);
    if (stop_.stop_possible()) on_stop_.emplace(stop_, Cancel{this});
  }
  bool await_resume() {
    on_stop_.reset();
    posted_ = false;
    return slept_;
  }

 private:
  struct Cancel {
    VirtualSleep* sleep;
    void operator()() const { sleep->cancel(); }
  };
  void due() override {
    slept_ = true;
    awaiter_.resume();
  }
  // Whoever requests the stop must not find itself in the coroutine that sleeps.
  void cancel() {
    if (slept_) return;
    clock_.remove(*this);
    clock_.post(awaiter_);
    posted_ = true;
  }

  VirtualTime& clock_;
  Time when_;
  std::stop_token stop_;
  std::optional<std::stop_callback<Cancel>> on_stop_;
  std::coroutine_handle<> awaiter_;
  bool slept_ = false;
  bool posted_ = false;
};

}  // namespace

Event::~Event() {
  if (queue_ != nullptr) queue_->remove(*this);
}

WallTime VirtualTime::wall_now() const {
  const auto limit = WallTime::max() - kStart;
  return now_.time_since_epoch() >= limit ? WallTime::max() : kStart + now_.time_since_epoch();
}

Task<bool> VirtualTime::sleep_until(Time when, std::stop_token stop) {
  VirtualSleep sleep(*this, when, std::move(stop));
  const bool slept = co_await sleep;
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
  if (heap_.empty()) return false;
  auto& event = *heap_.front().event;
  now_ = std::max(now_, heap_.front().when);
  remove(event);
  event.due();
  run_ready();
  return true;
}

// By index: what runs may make others ready.
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
  if (event.queue_ != nullptr) remove(event);
  event.queue_ = this;
  heap_.emplace_back();
  sift_up(heap_.size() - 1, {when, order_++, &event});
}

void VirtualTime::remove(Event& event) {
  if (event.queue_ == nullptr) return;
  const auto place = std::exchange(event.place_, Event::kNowhere);
  event.queue_ = nullptr;
  const auto last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  const bool up = place > 0 && last.before(heap_[(place - 1) / kBranches]);
  up ? sift_up(place, last) : sift_down(place, last);
}

void VirtualTime::put(std::size_t place, const Entry& entry) {
  heap_[place] = entry;
  entry.event->place_ = place;
}

void VirtualTime::sift_up(std::size_t place, const Entry& entry) {
  while (place > 0) {
    const auto above = (place - 1) / kBranches;
    if (!entry.before(heap_[above])) break;
    put(place, heap_[above]);
    place = above;
  }
  put(place, entry);
}

void VirtualTime::sift_down(std::size_t place, const Entry& entry) {
  for (;;) {
    const auto first = place * kBranches + 1;
    if (first >= heap_.size()) break;
    const auto end = std::min(first + kBranches, heap_.size());
    auto least = first;
    for (auto i = first + 1; i < end; ++i) {
      if (heap_[i].before(heap_[least])) least = i;
    }
    if (!heap_[least].before(entry)) break;
    put(place, heap_[least]);
    place = least;
  }
  put(place, entry);
}

}  // namespace httpretry::simulation
