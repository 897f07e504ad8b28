#include "shared_scope.hpp"

#include "lib/core/base/saturating.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {

ConcurrencyPolicy with_max(ConcurrencyPolicy policy, int max) {
  policy.max = max;
  policy.min = std::min(policy.min, max);
  policy.initial = std::min(policy.initial, max);
  return policy;
}

// Returns the limits that one of `workers` processes keeps by itself while the server that they
// share is away, so that all of them together stay within the policy: 1/`workers` of each rate and
// its burst, of the sends in flight, and of the requests that a breaker needs before it judges.
// Each number is at least 1, so that every process can go on.
GuardPolicy share_of(GuardPolicy policy, int workers) {
  const auto divide = [workers](RatePolicy& rate) {
    // The same number of requests in a longer time. A month for each of thousands of workers would
    // overflow.
    constexpr Duration kLongest = std::chrono::hours(24 * 365 * 10);
    const Duration longer = saturating::times(static_cast<std::uint64_t>(workers), rate.per);
    rate.per = std::max(rate.per, std::min(longer, kLongest));
    rate.burst = std::max<std::int64_t>(rate.burst / workers, 1);
  };
  if (auto& rate = policy.rate) {
    divide(*rate);
    std::ranges::for_each(rate->further, divide);
  }
  if (auto& slots = policy.concurrency) {
    slots = with_max(*slots, std::max(slots->max / workers, 1));
  }
  // A breaker of kind Share, which refuses a share of the requests, is never common to processes,
  // so its numbers are those of each process already.
  if (auto& breaker = policy.breaker; breaker && breaker->kind != BreakerPolicy::Kind::Share) {
    breaker->min_requests = std::max(breaker->min_requests / workers, 1);
  }
  return policy;
}

BudgetPolicy share_of(BudgetPolicy policy, int workers) {
  policy.capacity = std::max<std::int64_t>(policy.capacity / workers, 1);
  policy.min_per_second /= workers;
  return policy;
}

// --- TokensAhead ---

Time TokensAhead::ready_at() const {
  return batches_.empty() ? ask_again_ : batches_.front().first;
}

// Begins a new slot of 100 ms (kAhead) if the current one has ended.
void TokensAhead::advance(Time now) {
  const auto current_slot = now.time_since_epoch() / RedisState::kAhead;
  if (current_slot <= slot_) return;
  used_before_ = current_slot == slot_ + 1 ? used_ : 0;
  used_ = 0;
  slot_ = current_slot;
}

void TokensAhead::take(Time now) {
  advance(now);
  ++used_;
  auto& batch = batches_.front();
  batch.first += batch.each;
  if (--batch.count == 0) batches_.pop_front();
}

std::int64_t TokensAhead::count() const {
  std::int64_t sum = 0;
  for (const auto& batch : batches_) sum += batch.count;
  return sum;
}

// Returns how many tokens to request now, or 0 to send no query. The target is what sends wait for,
// plus as many tokens as were used in the last 100 ms.
std::int64_t TokensAhead::wanted(const RatePolicy& policy, int waiting, Time now) {
  advance(now);
  if (!query.can_start(now) || now < ask_again_) return 0;
  // A process keeps at most the tokens that the rate gives in kAhead. A slow rate gives none in
  // that time, and then the process takes one at a time, only if a send waits.
  const auto periods = std::chrono::duration<double>(RedisState::kAhead) / policy.per;
  const auto most = static_cast<std::int64_t>(periods * static_cast<double>(policy.requests));
  const auto ahead = std::min(std::max(used_, used_before_), most);
  const auto target = std::min<std::int64_t>(ahead + waiting, std::max<std::int64_t>(most, 1));
  // Refills when half is used, so that not every send makes a query.
  const auto token_count = count();
  return 2 * token_count > target ? 0 : target - token_count;
}

void TokensAhead::on_reply(const RedisState::Tokens& tokens, Time now) {
  if (!query.on_reply(tokens.away, now)) return;
  ask_again_ = tokens.count > 0 ? Time{} : tokens.ask_again;
  if (tokens.count > 0) batches_.push_back({tokens.count, tokens.first, tokens.each});
}

void TokensAhead::forget_stale_reply(Time now) {
  if (now - query.started_at() >= std::chrono::seconds(1)) ask_again_ = Time();
}

std::int64_t TokensAhead::take_unused(Time now) {
  advance(now);
  return used_ > 0 || used_before_ > 0 ? 0 : take_all();
}

std::int64_t TokensAhead::take_all() {
  const auto unused = count();
  batches_.clear();
  return unused;
}

// --- ReservedTokens ---

bool reserves_per_send(const RatePolicy& policy) {
  return policy.counts == RatePolicy::Counts::Cost || !policy.further.empty();
}

namespace {

// Returns what this number of sends, which cost `cost` together, take from the policy's rate and
// from each further one.
RedisState::Amounts amounts_of(const RatePolicy& policy, std::int64_t number, std::int64_t cost) {
  RedisState::Amounts amounts;
  const auto add = [&](const RatePolicy& rate) {
    amounts.push_back(rate.counts == RatePolicy::Counts::Cost ? cost : number);
  };
  add(policy);
  std::ranges::for_each(policy.further, add);
  return amounts;
}

}  // namespace

bool ReservedTokens::has_some() const {
  return std::ranges::any_of(amounts_, [](std::int64_t amount) { return amount > 0; });
}

ReservedTokens::Amounts ReservedTokens::missing(const RatePolicy& policy, std::int64_t cost) const {
  auto missing = amounts_of(policy, /*number=*/1, cost);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const auto reserved = i < amounts_.size() ? amounts_[i] : 0;
    missing[i] = std::max<std::int64_t>(missing[i] - reserved, 0);
  }
  return missing;
}

bool ReservedTokens::cover(const RatePolicy& policy, std::int64_t cost) const {
  return std::ranges::all_of(missing(policy, cost),
                             [](std::int64_t amount) { return amount == 0; });
}

void ReservedTokens::take(const RatePolicy& policy, std::int64_t cost) {
  const auto taken = amounts_of(policy, /*number=*/1, cost);
  for (std::size_t i = 0; i < taken.size() && i < amounts_.size(); ++i) amounts_[i] -= taken[i];
}

ReservedTokens::Amounts ReservedTokens::usable(const RatePolicy& policy,
                                               const guard::SendsAhead& waiting) const {
  auto usable = amounts_of(policy, waiting.number, waiting.cost);
  for (std::size_t i = 0; i < usable.size(); ++i) {
    usable[i] = std::min(usable[i], i < amounts_.size() ? amounts_[i] : 0);
  }
  return usable;
}

ReservedTokens::Amounts ReservedTokens::start_query(const RatePolicy& policy, Amounts wanted,
                                                    bool gives_back, Time now) {
  query.start(now);
  // After a policy was reloaded, the number of its rates may differ.
  amounts_.resize(1 + policy.further.size());
  requested_ = std::move(wanted);
  Amounts given_back(amounts_.size());
  if (gives_back) std::swap(given_back, amounts_);
  ready_before_ = gives_back ? ready_at_ : kNever;
  return given_back;
}

void ReservedTokens::on_reply(const RedisState::Reservation& reservation, Time now) {
  if (!query.on_reply(reservation.away, now)) return;
  // All tokens may be used when the last ones may. If the query has exchanged them, they may still
  // be used at their earlier time.
  ready_at_ = has_some() ? std::max(ready_at_, reservation.ready_at)
                         : std::min(ready_before_, reservation.ready_at);
  amounts_.resize(std::max(amounts_.size(), requested_.size()));
  for (std::size_t i = 0; i < requested_.size(); ++i) amounts_[i] += requested_[i];
}

// --- SlotsHeld ---

bool SlotsHeld::should_query(int wanted, Time now) const {
  return wanted > granted && query.can_start(now) && now >= may_ask_at;
}

void SlotsHeld::start_query(int wanted, Time now) {
  query.start(now);
  may_ask_at = now + kAskAgain;
  wanted_ = wanted;
  granted = std::min(granted, wanted);
}

void SlotsHeld::on_reply(const RedisState::Slots& slots, Time now) {
  if (!query.on_reply(slots.away, now)) return;
  // A later query may have requested fewer.
  granted = std::min(slots.granted, wanted_);
  contended = slots.contended;
}

// --- AdaptiveSends ---

// While a rate is in force, uses a send that the last reply has granted, or counts the send as
// waiting.
Duration AdaptiveSends::take(Time now) {
  if (!limited_) return {};
  if (granted_ > 0) {
    --granted_;
    return {};
  }
  ++sends_.wanted;
  // At least 2 ms, so that the send does not spin until the reply arrives.
  return std::max<Duration>(ask_again_ - now, std::chrono::milliseconds(2));
}

void AdaptiveSends::on_attempt_ended(bool throttled) {
  ++sends_.ended;
  if (throttled) ++sends_.throttled;
}

bool AdaptiveSends::should_query(Time now) const {
  if (!query.can_start(now)) return false;
  return sends_.throttled > 0 || (sends_.wanted > 0 && now >= ask_again_);
}

RedisState::Sends AdaptiveSends::start_query(Time now) {
  query.start(now);
  return std::exchange(sends_, {});
}

void AdaptiveSends::on_reply(const RedisState::SendsView& view, Time now) {
  if (!query.on_reply(view.away, now)) return;
  limited_ = view.limited;
  // Sends that were granted before and not used lapse, and sends that wait will call `take` again.
  granted_ = view.granted;
  sends_.wanted = 0;
  ask_again_ = view.granted > 0 ? now : view.ask_again;
}

// --- CircuitVotes ---

guard::Hold CircuitVotes::hold(Time now) const {
  const guard::Hold until_reply{QueuedBy::SharedState, now + kRecheckAfter};
  if (!known_) return until_reply;
  if (view_.state == Circuit::Closed) return {};
  if (view_.state == Circuit::Open && now < view_.until) return {QueuedBy::Circuit, view_.until};
  if (has_probe_) return {};
  return now < no_probe_until_ ? guard::Hold{QueuedBy::Circuit, no_probe_until_} : until_reply;
}

std::uint32_t CircuitVotes::take_probe() {
  if (view_.state == Circuit::Closed || !std::exchange(has_probe_, false)) return 0;
  return ++probe_number_;
}

void CircuitVotes::give_back(const SendGrant& grant) {
  if (grant.generation != generation()) return;
  if (grant.probe != 0 && grant.probe == probe_number_) has_probe_ = true;
}

// Returns whether the end of a send counts as a vote on the state that the circuit has now.
bool CircuitVotes::may_vote(const SendGrant& grant) const {
  // Each change of the state begins a new generation. A send of an earlier one does not count.
  if (grant.generation != generation()) return false;
  // Sends that are no probes may also go out while the circuit is not closed, if the breaker
  // applies only to retries. These do not count.
  const bool is_probe = grant.probe != 0;
  if (!is_probe) return view_.state == Circuit::Closed;
  // A probe tests whether the server works again. After probe_timeout, this process is granted
  // another one, and the late one does not count. The other one has been sent, with the next
  // number, or not yet (has_probe_).
  return grant.probe == probe_number_ && !has_probe_;
}

// Counts how a send ended as a vote for the circuit breaker that all processes share. `votes_`
// collects the votes of this process until they are sent to the remote state, the Redis server.
// Returns true if they should be sent at once, because they may open or close the circuit. Returns
// false if they can wait, or if this send does not count.
bool CircuitVotes::vote(const BreakerPolicy& policy, const SendGrant& grant, const SendEnd& end) {
  if (!may_vote(grant)) return false;
  // The pause that the called server asked for with this failure. Zero if it asked for none, or if
  // the send succeeded. If these votes open the circuit, it stays open at least that long.
  server_delay_ = end.failed ? end.server_delay : Duration{};
  const bool slow = end.took > policy.slow_after;
  const bool is_probe = grant.probe != 0;
  if (is_probe) {
    const bool probe_failed = end.failed || slow;
    ++(probe_failed ? votes_.failed_probes : votes_.good_probes);
    return true;
  }
  votes_.counts += {.all = 1, .good = end.failed ? 0U : 1U, .slow = slow ? 1U : 0U};
  const int failed_in_a_row = count_failures_in_a_row(end.failed);
  // sum_with_votes() has the sends of all processes in the window, including these.
  return guard::too_many_failed(policy, sum_with_votes(), failed_in_a_row);
}

// Counts a send, which votes_.counts already includes, in the rows of failures. Returns how many
// sends have failed in a row up to this one. The remote state knows only the row before these
// votes. `leading`, the failures at the beginning of the votes, lengthen that row, and `trailing`,
// those at their end, may begin the next one.
int CircuitVotes::count_failures_in_a_row(bool failed) {
  const bool only_failures = votes_.counts.good == 0;
  if (only_failures) ++votes_.leading;
  votes_.trailing = failed ? votes_.trailing + 1 : 0;
  return votes_.trailing + (only_failures ? view_.failed_in_a_row : 0);
}

void CircuitVotes::open_until(Time until) {
  known_ = true;
  view_.state = Circuit::Open;
  view_.until = until;
  ++view_.generation;
  votes_ = {};
}

guard::Counts CircuitVotes::sum_with_votes() const {
  auto sum = view_.counts;
  return sum += votes_.counts;
}

bool CircuitVotes::has_votes() const {
  return votes_.counts.all > 0 || votes_.good_probes > 0 || votes_.failed_probes > 0;
}

RedisState::Votes CircuitVotes::start_query(const BreakerPolicy& policy, bool wants_probe,
                                            double unit_random, Time now) {
  auto votes = std::exchange(votes_, {});
  votes.generation = view_.generation;
  votes.wants_probe = wants_probe;
  // If these votes open the circuit, it stays open for the delay of the next opening in a row.
  const int opening = view_.openings + 1;
  const auto previous_delay = opening == 1 ? Duration() : open_for_;
  open_for_ = delay(policy.open_for, opening, previous_delay, unit_random);
  // A server may have asked for a longer pause.
  votes.open_for = std::max(open_for_, server_delay_);
  query.start(now);
  probe_requested_ = wants_probe;
  return votes;
}

// Applies the view of a reply. If another process has the probe that was requested, waits a moment
// before the next request.
bool CircuitVotes::on_reply(const RedisState::CircuitView& view, Time now) {
  const bool requested_probe = std::exchange(probe_requested_, false);
  if (!query.on_reply(view.away, now)) return false;
  known_ = true;
  const bool changed = update(view);
  view_ = view;
  if (view.probe) has_probe_ = true;
  if (requested_probe && !view.probe) no_probe_until_ = now + std::chrono::milliseconds(250);
  return changed;
}

bool CircuitVotes::update(const RedisState::CircuitView& view) {
  if (view.generation == view_.generation) return false;
  votes_ = {};
  has_probe_ = false;
  no_probe_until_ = {};
  const bool changed = view.state != view_.state;
  view_ = view;
  return changed;
}

}  // namespace httpretry::fleet
