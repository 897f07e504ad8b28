#include "admission.hpp"

#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/curl/loop.hpp"

namespace httpretry::detail {

Admission::Permit::Permit(Admission& admission, std::string_view origin) : admission_(admission) {
  Queue own{{0, this}};
  auto node = own.extract(own.begin());
  const std::lock_guard lock(admission_.mutex_);
  origin_ = &*admission_.origins_.try_emplace(std::string(origin)).first;
  node.key() = arrival_ = ++admission_.arrivals_;
  origin_->second.queue.insert(std::move(node));
  admission_.admit(origin_->second);
}

Admission::Permit::~Permit() {
  const std::lock_guard lock(admission_.mutex_);
  auto& origin = origin_->second;
  if (happened()) --admission_.in_flight_;
  if (happened() || admission_.open_.erase(arrival_) > 0) {
    --origin.taken;
  } else {
    origin.queue.erase(arrival_);
  }
  admission_.admit(origin);
  if (origin.taken == 0) admission_.origins_.erase(admission_.origins_.find(origin_->first));
}

Admission::Admission(int in_all, int per_origin, Transport* transport)
    : in_all_(in_all), per_origin_(per_origin), transport_(transport) {}

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

Task<Outcome> Admission::send(Request request, Call& call) {
  auto& scheduler = call.scheduler();
  auto& transport = transport_ != nullptr ? *transport_ : static_cast<Loop&>(scheduler);
  const auto& url = request.parsed_url();
  if (!url) {  // the transport returns the error
    Outcome refused = co_await transport.send(std::move(request), call);
    co_return refused;
  }
  const auto since = scheduler.now();
  Permit permit(*this, url->origin());
  auto* const racing = Call::State::racing(call);
  if (racing != nullptr) racing->passes(*this);
  if (!permit.happened()) {
    if (racing != nullptr) {
      racing->waits();
      if (racing->is_hedge()) co_return Error(Errc::Canceled, "a hedge does not wait");
    }
    const auto limit =
        std::min(Call::State::admission_deadline(call), call.limits(request).respond_by);
    const bool waited_out = co_await permit.wait(scheduler, limit, call.stop());
    if (call.stop().stop_requested() || !permit.happened()) {
      auto error = wait_ended(!waited_out || call.stop().stop_requested(),
                              "admission to " + std::string(url->origin()));
      error.exchange.timings.queued = scheduler.now() - since;
      error.exchange.queued_by = QueuedBy::MaxInFlight;
      co_return error;
    }
  }
  if (racing != nullptr) racing->admitted();
  const auto waited = scheduler.now() - since;
  Call admitted = Call::State::admitted_after(call, waited);
  Outcome outcome = co_await transport.send(std::move(request), admitted);
  auto& exchange = exchange_of(outcome);
  exchange.timings.queued = waited;
  if (waited > Duration::zero()) exchange.queued_by = QueuedBy::MaxInFlight;
  co_return outcome;
}

}  // namespace httpretry::detail
