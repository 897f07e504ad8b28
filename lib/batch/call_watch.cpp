#include "lib/batch/call_watch.hpp"

#include <algorithm>
#include <iterator>

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
  mine->flight->on_wire = false;
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

void CallWatch::on_wire(Flight& flight) {
  const std::lock_guard lock(mutex_);
  flight.on_wire = true;
}

std::vector<const Flight*> CallWatch::kept_of(const std::vector<const Flight*>& flights) {
  const std::lock_guard lock(mutex_);
  std::vector<const Flight*> kept;
  std::ranges::copy_if(flights, std::back_inserter(kept),
                       [](const Flight* flight) { return !flight->in_wait && !flight->on_wire; });
  return kept;
}

bool CallWatch::asked_to_end() {
  const std::lock_guard lock(mutex_);
  return news_.finish_up;
}

MiddlewarePtr watched_sends(std::shared_ptr<CallWatch> watch) {
  return middleware(
      "sends of the run",
      [watch = std::move(watch)](Request request, Call& call, Next next) -> Task<Outcome> {
        if (const auto* mine = call.get<FlightOfCall>()) watch->on_wire(*mine->flight);
        return next(std::move(request), call);
      });
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
