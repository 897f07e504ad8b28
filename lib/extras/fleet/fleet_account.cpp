#include "fleet_account.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {

FleetState::Account::Account(FleetState& state, std::string key, const BudgetPolicy& policy,
                             Time now)
    : state_(state), key_(std::move(key)), policy_(policy), own_(policy, now), last_used_(now) {}

// `change` is a step of the budget.
template <class Change>
auto FleetState::Account::step(Time now, const Change& change) {
  const std::lock_guard lock(mutex_);
  follow_remote(now);
  const auto before = own_.budget.balance(now);
  const auto result = change();
  const auto more = own_.budget.balance(now) - before;
  last_used_ = now;
  used_ = true;
  if (!shared_) return result;
  change_.taken -= std::min<std::int64_t>(more, 0);
  change_.given += std::max<std::int64_t>(more, 0);
  if (more < 0) ask(now);
  return result;
}

void FleetState::Account::begin_call(Time now) {
  step(now, [&] { return own_.begin_call(now), true; });
  const std::lock_guard lock(mutex_);
  if (asked_at_ == Time()) ask(now);  // by the end of the first attempt the balance is known
}

void FleetState::Account::count_attempt(bool throttled, Time now) {
  const std::lock_guard lock(mutex_);
  own_.count_attempt(throttled, now);
  turns_.ended(throttled);
  if (throttled) ask_for_turns(now);
}

RetryPermit FleetState::Account::end_attempt(BudgetClaim& claim, const Classified& classified,
                                             AfterAttempt next, Time now) {
  return step(now, [&] { return own_.end_attempt(claim, classified, next, now); });
}

void FleetState::Account::cancel(BudgetClaim& claim, bool paid, Time now) {
  step(now, [&] { return own_.cancel(claim, paid, now), true; });
}

bool FleetState::Account::take_hedge(BudgetClaim& claim, Time now) {
  return step(now, [&] { return own_.take_hedge(claim, now); });
}

void FleetState::Account::give_back_hedge(BudgetClaim& claim, Time now) {
  step(now, [&] { return own_.give_back_hedge(claim, now), true; });
}

void FleetState::Account::end_hedge(BudgetClaim& claim, Time now) {
  step(now, [&] { return own_.end_hedge(claim, now), true; });
}

std::optional<std::int64_t> FleetState::Account::left(Time now) const {
  const std::lock_guard lock(mutex_);
  return own_.left(now);
}

bool FleetState::Account::shares_budget() const {
  return policy_.kind != BudgetPolicy::Kind::None && policy_.kind != BudgetPolicy::Kind::Concurrent;
}

void FleetState::Account::follow_remote(Time now) {
  const bool shared = question_.is_for(state_.remote_, now);
  if (shared == std::exchange(shared_, shared) || !shares_budget()) return;
  const auto workers = state_.remote_.workers();
  const auto balance = own_.budget.balance(now);
  own_.budget = Budget(shared ? policy_ : share_of(policy_, workers));
  own_.budget.set_balance(shared ? balance * workers : balance / workers, now);
  change_ = {};
}

void FleetState::Account::ask(Time now) {
  if (!shares_budget() || question_.is_asked()) return;
  const auto told = std::exchange(change_, {});
  const auto replied = [self = shared_from_this()](const RedisState::BudgetView& view, Time at) {
    self->got(view, at);
  };
  if (!state_.remote_.change_budget(key_, policy_, told, replied)) return;
  question_.ask(now);
  asked_at_ = now;
  used_ = false;
}

void FleetState::Account::got(const RedisState::BudgetView& view, Time now) {
  const std::lock_guard lock(mutex_);
  if (!question_.replied(view.away, now) || !shared_) return;
  own_.budget.set_balance(view.balance - change_.taken + change_.given, now);
  if (change_.taken > 0) ask(now);
}

Duration FleetState::Account::take_send(Time now) {
  const std::lock_guard lock(mutex_);
  if (!turns_.question.is_for(state_.remote_, now)) return own_.take_send(now);
  const auto wait = turns_.take(now);
  if (wait > Duration::zero() && turns_.asks(now)) ask_for_turns(now);
  return wait;
}

void FleetState::Account::ask_for_turns(Time now) {
  if (!turns_.question.may_ask(now)) return;
  const auto replied = [self = shared_from_this()](const RedisState::SendsView& view, Time at) {
    self->got(view, at);
  };
  if (!state_.remote_.send_rate(key_, turns_.ask(now), replied)) turns_.question.forget();
}

void FleetState::Account::got(const RedisState::SendsView& view, Time now) {
  const std::lock_guard lock(mutex_);
  turns_.got(view, now);
  if (turns_.asks(now)) ask_for_turns(now);
}

void FleetState::Account::look_after(Time now) {
  const std::lock_guard lock(mutex_);
  follow_remote(now);
  if (turns_.has_news()) ask_for_turns(now);
  if (!shared_) return;
  const bool changed = change_.taken > 0 || change_.given > 0;
  const bool due = used_ && (!own_.budget.full(now) || now - asked_at_ >= kAskAgain);
  if (changed || due) ask(now);
}

void FleetState::Account::tell(Time now) {
  const std::lock_guard lock(mutex_);
  if (shared_ && (change_.taken > 0 || change_.given > 0)) ask(now);
  if (turns_.has_news()) ask_for_turns(now);
}

bool FleetState::Account::forgotten(Time now) const {
  const std::lock_guard lock(mutex_);
  return now - last_used_ >= kForgotten && !own_.rate.enabled() && !question_.is_asked();
}

}  // namespace httpretry::fleet
