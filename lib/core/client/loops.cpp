#include "loops.hpp"

#include "lib/core/base/signals.hpp"

#include <algorithm>

namespace httpretry::detail {
namespace {

// Some 150 bytes each. Beyond it those without calls are forgotten.
constexpr std::size_t kMostOrigins = 1024;

// Nobody reads the sockets of an idle loop, so few are kept: one for each core.
std::size_t most_idle() {
  static const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  return most;
}

}  // namespace

void BackgroundLoop::start() {
  thread_ = std::thread([self = shared_from_this()] {
    block_signals();
    self->loop_.run_until(self->done_);
    self->loop_.run_until(self->done_);  // one more turn, for what `close` canceled after the last
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
  loop_.close();  // wakes it
  kept_.reset();
}

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
  idle_.reserve(most_idle() + 1);  // taking one back must not fail
}

LoopPool::Lease LoopPool::lend() {
  std::unique_ptr<Loop> loop;
  std::vector<std::unique_ptr<Loop>> expired;  // closed without the mutex
  {
    const std::lock_guard lock(mutex_);
    const auto oldest = std::chrono::steady_clock::now() - options_->max_idle;
    // The clock of a loop stands still while it is idle.
    const auto young = std::find_if(idle_.begin(), idle_.end(),
                                    [&](const auto& idle) { return idle->now() >= oldest; });
    std::move(idle_.begin(), young, std::back_inserter(expired));
    idle_.erase(idle_.begin(), young);
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

void LoopPool::take_back(std::unique_ptr<Loop> loop) {
  std::unique_ptr<Loop> surplus;  // closed without the mutex
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
  idle_.clear();  // they could be lent again
  for (auto* loop : lent_) loop->close();
}

void LoopPool::close() {
  stop();
  std::unique_lock lock(mutex_);
  const auto own = std::count(lent_.begin(), lent_.end(), RunQueue::current());
  back_.wait(lock, [&] { return lent_.size() == static_cast<std::size_t>(own); });
}

// Closing their sockets could speak on connections that are the other process's.
void LoopPool::abandon() {
  for (auto& idle : idle_) static_cast<void>(idle.release());  // NOLINT: on purpose
}

}  // namespace httpretry::detail
