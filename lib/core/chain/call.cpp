#include "lib/core/chain/detail/call_state.hpp"

#include "lib/core/retry/error_codes.hpp"
#include "lib/core/retry/retry_loop.hpp"

#include <algorithm>
#include <new>

namespace httpretry {
namespace {

// Adds the last exchange as the only attempt, because the history is empty without retry().
void add_only_attempt(const Outcome& outcome, int exchanges, History& history) {
  auto& attempt = history.attempts.emplace_back();
  attempt.number = exchanges;
  set_outcome(attempt, outcome);
  attempt.rule = "no middleware retry";
  const bool good = outcome && outcome->status < 400;
  attempt.cls = good ? Class::Success : outcome ? Class::Permanent : Class::Transport;
  attempt.duration = exchange_of(outcome).timings.total;
}

// Returns whether the call succeeded. A policy may make a response of any status a success.
bool call_succeeded(const Outcome& outcome, const History& history) {
  if (!outcome) return false;
  if (outcome->status < 400) return true;
  const auto* last = history.last();
  return last != nullptr && last->status == outcome->status && last->cls == Class::Success;
}

}  // namespace

Transport::~Transport() = default;

Observer::~Observer() = default;
std::uint64_t Call::id() const { return state_->id; }
Scheduler& Call::scheduler() const { return *state_->scheduler; }
Time Call::started() const { return state_->started; }
History& Call::history() const { return state_->history; }
Context& Call::context() const { return state_->context; }
const PolicySource* Call::policies() const { return state_->common->policies; }
double Call::random() const { return (*state_->common->random)(); }
const std::vector<std::shared_ptr<Observer>>& Call::observers() const {
  return *state_->common->observers;
}

std::string_view Call::origin() const {
  return state_->first_url ? state_->first_url->origin() : std::string_view();
}

Call Call::with(Time deadline, std::stop_token stop) const {
  Call branch(*this);
  branch.deadline_ = std::min(deadline_, deadline);
  // Outside of attempts, a wait for admission does not postpone the deadline. So `limit_`, up to
  // which it could, is the deadline itself.
  if (attempt_ == 0) branch.limit_ = branch.deadline_;
  branch.stop_ = std::move(stop);
  return branch;
}

// Returns a token that is stopped when the call is canceled or its client ends.
const std::stop_token& Call::stop() const {
  auto& state = *state_;
  // A branch with another token derived it from what this function returned, so that token already
  // covers the client's end.
  if (!state.watches_end || stop_ != state.stop) return stop_;
  const auto& client_end = *state.common->client_end;
  if (!stop_.stop_possible()) return client_end;
  auto& either = state.either_stop;
  if (!either) either = std::make_unique<EitherStop>(stop_, client_end);
  return either->token();
}

Call Call::State::racing(const Call& call, RacingSend& send, int number, Time deadline,
                         std::stop_token stop) {
  Call branch = call.with(kNever, std::move(stop));
  branch.attempt_ = number;
  branch.deadline_ = std::min(call.limit_, deadline);
  branch.racing_ = &send;
  return branch;
}

// Merges the limits of the attempt's policy with those of the request: for each the stricter one,
// but always the request's own connect timeout.
ExchangeLimits Call::limits(const Request& request) const {
  const auto& options = request.options();
  ExchangeLimits limits;
  if (current_ != nullptr) limits = current_->limits;
  limits.fresh_connection = limits.fresh_connection || options.fresh_connection;
  if (options.connect_timeout) limits.connect_timeout = options.connect_timeout;
  limits.response_timeout = std::min(limits.response_timeout, options.response_timeout);
  limits.respond_by = std::min(limits.respond_by, options.respond_by);
  limits.stall_timeout = std::min(limits.stall_timeout, options.stall_timeout);
  return limits;
}

Call Call::State::attempt(const Call& call, int number, Time deadline, CurrentAttempt& current) {
  Call branch(call);
  branch.deadline_ = std::min(call.deadline_, deadline);
  branch.attempt_ = number;
  branch.current_ = &current;
  return branch;
}

// Completes the history of a call that has ended with this outcome. The middleware `retry` records
// attempts and the reason why the call ended; without it, this adds the last exchange (a send by
// the transport) as the only attempt. Sets the reason if the call was canceled, or if it failed and
// `retry` has not said so.
void Call::State::complete_history(const Call& call, const Outcome& outcome) {
  auto& state = of(call);
  auto& history = state.history;
  try {
    if (history.attempts.empty() && state.exchanges > 0) {
      add_only_attempt(outcome, state.exchanges, history);
    }
  } catch (const std::bad_alloc&) {
    history.attempts.clear();  // drops an incomplete entry
  }
  if (!outcome && outcome.error().code == Errc::Canceled) {
    history.stop_reason = Reason::Canceled;
  } else if (history.stop_reason == Reason::Success && !call_succeeded(outcome, history)) {
    // Success is only the initial value, because the client has no `retry`; or `retry` succeeded,
    // and a middleware above it then failed. A failed response has no reason more precise than
    // NotRetryable.
    history.stop_reason = outcome ? Reason::NotRetryable : stop_reason(outcome.error().code);
  }
}

// A body that went to a sink was classified by its beginning.
Classified CurrentAttempt::judge(const Outcome& outcome) const {
  if (outcome && outcome->delivered > 0 && judged) return *judged;
  return judge_anew(outcome);
}

Classified CurrentAttempt::judge_anew(const Outcome& outcome) const {
  const Observed observed(outcome, call.scheduler().wall_now());
  return classify ? classify(*policy, request, observed) : httpretry::classify(*policy, observed);
}

bool CurrentAttempt::reads_body(int status, const Headers& headers) const {
  // The library cannot know what a user's function reads.
  return classify != nullptr || policy::must_read_body(policy->retry_on, status, headers);
}

}  // namespace httpretry
