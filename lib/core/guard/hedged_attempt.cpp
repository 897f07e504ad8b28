#include "hedged_attempt.hpp"

#include "lib/core/base/either_stop.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/flow/resume_on.hpp"

#include <algorithm>

namespace httpretry::guard {

// One send. A stop request to `over_` cancels it.
class HedgedAttempt::Send final : public RacingSend {
 public:
  Send(HedgedAttempt& race, Request request, const Call& call, int number, Time deadline)
      : request_(std::move(request)),
        hedge_(!race.sends_.empty()),
        number_(number),
        race_(race),
        on_stop_(call.stop(), RequestStop{over_}),
        branch_(Call::State::racing(call, *this, number, deadline, over_.get_token())) {}

  [[nodiscard]] bool is_hedge() const override { return hedge_; }
  void on_gate_reached(SendGate& gate) override {
    auto& gates = race_.gates_;
    if (std::find(gates.begin(), gates.end(), &gate) == gates.end()) gates.push_back(&gate);
  }
  void on_start() override {
    if (race_.gates_.empty()) on_admitted();
  }
  void on_wait() override {
    began_.reset();
    race_.last_began_ = kNever;
  }
  void on_admitted() override {
    if (began_) return;  // a middleware below sends twice
    // A hedge goes out after the last of the gates that the first send has passed.
    if (hedge_ && ++gates_passed_ < race_.gates_.size()) return;
    began_ = race_.now();
    race_.on_began(*this);
  }
  Use headers_came(const Response& head) override { return race_.on_headers(*this, head); }
  bool uses(const Response& begun) override { return race_.uses(*this, begun); }

  [[nodiscard]] bool in_flight() const { return !outcome_; }

  Request request_;
  const bool hedge_;
  const int number_;           // Attempt::number
  std::optional<Time> began_;  // nullopt until it is sent
  std::optional<Time> headers_at_;
  Time ended_{};
  int ending_ = 0;  // its position in the order in which the sends ended
  std::optional<Outcome> outcome_;
  Classified judged_;
  bool canceled_ = false;  // because another send won
  std::shared_ptr<const Hedge> hedge_facts_;
  HedgedAttempt& race_;
  std::size_t gates_passed_ = 0;  // how many of `race_.gates_` admitted this hedge
  std::stop_source over_;
  const std::stop_callback<RequestStop> on_stop_;
  Call branch_;
};

HedgedAttempt::HedgedAttempt(CurrentAttempt& attempt, HedgeAccount& scope, const Request& request,
                             Call& call, Next next)
    : attempt_(attempt),
      policy_(*attempt.policy->hedge),
      scope_(scope),
      request_(request),
      call_(call),
      next_(next),
      started_(now()),
      group_(std::stop_source(std::nostopstate)) {}

HedgedAttempt::~HedgedAttempt() = default;

// Sends the request, and hedges of it while no send has won. Waits for all sends to end, and
// returns the outcome of the one that decides.
Task<Outcome> HedgedAttempt::run() {
  if (!attempt_.is_retry) scope_.begin_call(started_);
  start(attempt_.number, call_.deadline());
  while (winner_ == nullptr && in_flight_ > 0) {
    const auto change = change_ = std::make_shared<httpretry::detail::Event>();
    const bool open = co_await change->wait(call_.scheduler(), next_hedge(), std::stop_token());
    if (!open) break;  // the loop was closed, which also ends the sends
    if (winner_ == nullptr && in_flight_ > 0 && now() >= next_hedge()) try_hedge();
  }
  const auto all = group_.join();
  co_await all;
  Outcome outcome = finish();
  co_return outcome;
}

// Starts a send with this Attempt::number.
void HedgedAttempt::start(int number, Time deadline) {
  sends_.push_back(std::make_unique<Send>(*this, request_, call_, number, deadline));
  auto& send = *sends_.back();
  ++in_flight_;
  group_.begin(carry(*this, send));
}

// Runs a send to its end. This is the coroutine that the group of sends joins.
Task<> HedgedAttempt::carry(HedgedAttempt& race, Send& send) {
  Outcome outcome = co_await race.next_(std::move(send.request_), send.branch_);
  // A middleware may have continued on another thread.
  if (RunQueue::is_not_driving(race.call_.scheduler())) {
    const ResumeOn home(race.call_.scheduler());
    co_await home;
  }
  // If the user's classify function throws, ends the race, and `run` passes the exception on.
  try {
    race.on_ended(send, std::move(outcome));
  } catch (...) {
    race.win(send);
    throw;
  }
}

void HedgedAttempt::notify_change() {
  if (change_) change_->happen();
}

// Called when a send goes out. Its duration and the delay of the next hedge count from here.
// Notifies the observers of a hedge; the `retry` middleware does so for the first send.
void HedgedAttempt::on_began(Send& send) {
  last_began_ = now();
  if (!send.hedge_) {
    delay_ = scope_.delay(policy_, now());
    return notify_change();
  }
  Hedge facts;
  facts.of = sends_.front()->number_;
  facts.after = now() - *sends_.front()->began_;
  facts.from = source_text(policy_, delay_);
  send.hedge_facts_ = std::make_shared<const Hedge>(std::move(facts));
  call_.emit(&Observer::attempt_started, request_, send.number_);
  call_.emit(&Observer::hedge_started, request_, send.number_, send.hedge_facts_->after);
}

// Returns when the next hedge (a further send of the same request) is due: some time after the last
// send began. Returns kNever if no hedge may follow, or none before a send changes its state.
Time HedgedAttempt::next_hedge() const {
  // `last_began_` is kNever while the last send still waits for its turn.
  if (last_began_ == kNever || hedges_tried_ >= policy_.max_hedges) return kNever;
  // A send that has its headers may win, and one that has not gone out yet comes first.
  const bool must_wait = std::any_of(sends_.begin(), sends_.end(), [](const auto& send) {
    return send->in_flight() && (send->headers_at_ || !send->began_);
  });
  return must_wait ? kNever : later(last_began_, delay_.after);
}

// Sends a hedge, or refuses it.
void HedgedAttempt::try_hedge() {
  ++hedges_tried_;
  if (const auto reason = refusal()) return refuse(*reason);
  last_began_ = now();
  const auto timeout = attempt_.policy->attempt_timeout;
  start(sends_.front()->number_ + static_cast<int>(sends_.size()),
        timeout == kForever ? call_.deadline() : later(now(), timeout));
}

void HedgedAttempt::refuse(HedgeRefused reason) {
  last_began_ = now();  // the delay of the next hedge counts from here
  call_.history().hedge_refused = reason;
  call_.emit(&Observer::hedge_refused, reason);
}

// Called when a send has its headers. Returns whether its body is used: Yes if the send has won, No
// if another one has, and NotYet if the policy's rules have to read the body first.
RacingSend::Use HedgedAttempt::on_headers(Send& send, const Response& head) {
  using Use = RacingSend::Use;
  send.headers_at_ = now();
  if (winner_ != nullptr) return winner_ == &send ? Use::Yes : Use::No;
  if (in_flight_ == 1) return Use::Yes;  // no other send is left, and none will follow
  if (attempt_.reads_body(head.status, head.headers)) return Use::NotYet;
  return uses(send, head) ? Use::Yes : Use::No;
}

// Returns whether the response of this send is used. The first good response wins the race.
bool HedgedAttempt::uses(Send& send, const Response& begun) {
  if (winner_ != nullptr) return winner_ == &send;
  if (in_flight_ == 1) return true;  // no other send is left, and none will follow
  const bool good = settles(send, attempt_.judge(Outcome(begun)));
  if (good) win(send);
  return good;
}

// Returns whether a send with this verdict wins the race.
bool HedgedAttempt::settles(const Send& send, const Classified& judged) const {
  const bool failed = judged.cls == Class::Throttle || judged.cls == Class::Transient ||
                      judged.cls == Class::Transport;
  return !failed && !is_conflict_with_other_send(send, judged.status);
}

// Returns whether a 409 or 425 for a hedge may be caused by another send in flight. A server may
// refuse an idempotency key while it still executes the first request with that key.
bool HedgedAttempt::is_conflict_with_other_send(const Send& send, int status) const {
  if (!send.hedge_ || (status != 409 && status != 425)) return false;
  const auto& name = attempt_.policy->idempotency_key;
  const bool keyed = request_.headers().contains("Idempotency-Key") ||
                     (!name.empty() && request_.headers().contains(name));
  const auto others_in_flight = in_flight_ - (send.in_flight() ? 1 : 0);
  return keyed && others_in_flight > 0;
}

// Makes this send the winner, and cancels the others.
void HedgedAttempt::win(Send& send) {
  winner_ = &send;
  for (const auto& other : sends_) {
    if (other.get() == &send || !other->in_flight()) continue;
    other->canceled_ = true;
    other->over_.request_stop();
  }
  notify_change();
}

// Called when a send has ended.
void HedgedAttempt::on_ended(Send& send, Outcome outcome) {
  send.ended_ = now();
  send.ending_ = ++endings_;
  send.judged_ = attempt_.judge(outcome);
  send.outcome_.emplace(std::move(outcome));
  --in_flight_;
  if (send.hedge_ && !send.began_) return drop_unsent_hedge();
  if (send.hedge_) attempt_.loop.claim().end_hedge(now());
  note_throttle(send);
  add_sample(send);
  if (winner_ == nullptr && settles(send, send.judged_)) win(send);
  notify_change();
}

// Drops a hedge that a gate held back, although `refusal` had allowed it. It is the last send,
// because no hedge starts before the previous one began.
void HedgedAttempt::drop_unsent_hedge() {
  scope_.give_back(policy_, now());
  attempt_.loop.claim().give_back_hedge(now());
  refuse(HedgeRefused::Busy);
  unsent_ = std::move(sends_.back());
  sends_.pop_back();
  notify_change();
}

// Notes that the server wants fewer requests, if it said so. Then no hedge follows in this attempt,
// and none in the scope for as long as the server asked for.
void HedgedAttempt::note_throttle(const Send& send) {
  if (send.judged_.cls != Class::Throttle || send.canceled_) return;
  throttled_ = true;
  const auto& server_delay = send.judged_.server_delay;
  if (server_delay) scope_.throttle(later(now(), server_delay->delay));
}

// Adds the time of a send to the samples of its scope. Quick failures are not samples, because they
// would lower the quantile. Timeouts are, and sends that were canceled because another one won.
void HedgedAttempt::add_sample(const Send& send) {
  const auto& judged = send.judged_;
  const bool stopped_by_caller = call_.stop().stop_requested() && !send.canceled_;
  if (!send.began_ || stopped_by_caller) return;
  const bool responded = judged.cls == Class::Success || judged.cls == Class::Pending ||
                         (judged.cls == Class::Permanent && send.outcome_->has_value());
  if (!responded && !judged.timeout && !send.canceled_) return;
  scope_.add_sample(send.headers_at_.value_or(send.ended_) - *send.began_, now());
}

// Returns the send whose outcome the attempt has: the winner, otherwise the one with the longest
// server delay, or the last one that ended.
HedgedAttempt::Send& HedgedAttempt::decisive() const {
  if (winner_ != nullptr) return *winner_;
  const auto rank = [](const Send& send) {
    const auto& server_delay = send.judged_.server_delay;
    return std::pair(server_delay ? server_delay->delay : Duration::zero(), send.ending_);
  };
  return **std::max_element(sends_.begin(), sends_.end(),
                            [&](const auto& a, const auto& b) { return rank(*a) < rank(*b); });
}

// Called when all sends of the attempt have ended. Returns the outcome of the attempt: that of the
// winner, or of the send that stands for the failure of all. If there were several sends, also
// describes each of them in `attempt_.hedged`, from which `retry` writes the history.
Outcome HedgedAttempt::finish() {
  auto& decisive_send = decisive();
  if (sends_.size() > 1) {
    auto& record = attempt_.hedged.emplace();
    record.number = decisive_send.number_;
    // The time of the first send counts from the start of the attempt, and includes its waits.
    record.began = decisive_send.hedge_ ? *decisive_send.began_ : started_;
    record.hedge = decisive_send.hedge_facts_;  // nullptr for the first send
    record.won = winner_ != nullptr;
    for (const auto& send : sends_) {
      if (send.get() == &decisive_send) continue;
      record.others.push_back(make_lost_attempt(*send, decisive_send.number_));
    }
  }
  return *std::move(decisive_send.outcome_);
}

// Makes the history's entry for a send that lost the race of several sends of one attempt. The
// history has one entry for each send, numbered as an attempt. `decisive_number` is the number of
// the send whose outcome the attempt has.
Attempt HedgedAttempt::make_lost_attempt(const Send& send, int decisive_number) const {
  // The first send counts from the start of the attempt, so its duration includes waits in queues.
  // A hedge counts from when it was sent.
  const auto began = send.hedge_ ? *send.began_ : started_;
  Attempt attempt;
  attempt.number = send.number_;
  attempt.start = began - call_.started();
  attempt.duration = send.ended_ - began;
  set_outcome(attempt, *send.outcome_);  // its status, error and timings
  attempt.cls = send.judged_.cls;
  // A canceled send has no rule. A send that failed before keeps the rule that classified it.
  attempt.rule = send.canceled_ ? "lost to attempt " + std::to_string(decisive_number)
                                : to_string(send.judged_.rule);
  // With do_not_retry, the server has asked for no retry at all, and not for a delay.
  if (const auto& delay = send.judged_.server_delay; delay && !delay->do_not_retry) {
    attempt.server_delay = delay->delay;
    attempt.server_delay_source = to_string(delay->source);
  }
  attempt.hedge = send.hedge_facts_;  // nullptr for the first send
  attempt.race = Race::Lost;
  return attempt;
}

}  // namespace httpretry::guard
