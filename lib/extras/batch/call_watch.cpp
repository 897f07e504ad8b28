#include "call_watch.hpp"

#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/flow/detail/run_queue.hpp"

#include <httpretry/flow/detail/posted.hpp>

#include <algorithm>

namespace httpretry::batch {
namespace {

// Calls `wake` after the loop of this thread has resumed everything that is ready now.
httpretry::detail::PostedCoroutine wake_in_next_turn(std::shared_ptr<CallWatch> watch) {
  watch->wake();
  co_return;
}

}  // namespace

void CallWatch::attempt_started(const Call& call, const Request& request, int /*number*/) noexcept {
  const auto* const link = call.get<FlightOfCall>();
  if (link == nullptr) return;
  link->flight->attempt_began = call.scheduler().now();
  if (!link->flight->in_wait && down_hosts_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  set_in_wait(*link->flight, /*waits=*/false);
  if (down_hosts_) note_send(*link->flight, request);
}

// Updates the rule for outages with the attempt. If the call will retry, notes that it waits
// between two attempts, so that its place is free for another call.
void CallWatch::attempt_ended(const Call& call, const Request& request,
                              const Attempt& attempt) noexcept {
  const auto* const link = call.get<FlightOfCall>();
  if (link == nullptr || (!attempt.retried && down_hosts_ == nullptr)) return;
  auto& flight = *link->flight;
  std::unique_lock lock(mutex_);
  if (down_hosts_) note_attempt(flight, request, attempt);
  if (attempt.retried) {
    flight.on_wire = false;
    set_in_wait(flight, /*waits=*/true);
  }
  notify_run(lock);
}

void CallWatch::set_in_wait(Flight& flight, bool waits) {
  if (flight.in_wait.exchange(waits) == waits) return;
  if (waits) {
    ++in_wait_;
  } else {
    --in_wait_;
  }
}

void CallWatch::note_send(Flight& flight, const Request& request) {
  const auto& url = request.parsed_url();
  if (!url || !flight.sends_to.empty()) return;
  flight.sends_to = url->origin();
  outages_.send_began(flight.sends_to);
}

void CallWatch::note_send_ended(Flight& flight) {
  if (!flight.sends_to.empty()) outages_.send_ended(flight.sends_to);
  flight.sends_to.clear();
}

// Notes what an attempt that has ended shows about its host. An outage of a host begins with a
// failure that a call will retry. It ends with a response that shows that the host works, or when
// such a call gives up, which note_end() notes. Until then, a few calls retry on behalf of the
// others, which wait.
void CallWatch::note_attempt(Flight& flight, const Request& request, const Attempt& attempt) {
  const auto& url = request.parsed_url();
  // If several sends of an attempt raced, the losers are reported first. Only the last one, whose
  // outcome the call used, counts.
  if (!url || attempt.race == Race::Lost) return;
  const auto host = url->origin();
  note_send_ended(flight);
  // Even a permanent failure, such as a 404, shows that the host works, if it has a status. Without
  // one, there was no response.
  const bool host_works = attempt.cls == Class::Success || attempt.cls == Class::Pending ||
                          (attempt.cls == Class::Permanent && attempt.status != 0);
  if (host_works) {
    flight.retry_host.clear();
    if (outages_.succeeded(host)) down_hosts_->set(host, /*down=*/false);
  } else if (attempt.retried) {
    flight.retry_host = host;
    outages_.will_retry(host, flight);
  }
}

// Notes what the end of a call shows about the host at which it retried: the host is down if the
// call gave up there.
void CallWatch::note_end(Flight& flight, const Outcome& outcome) {
  note_send_ended(flight);
  const auto host = std::exchange(flight.retry_host, {});
  if (host.empty()) return;
  const auto& history = history_of(outcome);
  const auto last_class = history.attempts.empty() ? Class::Permanent : history.attempts.back().cls;
  // A call that was canceled, or that lacked a descriptor, says nothing about the host.
  const bool gave_up = history.stop_reason != Reason::Canceled && last_class != Class::Permanent;
  if (outages_.ended(host, flight, gave_up)) down_hosts_->set(host, /*down=*/true);
}

std::shared_ptr<const Outages::Change> CallWatch::others_retry(const Request& request,
                                                               Flight& flight) {
  const auto& url = request.parsed_url();
  if (!url) return nullptr;
  std::unique_lock lock(mutex_);
  auto change = outages_.others_retry(url->origin(), flight);
  set_in_wait(flight, change != nullptr);
  if (change) notify_run(lock);
  return change;
}

// Notes that guards() pauses a host, so that the thread of `run` starts no more jobs of that host.
void CallWatch::paused(const Call& call, const PauseBegun& pause) noexcept {
  const auto* const link = call.get<FlightOfCall>();
  // The key of a host is its origin. A key with a space is a scope within a host, or of a policy;
  // guards() itself holds back the calls of such a scope.
  if (link == nullptr || pause.key.find(' ') != std::string_view::npos) return;
  auto& flight = *link->flight;
  const bool redirected = pause.key != call.origin();
  std::unique_lock lock(mutex_);
  if (!redirected) flight.paused_host = true;
  // `job.host` names the queue of the job's host, which several hosts may share.
  updates_.holds.push_back({redirected ? std::string(pause.key) : flight.job.host, pause.until});
  updates_.needs_judgment = true;
  notify_run(lock);
}

void CallWatch::on_call_begins(Flight& flight) {
  if (down_hosts_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  note_send(flight, flight.prepared.request);
}

// Called on the client's thread that ran the call. Adds the outcome to the updates for the thread
// of Runner::run. Returns a ready call, which the caller must send at once in place of the one that
// ended. Returns nullptr if no call is ready, or if only the thread of `run` may send the next one:
// after a failure, it first decides whether the host must be paused or the run must end.
Flight* CallWatch::on_call_ended(Flight& flight, Outcome outcome) {
  const bool success = succeeded(outcome);
  std::unique_lock lock(mutex_);
  set_in_wait(flight, /*waits=*/false);        // the call is no longer between two attempts
  if (down_hosts_) note_end(flight, outcome);  // null: the run has no rule for outages
  updates_.ended.emplace_back(&flight, std::move(outcome));
  updates_.needs_judgment = updates_.needs_judgment || !success;
  Flight* next = nullptr;
  // `judging_` is true while the thread of `run` handles a failure. After `finish_up`, the run
  // starts no more calls.
  const bool may_send = !updates_.needs_judgment && !judging_ && !updates_.finish_up;
  // The thread of `run` sends an unsafe call, which must not be executed twice, because the store
  // must record it first.
  if (may_send && !ready_.empty() && !ready_.front()->prepared.unsafe) {
    next = ready_.front();
    ready_.pop_front();
  }
  notify_run(lock);
  return next;
}

// The calls that are neither ready nor between two attempts count toward `most`.
std::vector<Flight*> CallWatch::send_ready(const std::vector<Flight*>& flights, std::size_t all,
                                           std::size_t most) {
  const std::lock_guard lock(mutex_);
  judging_ = false;
  ready_.insert(ready_.end(), flights.begin(), flights.end());
  std::vector<Flight*> to_send;
  if (updates_.finish_up) return to_send;
  while (!ready_.empty() && all - ready_.size() < most + in_wait_) {
    to_send.push_back(ready_.front());
    ready_.pop_front();
  }
  return to_send;
}

std::vector<Flight*> CallWatch::withdraw(
    const std::function<bool(const Flight&)>& should_withdraw) {
  const std::lock_guard lock(mutex_);
  const auto kept_end =
      std::stable_partition(ready_.begin(), ready_.end(),
                            [&](const Flight* flight) { return !should_withdraw(*flight); });
  std::vector<Flight*> withdrawn(kept_end, ready_.end());
  ready_.erase(kept_end, ready_.end());
  return withdrawn;
}

std::size_t CallWatch::ready() {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}

// Wakes the thread of `run`. Many calls may end in one turn of the loop, and waking the thread
// costs as much as a small request. So the loop does that once, after all of them. May unlock
// `lock`.
void CallWatch::notify_run(std::unique_lock<std::mutex>& lock) {
  has_updates_ = true;
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

void CallWatch::ask(bool Updates::*member) {
  const std::lock_guard lock(mutex_);
  has_updates_ = updates_.*member = true;
  changed_.notify_one();
}

bool CallWatch::is_finishing() {
  const std::lock_guard lock(mutex_);
  return updates_.finish_up;
}

MiddlewarePtr mark_sends_on_wire() {
  return middleware("sends of the run",
                    [](Request request, Call& call, Next next) -> Task<Outcome> {
                      if (const auto* link = call.get<FlightOfCall>()) link->flight->on_wire = true;
                      return next(std::move(request), call);
                    });
}

namespace {

using Change = std::shared_ptr<const Outages::Change>;

// Delays a retry during an outage of its host, while a few other calls retry on its behalf, and
// then sends the request. `change` is the event that ends the outage; after it, another one may
// begin. Also sends when the call is canceled or its time is over, because the transport reports
// that.
Task<Outcome> send_after_outage(Change change, std::shared_ptr<CallWatch> watch, Request request,
                                Call& call, Next next) {
  auto& scheduler = call.scheduler();
  const auto began = scheduler.now();
  // A send may wait until the first of these times, and must have a response by the second.
  const auto limit =
      std::min(Call::State::admission_deadline(call), call.limits(request).respond_by);
  auto& flight = *call.get<FlightOfCall>()->flight;
  bool is_canceled = false;
  while (change && !is_canceled && scheduler.now() < limit) {
    const auto wait = change->wait(scheduler, limit, call.stop());
    is_canceled = !co_await wait;
    // Null unless this call must wait again.
    change = watch->others_retry(request, flight);
  }
  // Like a wait for admission, the delay does not count toward the timeout of the attempt.
  Call admitted = Call::State::admitted_after(call, scheduler.now() - began);
  const auto send = next(std::move(request), admitted);
  Outcome outcome = co_await send;
  co_return outcome;
}

}  // namespace

MiddlewarePtr few_retries_in_outages(std::shared_ptr<CallWatch> watch) {
  return middleware(
      "outages of the run",
      [watch = std::move(watch)](Request request, Call& call, Next next) -> Task<Outcome> {
        const auto* const link = call.get<FlightOfCall>();
        auto change = link != nullptr ? watch->others_retry(request, *link->flight) : nullptr;
        if (!change) return next(std::move(request), call);
        return send_after_outage(std::move(change), watch, std::move(request), call, next);
      });
}

// Returns the updates and clears them, except for the two requests to end the run, which stay in
// effect. Blocks until there are updates, at most until `until`.
CallWatch::Updates CallWatch::take(Time until) {
  std::unique_lock lock(mutex_);
  waiting_ = true;
  changed_.wait_until(lock, until, [this] { return has_updates_; });
  waiting_ = has_updates_ = false;
  Updates taken = std::move(updates_);
  updates_ = Updates();
  updates_.finish_up = taken.finish_up;
  updates_.stop = taken.stop;
  taken.in_wait = in_wait_;
  if (down_hosts_) taken.blocked_hosts = outages_.blocked_hosts();
  judging_ = taken.needs_judgment;  // until send_ready()
  return taken;
}

}  // namespace httpretry::batch
