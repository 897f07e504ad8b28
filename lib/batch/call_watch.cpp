#include "lib/batch/call_watch.hpp"

namespace httpretry::batch {

void CallWatch::attempt_started(const Call& call, const Request& /*request*/,
                                int /*number*/) noexcept {
  const auto* const mine = call.get<FlightOfCall>();
  if (mine == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (std::exchange(mine->flight->in_wait, false)) --in_wait_;
}

void CallWatch::attempt_ended(const Call& call, const Request& /*request*/,
                              const Attempt& attempt) noexcept {
  const auto* const mine = call.get<FlightOfCall>();
  if (mine == nullptr || !attempt.retried) return;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(mine->flight->in_wait, true)) ++in_wait_;
  // The wait of this call binds the others: the server asked for it.
  if (attempt.server_delay && attempt.wait && *attempt.wait > Duration::zero()) {
    const auto until = later(call.scheduler().now(), *attempt.wait);
    news_.holds.push_back({mine->flight->job.host, until});
  }
  something_ = true;
  changed_.notify_one();
}

void CallWatch::ended(Flight& flight, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(flight.in_wait, false)) --in_wait_;
  news_.ended.emplace_back(&flight, std::move(outcome));
  something_ = true;
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

CallWatch::News CallWatch::take(Time until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [this] { return something_; });
  something_ = false;
  News taken = std::move(news_);
  news_ = News();
  news_.finish_up = taken.finish_up;
  news_.stop = taken.stop;
  taken.in_wait = in_wait_;
  return taken;
}

}  // namespace httpretry::batch
