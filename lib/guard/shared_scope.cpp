#include "shared_scope.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::guard {

RatePolicy share_of(RatePolicy policy, int workers) {
  policy.per = policy.per * workers;
  policy.burst = std::max<std::int64_t>(policy.burst / workers, 1);
  return policy;
}

ConcurrencyPolicy share_of(ConcurrencyPolicy policy, int workers) {
  policy.max = std::max(policy.max / workers, 1);
  policy.min = std::min(policy.min, policy.max);
  policy.initial = std::min(policy.initial, policy.max);
  return policy;
}

BreakerPolicy share_of(BreakerPolicy policy, int workers) {
  policy.min_requests = std::max(policy.min_requests / workers, 1);
  return policy;
}

// --- TokensAhead ---

Time TokensAhead::ready_at(Time now) const {
  if (!batches_.empty()) return batches_.front().first;
  return std::max(ask_again_, now + kAnswerWithin);
}

void TokensAhead::advance(Time now) {
  const auto slot = now.time_since_epoch() / SharedState::kAhead;
  if (slot <= slot_) return;
  used_before_ = slot == slot_ + 1 ? used_ : 0;
  used_ = 0;
  slot_ = slot;
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

std::int64_t TokensAhead::wanted(const RatePolicy& policy, int waiting, Time now) {
  advance(now);
  if (asked_ || now < ask_again_) return 0;
  // What the rate gives in that time is the most that one process keeps.
  const auto seconds = std::chrono::duration<double>(SharedState::kAhead) / policy.per;
  const auto most = std::max<std::int64_t>(
      static_cast<std::int64_t>(seconds * static_cast<double>(policy.requests)), 1);
  const auto target = std::min(std::max(used_, used_before_) + waiting, most);
  const auto have = count();
  return 2 * have > target ? 0 : target - have;
}

void TokensAhead::got(const SharedState::Tokens& tokens) {
  asked_ = false;
  ask_again_ = tokens.count > 0 ? Time{} : tokens.ask_again;
  if (tokens.count > 0) batches_.push_back({tokens.count, tokens.first, tokens.each});
}

std::int64_t TokensAhead::give_back(Time now) {
  advance(now);
  if (used_ > 0 || used_before_ > 0) return 0;
  const auto unused = count();
  batches_.clear();
  return unused;
}

// --- SlotsHeld ---

bool SlotsHeld::asks(int wanted, Time now) const {
  return !asked_ && wanted > granted_ && now >= ask_again_;
}

void SlotsHeld::asked(Time now) {
  asked_ = true;
  ask_again_ = now + kAskAgain;
}

void SlotsHeld::got(const SharedState::Slots& slots) {
  asked_ = false;
  granted_ = slots.granted;
  contended_ = slots.contended;
}

// --- CircuitVotes ---

CircuitVotes::Answer CircuitVotes::ask(Time now) const {
  using State = SharedState::Circuit;
  if (view_.state == State::Closed) return {true, false, now};
  if (view_.state == State::Open && now < view_.until) return {false, false, view_.until};
  if (probe_) return {true, false, now};
  if (probe_asked_) return {false, true, now + kAnswerWithin};
  if (now < no_probe_until_) return {false, false, no_probe_until_};
  return {false, true, now + kAnswerWithin};
}

Ticket CircuitVotes::take() {
  Ticket ticket;
  ticket.generation = static_cast<std::uint32_t>(view_.generation);
  ticket.probe = view_.state != SharedState::Circuit::Closed && probe_ ? 1 : 0;
  if (ticket.probe != 0) probe_ = false;
  return ticket;
}

void CircuitVotes::give_back(const Ticket& ticket) {
  if (ticket.probe != 0 && ticket.generation == static_cast<std::uint32_t>(view_.generation)) {
    probe_ = true;
  }
}

bool CircuitVotes::vote(const BreakerPolicy& policy, const Ticket& ticket, const Vote& vote) {
  if (ticket.generation != static_cast<std::uint32_t>(view_.generation)) return false;
  server_delay_ = vote.failed ? vote.server_delay : Duration{};
  const bool slow = vote.took > policy.slow_after;
  if (ticket.probe != 0) {
    ++(vote.failed || slow ? votes_.failed_probes : votes_.good_probes);
    return true;
  }
  ++votes_.all;
  if (!vote.failed) ++votes_.good;
  if (slow) ++votes_.slow;
  votes_.trailing = vote.failed ? votes_.trailing + 1 : 0;
  if (vote.failed && votes_.good == 0) ++votes_.leading;
  return too_many_failed(policy);
}

bool CircuitVotes::too_many_failed(const BreakerPolicy& policy) const {
  const auto row = votes_.good == 0 ? view_.failed_in_a_row + votes_.trailing : votes_.trailing;
  if (policy.failures > 0 && row >= policy.failures) return true;
  if (policy.kind != BreakerPolicy::Kind::Ratio) return false;
  const auto all = view_.all + votes_.all;
  const auto failed = all - view_.good - votes_.good;
  if (all < policy.min_requests) return false;
  const auto reaches = [all](std::int64_t part, double ratio) {
    return static_cast<double>(part) >= ratio * static_cast<double>(all);
  };
  return reaches(failed, policy.failure_ratio) ||
         (policy.slow_after != kForever && reaches(view_.slow + votes_.slow, policy.slow_ratio));
}

bool CircuitVotes::has_votes() const {
  return votes_.all > 0 || votes_.good_probes > 0 || votes_.failed_probes > 0;
}

SharedState::Votes CircuitVotes::tell(const BreakerPolicy& policy, bool wants_probe,
                                      double unit_random) {
  auto votes = std::exchange(votes_, {});
  votes.generation = view_.generation;
  votes.wants_probe = wants_probe;
  const int opening = view_.openings + 1;
  const auto before = opening == 1 ? Duration() : open_for_;
  open_for_ = delay(policy.open_for, opening, before, unit_random);
  votes.open_for = std::max(open_for_, server_delay_);
  asked_ = true;
  probe_asked_ = wants_probe;
  return votes;
}

void CircuitVotes::got(const SharedState::CircuitView& view, Time now) {
  if (view.generation != view_.generation) {
    votes_ = {};
    probe_ = false;
    no_probe_until_ = {};
  }
  if (view.probe) probe_ = true;
  if (probe_asked_ && !view.probe) no_probe_until_ = now + std::chrono::milliseconds(250);
  view_ = view;
  asked_ = probe_asked_ = false;
}

void CircuitVotes::lost() { asked_ = probe_asked_ = false; }

bool CircuitVotes::heard(const SharedState::CircuitView& view) {
  if (view.generation == view_.generation) return false;
  votes_ = {};
  probe_ = false;
  no_probe_until_ = {};
  view_ = view;
  return true;
}

}  // namespace httpretry::guard
