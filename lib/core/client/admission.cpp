#include "admission.hpp"

#include "lib/core/chain/detail/attempt_headers.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/curl/loop.hpp"

namespace httpretry::detail {

// Joins the queue of the origin, and is granted at once if the limits allow it.
Admission::Permit::Permit(Admission& admission, std::string_view origin) : admission_(admission) {
  // Allocates the node of the queue before the mutex is locked. Its key is set below.
  Queue one_entry{{0, this}};
  auto node = one_entry.extract(one_entry.begin());
  const std::lock_guard lock(admission_.mutex_);
  origin_ = &*admission_.origins_.try_emplace(std::string(origin)).first;
  node.key() = arrival_ = ++admission_.arrivals_;
  origin_->second.queue.insert(std::move(node));
  admission_.admit(origin_->second);
}

// Gives up an exchange that was granted, or the place in a queue.
Admission::Permit::~Permit() {
  const std::lock_guard lock(admission_.mutex_);
  auto& origin = origin_->second;
  if (is_granted()) --admission_.in_flight_;
  if (is_granted() || admission_.open_.erase(arrival_) > 0) {
    --origin.taken;
  } else {
    origin.queue.erase(arrival_);
  }
  admission_.admit(origin);
  if (origin.taken == 0) admission_.origins_.erase(admission_.origins_.find(origin_->first));
}

Admission::Admission(int in_all, int per_origin, Transport* transport)
    : in_all_(in_all), per_origin_(per_origin), transport_(transport) {}

// Grants permits in two steps: a permit moves from the queue of its origin to `open_` if the limit
// per origin allows it, and is granted from there if the total limit does.
void Admission::admit(Origin& origin) {
  while (!origin.queue.empty() && (per_origin_ == 0 || origin.taken < per_origin_)) {
    ++origin.taken;
    open_.insert(origin.queue.extract(origin.queue.begin()));
  }
  while (!open_.empty() && (in_all_ == 0 || in_flight_ < in_all_)) {
    ++in_flight_;
    auto& permit = *open_.begin()->second;
    open_.erase(open_.begin());
    permit.happen();
  }
}

// Returns MaxInFlight if one more exchange would have to wait for either limit.
QueuedBy Admission::would_hold(const Request& request, const Call& /*call*/) {
  const auto& url = request.parsed_url();
  if (!url) return QueuedBy::Nothing;
  const std::lock_guard lock(mutex_);
  const auto found = origins_.find(url->origin());
  const bool origin_full =
      per_origin_ != 0 && found != origins_.end() && found->second.taken >= per_origin_;
  const bool full = in_all_ != 0 && (in_flight_ >= in_all_ || !open_.empty());
  return origin_full || full ? QueuedBy::MaxInFlight : QueuedBy::Nothing;
}

// Carries out one exchange within the client's limits on requests in flight: waits for a permit,
// holds it until the transport returns the outcome, and records the wait in the outcome. Returns an
// error, and sends nothing, if the wait is canceled or ends at the deadline, or if a hedge (a
// second send of a slow attempt) would have to wait.
Task<Outcome> Admission::send(Request request, Call& call) {
  auto& scheduler = call.scheduler();
  // Without a transport in the client's options, each call runs on a Loop, which is a Transport.
  auto& transport = transport_ != nullptr ? *transport_ : static_cast<Loop&>(scheduler);
  const auto& url = request.parsed_url();
  if (!url) {  // without an origin there is no limit to check; the transport reports the bad URL
    Outcome error = co_await transport.send(std::move(request), call);
    co_return error;
  }
  const auto arrived_at = scheduler.now();
  // Joins the queue of the origin. The permit is granted now if the limits allow it.
  Permit permit(*this, url->origin());
  // `racing_send` is notified of the progress of this send, which decides when the attempt's next
  // hedge goes out. It is nullptr if the attempt may not be hedged.
  auto* const racing_send = Call::State::racing(call);
  if (racing_send != nullptr) racing_send->on_gate_reached(*this);
  if (!permit.is_granted()) {
    if (racing_send != nullptr) {
      racing_send->on_wait();
      if (racing_send->is_hedge()) co_return Error(Errc::Canceled, "a hedge does not wait");
    }
    // The deadlines of the call and of the request limit the wait. The attempt's timeout does not.
    const auto deadline =
        std::min(Call::State::admission_deadline(call), call.limits(request).respond_by);
    const bool not_canceled = co_await permit.wait(scheduler, deadline, call.stop());
    // A stop takes precedence over a grant at the same time.
    const bool stopped = call.stop().stop_requested();
    if (stopped || !permit.is_granted()) {
      const bool canceled = stopped || !not_canceled;  // otherwise the deadline came
      auto error = wait_ended(canceled, "admission to " + std::string(url->origin()));
      error.exchange.timings.queued = scheduler.now() - arrived_at;
      error.exchange.queued_by = QueuedBy::MaxInFlight;
      co_return error;
    }
  }
  if (racing_send != nullptr) racing_send->on_admitted();
  const auto waited = scheduler.now() - arrived_at;
  // The wait does not shorten the attempt: its deadline moves, at most to the call's deadline.
  Call admitted_call = Call::State::admitted_after(call, waited);
  add_attempt_headers(request, admitted_call);
  Outcome outcome = co_await transport.send(std::move(request), admitted_call);
  auto& exchange = exchange_of(outcome);
  exchange.timings.queued = waited;
  if (waited > Duration::zero()) exchange.queued_by = QueuedBy::MaxInFlight;
  co_return outcome;
}

}  // namespace httpretry::detail
