#include "event_loop_core.hpp"

#include <httpretry/http/detail/misuse.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace httpretry {
namespace detail {

EventLoopCore::EventLoopCore() : process_(::getpid()) {
  if constexpr (!Poller::kHasDescriptor) {
    throw std::system_error(ENOTSUP, std::generic_category(),
                            "cannot make an event loop: this httpretry was built with "
                            "HTTPRETRY_POLLER=poll, which has no descriptor to wait for");
  }
  watch(wake_.fd());
  read_clock();
  prepare_to_block();  // so that a post before the first turn makes the descriptor readable
}

void EventLoopCore::watch(int fd) {
  if (poller_.watch(fd, CURL_POLL_IN)) return;
  throw std::system_error(errno, std::generic_category(), kFailure);
}

void EventLoopCore::carry(std::shared_ptr<BackgroundLoop> loop) {
  loop->loop().run_turn();  // after it, a post makes the loop's descriptor readable
  const std::lock_guard lock(mutex_);
  loops_.reserve(loops_.size() + 1);  // so that push_back cannot throw
  watch(loop->loop().descriptor());
  loops_.push_back(std::move(loop));
}

std::shared_ptr<BackgroundLoop> EventLoopCore::loop_at(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return index < loops_.size() ? loops_[index] : nullptr;
}

// Closing the descriptor does not remove it from the epoll set if a forked process still has it
// open, so it is removed explicitly.
void EventLoopCore::drop(const std::shared_ptr<BackgroundLoop>& loop) {
  poller_.forget(loop->loop().descriptor());
  const std::lock_guard lock(mutex_);
  std::erase(loops_, loop);
}

// Sets the flag last. Otherwise a turn could clear the flag before the signal arrives, and nothing
// would ever clear the descriptor.
void EventLoopCore::wake() noexcept {
  wake_.signal();
  woken_.store(true, std::memory_order_release);
}

Time EventLoopCore::next_turn() const {
  Time next = has_ready() || has_posted() ? Time::min() : timers().next();
  const std::lock_guard lock(mutex_);
  for (const auto& loop : loops_) next = std::min(next, loop->loop().next_turn());
  return next;
}

std::optional<std::chrono::milliseconds> EventLoopCore::time_left() const {
  using std::chrono::milliseconds;
  const auto next = next_turn();
  if (next == kNever) return std::nullopt;
  const Time time = std::chrono::steady_clock::now();
  if (next <= time) return milliseconds(0);
  // At most an hour, so that the number fits into the int of poll().
  return std::min(std::chrono::ceil<milliseconds>(next - time), milliseconds(3'600'000));
}

void EventLoopCore::run_turn() {
  const auto self = shared_from_this();  // a callback may destroy the EventLoop
  if (in_turn_.exchange(true)) {
    misuse("an EventLoop was driven from inside its own turn, or by two threads at the same time");
  }
  driver_ = std::this_thread::get_id();
  run_all();
  if (ended_) finish();
  in_turn_ = false;
}

// Runs a turn of the queue and of each loop. A loop that is done is dropped after one more turn.
void EventLoopCore::run_all() {
  run_queue();
  // By index, because a callback may add a loop.
  for (std::size_t i = 0; const auto loop = loop_at(i);) {
    const bool is_last_turn = loop->is_done();
    loop->loop().run_turn();
    if (is_last_turn) {
      drop(loop);
    } else {
      ++i;
    }
  }
}

void EventLoopCore::run_queue() {
  const Driving driving(*this);
  if (woken_.exchange(false, std::memory_order_acquire)) wake_.clear();
  unblocked();
  read_clock();
  turn();
  prepare_to_block();
}

void EventLoopCore::run_until(const std::atomic<bool>& done) {
  const auto self = shared_from_this();
  for (;;) {
    run_turn();
    if (done.load(std::memory_order_acquire)) return;
    const auto left = time_left();
    pollfd ready{descriptor(), POLLIN, 0};
    ::poll(&ready, 1, left ? static_cast<int>(left->count()) : -1);
  }
}

// Ends all calls, and the waits of coroutines. Inside a turn, only sets a flag, and run_turn ends
// them when the turn is over.
void EventLoopCore::end() {
  if (::getpid() != process_) {
    // In a forked child the sockets belong to the parent, so the loop is leaked on purpose.
    new std::shared_ptr<EventLoopCore>(shared_from_this());  // NOLINT
    return;
  }
  if (in_turn_.exchange(true)) {
    ended_ = true;
    return;
  }
  finish();
  in_turn_ = false;
}

// Cancels all calls, and runs turns until they have ended. A canceled call ends without waiting, so
// its coroutines are due at once. A loop whose calls still run on other threads lives on without
// this driver.
void EventLoopCore::finish() {
  close();
  for (std::size_t i = 0; const auto loop = loop_at(i); ++i) loop->loop().close();
  do {
    run_all();
  } while (next_turn() <= std::chrono::steady_clock::now());
  while (const auto loop = loop_at(0)) {
    if (!loop->is_done()) loop->keep_for_calls();
    drop(loop);
  }
}

}  // namespace detail

EventLoop::EventLoop() : core_(std::make_shared<detail::EventLoopCore>()) {}
EventLoop::~EventLoop() { core_->end(); }
int EventLoop::descriptor() const { return core_->descriptor(); }
std::optional<std::chrono::milliseconds> EventLoop::time_left() const { return core_->time_left(); }
void EventLoop::turn() { core_->run_turn(); }
Time EventLoop::now() const { return core_->now(); }
WallTime EventLoop::wall_now() const { return core_->wall_now(); }
void EventLoop::post(std::coroutine_handle<> handle) { core_->post(handle); }
Task<bool> EventLoop::sleep_until(Time when, std::stop_token stop) {
  return core_->sleep_until(when, std::move(stop));
}
void EventLoop::run_until(const std::atomic<bool>& done) { core_->run_until(done); }
const detail::RunQueue* EventLoop::queue() const { return core_.get(); }

}  // namespace httpretry
