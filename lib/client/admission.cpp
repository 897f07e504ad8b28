#include "admission.hpp"

#include "lib/curl/loop.hpp"
#include "lib/flow/call_state.hpp"

namespace httpretry::detail {

namespace {

template <class Map, class Value>
typename Map::node_type make_node(Value* value) {
  Map map;
  map.emplace(0, value);
  return map.extract(map.begin());
}

}  // namespace

Admission::Permit::Permit(Admission& admission, const std::string& origin)
    : admission_(admission), node_(make_node<Queue>(this)) {
  const std::lock_guard lock(admission_.mutex_);
  admission_.enter(*this, origin);
}

Admission::Permit::~Permit() {
  const std::lock_guard lock(admission_.mutex_);
  admission_.leave(*this);
}

Admission::Admission(int in_all, int per_origin, Transport* transport)
    : in_all_(in_all), per_origin_(per_origin), transport_(transport) {}

bool Admission::has_room(const Origin& origin) const {
  return per_origin_ == 0 || origin.in_flight < per_origin_;
}

void Admission::enter(Permit& permit, const std::string& name) {
  const auto at = origins_.try_emplace(name).first;
  auto& origin = at->second;
  if (origin.name == nullptr) {
    try {
      origin.node = make_node<Open>(&origin);
    } catch (...) {
      origins_.erase(at);
      throw;
    }
    origin.name = &at->first;
  }
  permit.origin_ = &origin;
  permit.arrival_ = ++arrivals_;
  permit.node_.key() = permit.arrival_;
  origin.queue.insert(std::move(permit.node_));
  update_open(origin);
  admit_next();
}

// A permit goes to the next in the queue.
void Admission::leave(Permit& permit) {
  auto& origin = *permit.origin_;
  if (permit.happened()) {
    --in_flight_;
    --origin.in_flight;
  } else {
    origin.queue.erase(permit.arrival_);
  }
  update_open(origin);
  admit_next();
  if (origin.in_flight == 0 && origin.queue.empty()) origins_.erase(origins_.find(*origin.name));
}

void Admission::admit_next() {
  while (!open_.empty() && (in_all_ == 0 || in_flight_ < in_all_)) {
    auto& origin = *open_.begin()->second;
    auto& permit = *origin.queue.begin()->second;
    origin.queue.erase(origin.queue.begin());
    ++origin.in_flight;
    ++in_flight_;
    update_open(origin);
    permit.happen();
  }
}

// The origin may have changed: corrects its entry in `open_`.
void Admission::update_open(Origin& origin) {
  const bool open = has_room(origin) && !origin.queue.empty();
  const auto key = open ? origin.queue.begin()->first : 0;
  if (key == origin.listed_as) return;
  if (origin.listed_as != 0) origin.node = open_.extract(origin.listed_as);
  if (key != 0) {
    origin.node.key() = key;
    open_.insert(std::move(origin.node));
  }
  origin.listed_as = key;
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
  if (!permit.happened()) {
    const auto limit =
        std::min(Call::State::admission_deadline(call), request.options().respond_by);
    const bool waited_out = co_await permit.wait(scheduler, limit, call.stop());
    if (call.stop().stop_requested() || !permit.happened()) {
      auto error =
          wait_ended(!waited_out || call.stop().stop_requested(), "admission to " + url->origin());
      error.exchange.timings.queued = scheduler.now() - since;
      co_return error;
    }
  }
  const auto waited = scheduler.now() - since;
  Call admitted = Call::State::admitted_after(call, waited);
  Outcome outcome = co_await transport.send(std::move(request), admitted);
  exchange_of(outcome).timings.queued = waited;
  co_return outcome;
}

}  // namespace httpretry::detail
