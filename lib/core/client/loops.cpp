#include "core.hpp"

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
  call_ended();  // until here, the client counted as a call
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

// Returns the loop with the fewest calls in flight among those with an idle connection to the
// origin. If no loop has one, adds a loop, or returns the one with the fewest calls if it is idle
// or all loops exist. So a call that begins when another ends reuses its connection: 64 calls in
// flight on two loops never need more than 64 connections.
BackgroundLoop& ClientCore::choose_loop(std::string_view origin) {
  BackgroundLoop* best = nullptr;
  // Says whether `best` lacks an idle connection, and how many calls it has in flight. The lower
  // pair is better, so an idle connection counts first.
  std::pair<bool, int> least_load;
  for (const auto& loop : loops_) {
    const bool has_connection = !origin.empty() && loop->has_idle(origin);
    const std::pair load(!has_connection, loop->in_flight());
    if (best != nullptr && load >= least_load) continue;
    best = loop.get();
    least_load = load;
  }
  const auto& [needs_connection, in_flight] = least_load;
  const bool all_made = loops_.size() == static_cast<std::size_t>(options_.threads);
  const bool use_best = best != nullptr && (!needs_connection || in_flight == 0 || all_made);
  return use_best ? *best : add_loop();
}

// Makes a background loop and starts its driver.
BackgroundLoop& ClientCore::add_loop() {
  loops_.reserve(loops_.size() + 1);  // so that push_back cannot throw after the start
  auto fresh = std::make_shared<BackgroundLoop>(connection_, resolver_);
  if (event_loop_) {
    event_loop_->core_->carry(fresh);
  } else {
    fresh->start();
  }
  loops_.push_back(std::move(fresh));
  return *loops_.back();
}

LoopPool::LoopPool(std::shared_ptr<const TransportOptions> options,
                   std::shared_ptr<Resolver> resolver)
    : options_(std::move(options)), resolver_(std::move(resolver)) {
  idle_.reserve(most_idle() + 1);  // so that take_back cannot throw
}

// Leases an event loop to a thread that is about to drive a blocking call: the idle loop that was
// used last, because its connections are the most likely to be still open, or a new one. Also
// destroys the loops that have been idle for too long. The end of the lease calls `take_back`.
LoopPool::Lease LoopPool::lend() {
  std::unique_ptr<Loop> loop;
  std::vector<std::unique_ptr<Loop>> expired;  // destroyed after the mutex is released
  {
    const std::lock_guard lock(mutex_);
    const auto used_after = std::chrono::steady_clock::now() - options_->max_idle;
    // `idle_` begins with the loop that was used the longest time ago. The clock of an idle loop
    // stands still, so now() returns when it was last used.
    const auto first_kept = std::find_if(
        idle_.begin(), idle_.end(), [&](const auto& idle) { return idle->now() >= used_after; });
    std::move(idle_.begin(), first_kept, std::back_inserter(expired));
    idle_.erase(idle_.begin(), first_kept);
    if (!idle_.empty()) {
      loop = std::move(idle_.back());
      idle_.pop_back();
      lent_.push_back(loop.get());
    }
  }
  if (!loop) {  // none is idle: makes one, without holding the mutex
    loop = std::make_unique<Loop>(options_, resolver_, Loop::Load::OneCall);
    const std::lock_guard lock(mutex_);
    lent_.push_back(loop.get());
    // The client has ended: cancels the call that will run on the new loop. An idle loop needs no
    // check: all that were returned after `stop` are closed.
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
  // A loop that this thread drives cannot be returned before this function has returned.
  const auto own = std::count(lent_.begin(), lent_.end(), RunQueue::current());
  back_.wait(lock, [&] { return lent_.size() == static_cast<std::size_t>(own); });
}

// Closing the sockets could send bytes on connections that the parent process uses.
void LoopPool::abandon() {
  for (auto& idle : idle_) static_cast<void>(idle.release());  // NOLINT: on purpose
}

}  // namespace httpretry::detail
