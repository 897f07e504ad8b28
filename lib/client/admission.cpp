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

Admission::Turn::Turn(Admission& admission, const std::string& origin)
    : admission_(admission), place_(make_node<Queue>(this)) {
  const std::lock_guard lock(admission_.mutex_);
  admission_.enter(*this, origin);
}

Admission::Turn::~Turn() {
  const std::lock_guard lock(admission_.mutex_);
  admission_.leave(*this);
}

Admission::Admission(int in_all, int per_origin, Transport* transport)
    : in_all_(in_all), per_origin_(per_origin), transport_(transport) {}

bool Admission::has_room(const Origin& origin) const {
  return per_origin_ == 0 || origin.under_way < per_origin_;
}

void Admission::enter(Turn& turn, const std::string& name) {
  const auto at = origins_.try_emplace(name).first;
  auto& origin = at->second;
  if (origin.name == nullptr) {
    try {
      origin.place = make_node<Open>(&origin);
    } catch (...) {
      origins_.erase(at);
      throw;
    }
    origin.name = &at->first;
  }
  turn.origin_ = &origin;
  turn.arrival_ = ++arrivals_;
  turn.place_.key() = turn.arrival_;
  origin.queue.insert(std::move(turn.place_));
  list(origin);
  admit_next();
}

// The turn that was had goes to the next; the place in the queue is given up.
void Admission::leave(Turn& turn) {
  auto& origin = *turn.origin_;
  if (turn.happened()) {
    --under_way_;
    --origin.under_way;
  } else {
    origin.queue.erase(turn.arrival_);
  }
  list(origin);
  admit_next();
  if (origin.under_way == 0 && origin.queue.empty()) origins_.erase(origins_.find(*origin.name));
}

void Admission::admit_next() {
  while (!open_.empty() && (in_all_ == 0 || under_way_ < in_all_)) {
    auto& origin = *open_.begin()->second;
    auto& turn = *origin.queue.begin()->second;
    origin.queue.erase(origin.queue.begin());
    ++origin.under_way;
    ++under_way_;
    list(origin);
    turn.happen();
  }
}

// Brings `open_` in line with what the origin has become.
void Admission::list(Origin& origin) {
  const bool open = has_room(origin) && !origin.queue.empty();
  const auto key = open ? origin.queue.begin()->first : 0;
  if (key == origin.listed_as) return;
  if (origin.listed_as != 0) origin.place = open_.extract(origin.listed_as);
  if (key != 0) {
    origin.place.key() = key;
    open_.insert(std::move(origin.place));
  }
  origin.listed_as = key;
}

Task<Outcome> Admission::send(Request request, Call& call) {
  auto& scheduler = call.scheduler();
  auto& transport = transport_ != nullptr ? *transport_ : static_cast<Loop&>(scheduler).transport();
  const auto& url = request.parsed_url();
  if (!url) {  // the transport's to complain about
    Outcome refused = co_await transport.send(std::move(request), call);
    co_return refused;
  }
  const auto since = scheduler.now();
  Turn turn(*this, url->origin());
  if (!turn.happened()) {
    const auto limit = std::min(Call::State::admission_deadline(call), request.options().answer_by);
    const bool whole = co_await turn.wait(scheduler, limit, call.stop());
    if (call.stop().stop_requested() || !turn.happened()) {
      auto error =
          wait_ended(!whole || call.stop().stop_requested(), "admission to " + url->origin());
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
