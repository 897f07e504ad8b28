#include "lib/batch/call_watch.hpp"

#include "lib/flow/run_queue.hpp"

#include <httpretry/flow/detail/posted.hpp>

#include <algorithm>

namespace httpretry::batch {
namespace {

// Runs when the loop of this thread has resumed what is ready now.
detail::PostedCoroutine wake_in_next_turn(std::shared_ptr<CallWatch> watch) {
  watch->wake();
  co_return;
}

}  // namespace

void CallWatch::attempt_started(const Call& call, const Request& /*request*/,
                                int /*number*/) noexcept {
  const auto* const mine = call.get<FlightOfCall>();
  if (mine == nullptr || !mine->flight->in_wait.exchange(false)) return;
  const std::lock_guard lock(mutex_);
  --in_wait_;
}

void CallWatch::attempt_ended(const Call& call, const Request& /*request*/,
                              const Attempt& attempt) noexcept {
  const auto* const mine = call.get<FlightOfCall>();
  if (mine == nullptr || !attempt.retried) return;
  mine->flight->on_wire = false;
  std::unique_lock lock(mutex_);
  if (!mine->flight->in_wait.exchange(true)) ++in_wait_;
  tell(lock);
}

void CallWatch::paused(const Call& call, const PauseBegun& pause) noexcept {
  const auto* const mine = call.get<FlightOfCall>();
  // The key of a scope within a host, or of a policy, has more words than the origin of the host.
  // guards() itself holds the calls of such a scope.
  if (mine == nullptr || pause.key.find(' ') != std::string_view::npos) return;
  auto& flight = *mine->flight;
  const bool redirected = pause.key != call.origin();
  std::unique_lock lock(mutex_);
  if (!redirected) flight.paused_host = true;
  news_.holds.push_back({redirected ? std::string(pause.key) : flight.job.host, pause.until});
  news_.to_judge = true;
  tell(lock);
}

Flight* CallWatch::ended(Flight& flight, Outcome outcome) {
  const bool good = succeeded(outcome);
  std::unique_lock lock(mutex_);
  if (flight.in_wait.exchange(false)) --in_wait_;
  news_.ended.emplace_back(&flight, std::move(outcome));
  news_.to_judge = news_.to_judge || !good;
  Flight* next = nullptr;
  // What must not be sent twice, the other thread notes before.
  const bool may_send = !news_.to_judge && !judging_ && !news_.finish_up;
  if (may_send && !ready_.empty() && !ready_.front()->prepared.unsafe) {
    next = ready_.front();
    ready_.pop_front();
  }
  tell(lock);
  return next;
}

std::vector<Flight*> CallWatch::send_ready(std::vector<Flight*> flights, std::size_t all,
                                           std::size_t most) {
  const std::lock_guard lock(mutex_);
  judging_ = false;
  ready_.insert(ready_.end(), flights.begin(), flights.end());
  flights.clear();
  if (news_.finish_up) return flights;
  while (!ready_.empty() && all - ready_.size() < most + in_wait_) {
    flights.push_back(ready_.front());
    ready_.pop_front();
  }
  return flights;
}

std::vector<Flight*> CallWatch::withdraw(const std::function<bool(const Flight&)>& which) {
  const std::lock_guard lock(mutex_);
  const auto kept = std::stable_partition(ready_.begin(), ready_.end(),
                                          [&](const Flight* one) { return !which(*one); });
  std::vector<Flight*> withdrawn(kept, ready_.end());
  ready_.erase(kept, ready_.end());
  return withdrawn;
}

std::size_t CallWatch::ready() {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}

// Many calls end in one turn of the loop. To wake the other thread costs as much as a small
// request, so that is done once for all of them.
void CallWatch::tell(std::unique_lock<std::mutex>& lock) {
  something_ = true;
  if (!waiting_ || wake_posted_) return;
  auto* const loop = RunQueue::current();
  if (loop == nullptr) return changed_.notify_one();
  wake_posted_ = true;
  lock.unlock();
  wake_in_next_turn(shared_from_this()).post_to(*loop);
}

void CallWatch::wake() {
  const std::lock_guard lock(mutex_);
  wake_posted_ = false;
  changed_.notify_one();
}

void CallWatch::ask(bool News::*what) {
  const std::lock_guard lock(mutex_);
  something_ = news_.*what = true;
  changed_.notify_one();
}

bool CallWatch::asked_to_end() {
  const std::lock_guard lock(mutex_);
  return news_.finish_up;
}

MiddlewarePtr watched_sends() {
  return middleware("sends of the run",
                    [](Request request, Call& call, Next next) -> Task<Outcome> {
                      if (const auto* mine = call.get<FlightOfCall>()) mine->flight->on_wire = true;
                      return next(std::move(request), call);
                    });
}

CallWatch::News CallWatch::take(Time until) {
  std::unique_lock lock(mutex_);
  waiting_ = true;
  changed_.wait_until(lock, until, [this] { return something_; });
  waiting_ = something_ = false;
  News taken = std::move(news_);
  news_ = News();
  news_.finish_up = taken.finish_up;
  news_.stop = taken.stop;
  taken.in_wait = in_wait_;
  judging_ = taken.to_judge;
  return taken;
}

}  // namespace httpretry::batch
