#include "fleet_account.hpp"

#include "hearing.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {

FleetState::Account::Account(FleetState& state, std::string key, const BudgetPolicy& policy,
                             Time now)
    : state_(state),
      key_(std::move(key)),
      policy_(policy),
      budget_(policy),
      rate_(now),
      last_used_(now) {}

// `step` changes the budget.
template <class Step>
auto FleetState::Account::step(Time now, const Step& step) {
  follow_remote(now);
  const auto before = budget_.balance(now);
  const auto result = step();
  const auto change = budget_.balance(now) - before;
  last_used_ = now;
  used_ = true;
  if (!shared_) return result;
  change_.taken -= std::min<std::int64_t>(change, 0);
  change_.given += std::max<std::int64_t>(change, 0);
  if (change < 0) ask(now);
  return result;
}

void FleetState::Account::begin_call(Time now) {
  const std::lock_guard lock(mutex_);
  step(now, [&] { return budget_.begin(now), true; });
  if (asked_at_ == Time()) ask(now);  // by the end of the first attempt the balance is known
}

Duration FleetState::Account::take_send(Time now) {
  const std::lock_guard lock(mutex_);
  return take_turn(now);
}

void FleetState::Account::count_attempt(bool throttled, Time now) {
  const std::lock_guard lock(mutex_);
  rate_.update(now, throttled);
  turns_.ended(throttled);
  if (throttled) ask_for_turns(now);
}

RetryPermit FleetState::Account::end_attempt(BudgetClaim& claim, const Classified& classified,
                                             AfterAttempt next, Time now) {
  const std::lock_guard lock(mutex_);
  RetryPermit permit;
  permit.allowed = step(now, [&] {
    budget_.end_attempt(claim);
    const bool allowed =
        next != AfterAttempt::Retry || budget_.take(claim, classified.cls, classified.timeout, now);
    if (next == AfterAttempt::Stop || !allowed) budget_.settle(claim, classified.cls, now);
    return allowed;
  });
  permit.left = whole_tokens(now);
  return permit;
}

void FleetState::Account::cancel(BudgetClaim& claim, bool paid, Time now) {
  const std::lock_guard lock(mutex_);
  step(now, [&] {
    if (paid) budget_.cancel(claim, now);
    return budget_.settle(claim, Class::Permanent, now), true;
  });
}

bool FleetState::Account::take_hedge(BudgetClaim& claim, Time now) {
  const std::lock_guard lock(mutex_);
  return step(now, [&] { return budget_.take_hedge(claim, now); });
}

void FleetState::Account::give_back_hedge(BudgetClaim& claim, Time now) {
  const std::lock_guard lock(mutex_);
  step(now, [&] { return budget_.give_back_hedge(claim, now), true; });
}

void FleetState::Account::end_hedge(BudgetClaim& claim, Time now) {
  const std::lock_guard lock(mutex_);
  step(now, [&] { return budget_.end_hedge(claim), true; });
}

std::optional<std::int64_t> FleetState::Account::left(Time now) const {
  const std::lock_guard lock(mutex_);
  return whole_tokens(now);
}

std::optional<std::int64_t> FleetState::Account::whole_tokens(Time now) const {
  const auto thousandths = budget_.left(now);
  return thousandths ? std::optional(*thousandths / 1000) : std::nullopt;
}

bool FleetState::Account::shares_budget() const {
  return policy_.kind != BudgetPolicy::Kind::None && policy_.kind != BudgetPolicy::Kind::Concurrent;
}

void FleetState::Account::follow_remote(Time now) {
  const bool shared = state_.remote().up() && !question_.without(now, state_.remote().patience());
  if (shared == std::exchange(shared_, shared) || !shares_budget()) return;
  const auto workers = state_.remote().workers();
  const auto balance = budget_.balance(now);
  budget_ = Budget(shared ? policy_ : share_of(policy_, workers));
  budget_.set_balance(shared ? balance * workers : balance / workers, now);
  change_ = {};
}

template <class View>
RemoteState::Done<View> FleetState::Account::when_replied(void (Account::*take_in)(const View&,
                                                                                   Time)) {
  return [hearing = state_.hearing_, weak = weak_from_this(), take_in](const View& view, Time now) {
    hearing->with_state([&](FleetState&) {
      if (const auto account = weak.lock()) (account.get()->*take_in)(view, now);
    });
  };
}

void FleetState::Account::ask(Time now) {
  if (!shares_budget() || question_.is_asked()) return;
  const auto told = std::exchange(change_, {});
  if (!state_.remote().change_budget(key_, policy_, told, when_replied(&Account::got))) return;
  question_.ask(now);
  asked_at_ = now;
  used_ = false;
}

void FleetState::Account::got(const RemoteState::BudgetView& view, Time now) {
  const std::lock_guard lock(mutex_);
  if (view.away) return question_.failed(now);
  question_.replied();
  if (!shared_) return;
  budget_.set_balance(view.balance - change_.taken + change_.given, now);
  if (change_.taken > 0) ask(now);
}

bool FleetState::Account::shares_rate(Time now) const {
  return state_.remote().up() && !turns_.question().without(now, state_.remote().patience());
}

Duration FleetState::Account::take_turn(Time now) {
  if (!shares_rate(now)) return rate_.acquire(now);
  const auto wait = turns_.take(now);
  if (wait > Duration::zero() && turns_.asks(now)) ask_for_turns(now);
  return wait;
}

void FleetState::Account::ask_for_turns(Time now) {
  if (turns_.question().is_asked() || turns_.question().failed_lately(now)) return;
  const auto sends = turns_.ask(now);
  if (!state_.remote().send_rate(key_, sends, when_replied(&Account::got_turns))) {
    turns_.not_asked();
  }
}

void FleetState::Account::got_turns(const RemoteState::SendsView& view, Time now) {
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
  const bool due = used_ && (!budget_.full(now) || now - asked_at_ >= kAskAgain);
  if (changed || due) ask(now);
}

void FleetState::Account::tell(Time now) {
  const std::lock_guard lock(mutex_);
  if (shared_ && (change_.taken > 0 || change_.given > 0)) ask(now);
  if (turns_.has_news()) ask_for_turns(now);
}

bool FleetState::Account::forgotten(Time now) const {
  const std::lock_guard lock(mutex_);
  return now - last_used_ >= kForgotten && !rate_.enabled() && !question_.is_asked();
}

}  // namespace httpretry::fleet
