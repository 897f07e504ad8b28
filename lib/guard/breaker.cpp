#include "breaker.hpp"

#include <algorithm>

namespace httpretry::guard {
namespace {

using Kind = BreakerPolicy::Kind;

bool reaches(std::uint32_t part, std::uint32_t all, double ratio) {
  return static_cast<double>(part) >= ratio * static_cast<double>(all);
}

std::string in_a_row_text(int failures) {
  return std::to_string(failures) + (failures == 1 ? " failure in a row" : " failures in a row");
}

std::string share_text(const BreakerPolicy& policy, const Counts& counts) {
  const bool failed = reaches(counts.failed(), counts.all, policy.failure_ratio);
  return std::to_string(failed ? counts.failed() : counts.slow) + " of " +
         std::to_string(counts.all) + (failed ? " failed in " : " were slow in ") +
         duration_text(policy.window);
}

}  // namespace

Time Breaker::held_until(const BreakerPolicy& policy, Time now) const {
  if (policy.kind == Kind::Share || state_ == Circuit::Closed) return now;
  if (state_ == Circuit::Open) return std::max(opened_->until, now);
  const auto& probes = opened_->probes;
  if (static_cast<int>(probes.size()) + opened_->good_probes < policy.probes) return now;
  auto next = kNever;
  for (const auto& probe : probes) next = std::min(next, later(probe.sent, policy.probe_timeout));
  return std::max(next, now);
}

void Breaker::ask(const BreakerPolicy& policy, Time now, double unit_random, SendGrant& grant) {
  const auto counts_by = policy.kind == Kind::Share ? Counting::Asked : Counting::Ended;
  if (counts_by != counting_) {
    if (counting_ != Counting::Nothing) close();
    counting_ = counts_by;
  }
  if (policy.kind == Kind::Share) return ask_share(policy, now, unit_random, grant);
  if (state_ == Circuit::Closed) return pass(grant);
  if (state_ == Circuit::Open) {
    if (now < opened_->until) return;
    change_to(Circuit::HalfOpen);
  }
  ask_to_probe(policy, now, grant);
}

void Breaker::pass(SendGrant& grant) const {
  grant.votes = true;
  grant.generation = generation_;
}

// How the SRE book throttles: https://sre.google/sre-book/handling-overload/
void Breaker::ask_share(const BreakerPolicy& policy, Time now, double unit_random,
                        SendGrant& grant) {
  const auto counts = window_.sum(now);
  const auto requests = static_cast<double>(counts.all);
  const auto good = static_cast<double>(counts.good);
  grant.refused_share = std::max(0.0, (requests - policy.k * good) / (requests + 1));
  // Counted when it is asked: a server that hangs is good to nobody.
  window_.add({1, 0, 0}, now, policy.share_window);
  pass(grant);
  grant.votes = unit_random >= grant.refused_share;
}

void Breaker::ask_to_probe(const BreakerPolicy& policy, Time now, SendGrant& grant) {
  auto& probes = opened_->probes;
  // A probe that never ends must not keep the circuit half-open for ever.
  std::erase_if(probes, [&](const Probe& one) { return now - one.sent >= policy.probe_timeout; });
  if (static_cast<int>(probes.size()) + opened_->good_probes >= policy.probes) return;
  probes.push_back({++opened_->last_probe, now});
  pass(grant);
  grant.probe = opened_->last_probe;
}

bool Breaker::give_back(const SendGrant& grant) {
  if (grant.probe == 0 || grant.generation != generation_) return false;
  return std::erase_if(opened_->probes,
                       [&](const Probe& one) { return one.number == grant.probe; }) > 0;
}

void Breaker::vote(const BreakerPolicy& policy, const SendGrant& grant, const SendEnd& end,
                   Time now, double unit_random) {
  if (grant.generation != generation_) return;
  if (policy.kind == Kind::Share) {
    if (!end.failed) window_.add({0, 1, 0}, now, policy.share_window);
    return;
  }
  if (grant.probe != 0) {
    if (give_back(grant)) vote_of_probe(policy, end, now, unit_random);
    return;
  }
  if (state_ != Circuit::Closed) return;
  window_.add({1, end.failed ? 0U : 1U, end.took > policy.slow_after ? 1U : 0U}, now,
              policy.window);
  in_a_row_ = end.failed ? in_a_row_ + 1 : 0;
  if (too_many_failed(policy, window_.sum(now), in_a_row_)) open(policy, end, now, unit_random);
}

bool too_many_failed(const BreakerPolicy& policy, const Counts& counts, int in_a_row) {
  if (policy.failures > 0 && in_a_row >= policy.failures) return true;
  if (policy.kind != Kind::Ratio) return false;
  if (counts.all < static_cast<std::uint32_t>(policy.min_requests)) return false;
  return reaches(counts.failed(), counts.all, policy.failure_ratio) ||
         (policy.slow_after != kForever && reaches(counts.slow, counts.all, policy.slow_ratio));
}

void Breaker::vote_of_probe(const BreakerPolicy& policy, const SendEnd& end, Time now,
                            double unit_random) {
  if (end.failed || end.took > policy.slow_after) return open(policy, end, now, unit_random);
  if (++opened_->good_probes < policy.probes) return;
  opened_->closed_at = now;
  change_to(Circuit::Closed);
}

void Breaker::open(const BreakerPolicy& policy, const SendEnd& end, Time now, double unit_random) {
  if (!opened_) opened_ = std::make_unique<Opened>();
  auto& opened = *opened_;
  opened.forgets_after = std::max(policy.window, Duration(1));
  if (state_ == Circuit::Closed) {
    opened.openings = std::max(opened.openings - quiet_windows(now), 0);
    opened.tripped = window_.sum(now);
    const bool in_a_row = policy.failures > 0 && in_a_row_ >= policy.failures;
    opened.why = in_a_row ? in_a_row_text(in_a_row_) : share_text(policy, opened.tripped);
  } else {
    opened.tripped = {1, 0, 0};
    opened.why = "a probe failed";
  }
  ++opened.openings;
  opened.open_for = delay(policy.open_for, opened.openings,
                          opened.openings == 1 ? Duration() : opened.open_for, unit_random);
  opened.until = later(now, std::max(opened.open_for, end.server_delay));
  change_to(Circuit::Open);
}

// Each whole window without an opening takes one off the row.
int Breaker::quiet_windows(Time now) const {
  const auto windows = (now - opened_->closed_at) / opened_->forgets_after;
  return static_cast<int>(std::min<std::int64_t>(windows, opened_->openings));
}

void Breaker::open_until(Time until) {
  if (!opened_) opened_ = std::make_unique<Opened>();
  opened_->until = until;
  opened_->tripped = {};
  opened_->why = "it was opened by the program";
  change_to(Circuit::Open);
}

void Breaker::close() {
  change_to(Circuit::Closed);
  opened_.reset();
}

void Breaker::change_to(Circuit state) {
  state_ = state;
  ++generation_;
  in_a_row_ = 0;
  window_.clear();
  if (!opened_) return;
  opened_->good_probes = 0;
  opened_->probes.clear();
}

Counts Breaker::counts(Time now) const {
  return state_ == Circuit::Closed ? window_.sum(now) : opened_->tripped;
}

const std::string& Breaker::why_open() const {
  static const std::string closed;
  return opened_ ? opened_->why : closed;
}

bool Breaker::idle(Time now) const {
  return state_ == Circuit::Closed && in_a_row_ == 0 && window_.sum(now).all == 0 &&
         (!opened_ || quiet_windows(now) >= opened_->openings);
}

}  // namespace httpretry::guard
