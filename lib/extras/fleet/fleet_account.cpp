#include "fleet_account.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {

FleetState::Account::Account(FleetState& state, std::string key, const BudgetPolicy& policy,
                             Time now)
    : state_(state), key_(std::move(key)), policy_(policy), own_(policy, now), last_used_(now) {}

// Calls `change`, which changes the budget of this process. While the budget is shared, records by
// how much the balance has changed, and sends what was taken at once.
template <class Change>
void FleetState::Account::step(Time now, const Change& change) {
  const std::lock_guard lock(mutex_);
  follow_remote(now);
  const auto balance_before = own_.budget.balance(now);
  change();
  const auto gain = own_.budget.balance(now) - balance_before;
  last_used_ = now;
  used_since_sync_ = true;
  if (!shared_) return;
  change_.taken += std::max<std::int64_t>(-gain, 0);
  change_.given += std::max<std::int64_t>(gain, 0);
  if (gain < 0) sync_budget(now);
}

void FleetState::Account::begin_call(Time now) {
  step(now, [&] { own_.begin_call(now); });
  const std::lock_guard lock(mutex_);
  // The first query is early, so that the balance is known when the first attempt ends.
  if (synced_at_ == Time()) sync_budget(now);
}

void FleetState::Account::count_attempt(bool throttled, Time now) {
  const std::lock_guard lock(mutex_);
  own_.count_attempt(throttled, now);
  adaptive_.on_attempt_ended(throttled);
  if (throttled) sync_sends(now);
}

RetryPermit FleetState::Account::end_attempt(BudgetClaim& claim, const Classified& classified,
                                             AfterAttempt next, Time now) {
  RetryPermit permit;
  step(now, [&] { permit = own_.end_attempt(claim, classified, next, now); });
  return permit;
}

void FleetState::Account::cancel(BudgetClaim& claim, bool paid, Time now) {
  step(now, [&] { own_.cancel(claim, paid, now); });
}

bool FleetState::Account::take_hedge(BudgetClaim& claim, Time now) {
  bool is_taken = false;
  step(now, [&] { is_taken = own_.take_hedge(claim, now); });
  return is_taken;
}

void FleetState::Account::give_back_hedge(BudgetClaim& claim, Time now) {
  step(now, [&] { own_.give_back_hedge(claim, now); });
}

void FleetState::Account::end_hedge(BudgetClaim& claim, Time now) {
  step(now, [&] { own_.end_hedge(claim, now); });
}

std::optional<std::int64_t> FleetState::Account::left(Time now) const {
  const std::lock_guard lock(mutex_);
  return own_.left(now);
}

bool FleetState::Account::is_budget_shared() const {
  return policy_.kind != BudgetPolicy::Kind::None && policy_.kind != BudgetPolicy::Kind::Concurrent;
}

// If the remote state has gone away or come back, replaces the budget: by this process's share of
// it, or by the whole. The balance is divided or multiplied accordingly.
void FleetState::Account::follow_remote(Time now) {
  const bool shared = query_.can_use(state_.remote_, now);
  if (shared == std::exchange(shared_, shared) || !is_budget_shared()) return;
  const auto workers = state_.remote_.workers();
  const auto balance = own_.budget.balance(now);
  own_.budget = Budget(shared ? policy_ : share_of(policy_, workers));
  own_.budget.set_balance(shared ? balance * workers : balance / workers, now);
  change_ = {};
}

// Sends the changes since the last query, and requests the balance. Does nothing while a query has
// no reply yet; its reply handler sends what was taken since.
void FleetState::Account::sync_budget(Time now) {
  if (!is_budget_shared() || query_.is_pending()) return;
  const auto unsent_change = std::exchange(change_, {});
  const auto done = [self = shared_from_this()](const RedisState::BudgetView& view, Time at) {
    self->on_reply(view, at);
  };
  if (!state_.remote_.change_budget(key_, policy_, unsent_change, done)) return;
  query_.start(now);
  synced_at_ = now;
  used_since_sync_ = false;
}

void FleetState::Account::on_reply(const RedisState::BudgetView& view, Time now) {
  const std::lock_guard lock(mutex_);
  if (!query_.on_reply(view.away, now) || !shared_) return;
  // The reply does not include the changes since the query.
  own_.budget.set_balance(view.balance - change_.taken + change_.given, now);
  if (change_.taken > 0) sync_budget(now);
}

Duration FleetState::Account::take_send(Time now) {
  const std::lock_guard lock(mutex_);
  if (!adaptive_.query.can_use(state_.remote_, now)) return own_.take_send(now);
  const auto wait = adaptive_.take(now);
  if (wait > Duration::zero() && adaptive_.should_query(now)) sync_sends(now);
  return wait;
}

void FleetState::Account::sync_sends(Time now) {
  if (!adaptive_.query.can_start(now)) return;
  const auto done = [self = shared_from_this()](const RedisState::SendsView& view, Time at) {
    self->on_reply(view, at);
  };
  if (!state_.remote_.send_rate(key_, adaptive_.start_query(now), done)) adaptive_.query.cancel();
}

void FleetState::Account::on_reply(const RedisState::SendsView& view, Time now) {
  const std::lock_guard lock(mutex_);
  adaptive_.on_reply(view, now);
  if (adaptive_.should_query(now)) sync_sends(now);
}

// Sends what is unsent. Also refreshes the balance of a budget that was used, because other
// processes change it too: with each tick, or more rarely while it is full.
void FleetState::Account::on_tick(Time now) {
  const std::lock_guard lock(mutex_);
  follow_remote(now);
  if (adaptive_.has_unsent_counts()) sync_sends(now);
  if (!shared_) return;
  const bool changed = change_.taken > 0 || change_.given > 0;
  const bool refresh_due =
      used_since_sync_ && (!own_.budget.full(now) || now - synced_at_ >= kSyncFullBudget);
  if (changed || refresh_due) sync_budget(now);
}

void FleetState::Account::flush(Time now) {
  const std::lock_guard lock(mutex_);
  if (shared_ && (change_.taken > 0 || change_.given > 0)) sync_budget(now);
  if (adaptive_.has_unsent_counts()) sync_sends(now);
}

bool FleetState::Account::is_unused(Time now) const {
  const std::lock_guard lock(mutex_);
  return now - last_used_ >= kDropUnusedAfter && !own_.rate.enabled() && !query_.is_pending();
}

}  // namespace httpretry::fleet
