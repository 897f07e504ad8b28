#include "breaker.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

using Kind = BreakerPolicy::Kind;

bool reaches(std::uint32_t part, std::uint32_t all, double ratio) {
  return static_cast<double>(part) >= ratio * static_cast<double>(all);
}

}  // namespace

Time Breaker::held_until(const BreakerPolicy& policy, Time now) const {
  if (policy.kind == Kind::Share || state_ == Circuit::Closed) return now;
  if (state_ == Circuit::Open) return std::max(until_, now);
  if (static_cast<int>(probes_.size()) + good_probes_ < policy.probes) return now;
  auto next = kNever;
  for (const auto& probe : probes_) next = std::min(next, later(probe.sent, policy.probe_timeout));
  return std::max(next, now);
}

Breaker::Answer Breaker::ask(const BreakerPolicy& policy, Time now, double unit_random) {
  if (policy.kind == Kind::Share) return ask_share(policy, now, unit_random);
  if (state_ == Circuit::Closed) return {true, {generation_, 0}, 0};
  if (state_ == Circuit::Open) {
    if (now < until_) return {};
    change_to(Circuit::HalfOpen);
  }
  return ask_to_probe(policy, now);
}

// How the SRE book throttles: https://sre.google/sre-book/handling-overload/
Breaker::Answer Breaker::ask_share(const BreakerPolicy& policy, Time now, double unit_random) {
  const auto counts = window_.sum(now, policy.share_window);
  const auto requests = static_cast<double>(counts.all);
  const auto good = static_cast<double>(counts.good);
  const auto share = std::max(0.0, (requests - policy.k * good) / (requests + 1));
  // Counted when it is asked: a server that hangs is good to nobody.
  ++window_.at(now, policy.share_window).all;
  return {unit_random >= share, {generation_, 0}, share};
}

Breaker::Answer Breaker::ask_to_probe(const BreakerPolicy& policy, Time now) {
  // A probe that never ends must not keep the circuit half-open for ever.
  std::erase_if(probes_, [&](const Probe& one) { return now - one.sent >= policy.probe_timeout; });
  if (static_cast<int>(probes_.size()) + good_probes_ >= policy.probes) return {};
  probes_.push_back({++last_probe_, now});
  return {true, {generation_, last_probe_}, 0};
}

void Breaker::give_back(const Ticket& ticket) {
  if (ticket.generation != generation_) return;
  std::erase_if(probes_, [&](const Probe& one) { return one.number == ticket.probe; });
}

void Breaker::vote(const BreakerPolicy& policy, const Ticket& ticket, const Vote& vote, Time now,
                   double unit_random) {
  if (ticket.generation != generation_) return;
  if (policy.kind == Kind::Share) {
    if (!vote.failed) ++window_.at(now, policy.share_window).good;
    return;
  }
  if (ticket.probe != 0) {
    const auto removed =
        std::erase_if(probes_, [&](const Probe& one) { return one.number == ticket.probe; });
    if (removed > 0) vote_of_probe(policy, vote, now, unit_random);
    return;
  }
  if (state_ != Circuit::Closed) return;
  auto& current = window_.at(now, policy.window);
  ++current.all;
  if (!vote.failed) ++current.good;
  if (vote.took > policy.slow_after) ++current.slow;
  in_a_row_ = vote.failed ? in_a_row_ + 1 : 0;
  if (too_many_failed(policy)) open(policy, vote, now, unit_random);
}

bool Breaker::too_many_failed(const BreakerPolicy& policy) const {
  if (policy.failures > 0 && in_a_row_ >= policy.failures) return true;
  if (policy.kind != Kind::Ratio) return false;
  const auto counts = window_.sum();
  if (counts.all < static_cast<std::uint32_t>(policy.min_requests)) return false;
  return reaches(counts.failed(), counts.all, policy.failure_ratio) ||
         (policy.slow_after != kForever && reaches(counts.slow, counts.all, policy.slow_ratio));
}

void Breaker::vote_of_probe(const BreakerPolicy& policy, const Vote& vote, Time now,
                            double unit_random) {
  if (vote.failed || vote.took > policy.slow_after) return open(policy, vote, now, unit_random);
  if (++good_probes_ < policy.probes) return;
  closed_at_ = now;
  tripped_ = {};
  change_to(Circuit::Closed);
}

void Breaker::open(const BreakerPolicy& policy, const Vote& vote, Time now, double unit_random) {
  // Each whole window without an opening takes one off the row.
  if (state_ == Circuit::Closed && openings_ > 0) {
    const auto quiet = (now - closed_at_) / std::max(policy.window, Duration(1));
    openings_ = static_cast<int>(std::max<std::int64_t>(openings_ - quiet, 0));
  }
  ++openings_;
  tripped_ = state_ == Circuit::Closed ? window_.sum() : Counts{1, 0, 0};
  tripped_in_a_row_ = in_a_row_;
  open_for_ =
      delay(policy.open_for, openings_, openings_ == 1 ? Duration() : open_for_, unit_random);
  change_to(Circuit::Open);
  until_ = later(now, std::max(open_for_, vote.server_delay));
}

void Breaker::open_until(Time until) {
  tripped_ = {};
  change_to(Circuit::Open);
  until_ = until;
}

void Breaker::close() {
  tripped_ = {};
  change_to(Circuit::Closed);
  openings_ = 0;
}

void Breaker::change_to(Circuit state) {
  state_ = state;
  ++generation_;
  in_a_row_ = 0;
  good_probes_ = 0;
  probes_.clear();
  window_.clear();
}

Counts Breaker::counts(const BreakerPolicy& policy, Time now) const {
  return window_.sum(now, policy.kind == Kind::Share ? policy.share_window : policy.window);
}

bool Breaker::idle(const BreakerPolicy& policy, Time now) const {
  const auto forgets = std::max(policy.window, Duration(1));
  return state_ == Circuit::Closed && in_a_row_ == 0 && counts(policy, now).all == 0 &&
         (openings_ == 0 || (now - closed_at_) / forgets >= openings_);
}

}  // namespace httpretry::guard
