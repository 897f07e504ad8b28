#include "loops.hpp"

#include "lib/core/base/signals.hpp"

#include <algorithm>

namespace httpretry::detail {
namespace {

// About 150 bytes each. When there are more, origins without calls are removed.
constexpr std::size_t kMostOrigins = 1024;

// Returns how many idle loops are kept: one per core, because no thread reads their sockets.
std::size_t most_idle() {
  static const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  return most;
}

}  // namespace

void BackgroundLoop::start() {
  thread_ = std::thread([self = shared_from_this()] {
    block_signals();
    self->loop_.run_until(self->done_);
    self->loop_.run_until(self->done_);  // one more turn, for waits that the last `close` canceled
  });
}

void BackgroundLoop::close() noexcept {
  loop_.close();
  call_ended();
}

void BackgroundLoop::call_ended() noexcept {
  const auto self = shared_from_this();  // the thread may end as soon as it is done
  if (--calls_ > 0) return;
  done_.store(true, std::memory_order_release);
  loop_.close();  // wakes the driver
  kept_.reset();
}

// Counts a call to this origin as long as the result lives.
BackgroundLoop::CallCount BackgroundLoop::count_call(std::string_view origin) {
  auto& calls = calls_to(origin);
  calls_.fetch_add(1, std::memory_order_relaxed);
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  const int now = calls.in_flight.fetch_add(1, std::memory_order_relaxed) + 1;
  calls.most = std::max(calls.most, now);
  return {decltype(CallCount::call)(this), decltype(CallCount::in_flight)(&calls)};
}

bool BackgroundLoop::has_idle(std::string_view origin) const {
  const auto found = origins_.find(origin);
  return found != origins_.end() &&
         found->second.in_flight.load(std::memory_order_relaxed) < found->second.most;
}

BackgroundLoop::OriginCalls& BackgroundLoop::calls_to(std::string_view origin) {
  const auto found = origins_.find(origin);
  if (found != origins_.end()) return found->second;
  if (origins_.size() >= kMostOrigins) {
    std::erase_if(origins_, [](const auto& one) { return one.second.in_flight == 0; });
  }
  return origins_.try_emplace(std::string(origin), *this).first->second;
}

void BackgroundLoop::join() {
  if (thread_.get_id() == std::this_thread::get_id()) return detach();
  if (thread_.joinable()) thread_.join();
}

void BackgroundLoop::detach() {
  if (thread_.joinable()) thread_.detach();
}

LoopPool::LoopPool(std::shared_ptr<const TransportOptions> options,
                   std::shared_ptr<Resolver> resolver)
    : options_(std::move(options)), resolver_(std::move(resolver)) {
  idle_.reserve(most_idle() + 1);  // so that take_back cannot throw
}

// Leases the idle loop that was used last, or a new one. Destroys the loops that have been idle for
// too long.
LoopPool::Lease LoopPool::lend() {
  std::unique_ptr<Loop> loop;
  std::vector<std::unique_ptr<Loop>> expired;  // destroyed after the mutex is released
  {
    const std::lock_guard lock(mutex_);
    const auto oldest = std::chrono::steady_clock::now() - options_->max_idle;
    // The clock of an idle loop stands still, so now() is the time of its last turn.
    const auto first_kept = std::find_if(idle_.begin(), idle_.end(),
                                         [&](const auto& idle) { return idle->now() >= oldest; });
    std::move(idle_.begin(), first_kept, std::back_inserter(expired));
    idle_.erase(idle_.begin(), first_kept);
    if (!idle_.empty()) {
      loop = std::move(idle_.back());
      idle_.pop_back();
      lent_.push_back(loop.get());
    }
  }
  if (!loop) {
    loop = std::make_unique<Loop>(options_, resolver_, Loop::Load::OneCall);
    const std::lock_guard lock(mutex_);
    lent_.push_back(loop.get());
    if (stopped_) loop->close();
  }
  return {loop.release(), TakeBack{this}};
}

// Keeps a loop whose lease has ended. If there are too many, destroys the one idle for longest.
void LoopPool::take_back(std::unique_ptr<Loop> loop) {
  std::unique_ptr<Loop> surplus;  // destroyed after the mutex is released
  const std::lock_guard lock(mutex_);
  lent_.erase(std::find(lent_.begin(), lent_.end(), loop.get()));
  idle_.push_back(std::move(loop));
  if (idle_.size() > most_idle()) {
    surplus = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  back_.notify_all();
}

void LoopPool::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  idle_.clear();  // so that they are not leased again
  for (auto* loop : lent_) loop->close();
}

void LoopPool::close() {
  stop();
  std::unique_lock lock(mutex_);
  const auto own = std::count(lent_.begin(), lent_.end(), RunQueue::current());
  back_.wait(lock, [&] { return lent_.size() == static_cast<std::size_t>(own); });
}

// Closing the sockets could send bytes on connections that the parent process uses.
void LoopPool::abandon() {
  for (auto& idle : idle_) static_cast<void>(idle.release());  // NOLINT: on purpose
}

}  // namespace httpretry::detail
