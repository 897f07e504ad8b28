#include "run_call.hpp"

#include "lib/core/base/shortage.hpp"
#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/curl/errors.hpp"
#include "lib/core/flow/resume_on.hpp"
#include "lib/core/retry/retry_loop.hpp"

#include <httpretry/retry/classify.hpp>

#include <new>

namespace httpretry::detail {
namespace {

std::atomic<std::uint64_t> last_call_id = 0;

// Adds the last exchange as the only attempt, because the history is empty without retry().
void add_only_attempt(const Outcome& outcome, Call::State& state) {
  auto& attempt = state.history.attempts.emplace_back();
  attempt.number = state.exchanges;
  set_outcome(attempt, outcome);
  attempt.rule = "no middleware retry";
  const bool good = outcome && outcome->status < 400;
  attempt.cls = good ? Class::Success : outcome ? Class::Permanent : Class::Transport;
  attempt.duration = exchange_of(outcome).timings.total;
}

// Returns the error for std::bad_alloc. The exception does not show whether an exchange sent its
// request, so the error says Sent::Maybe if there was one.
Error out_of_memory(bool exchanged) {
  if (!exchanged) return Error(Errc::LocalShortage, "out of memory");
  auto error = permanent_error(Errc::Internal, "out of memory");
  error.exchange.sent = Sent::Maybe;
  return error;
}

// Returns whether the call succeeded. A policy may make a response of any status a success.
bool is_good(const Outcome& outcome, const History& history) {
  if (!outcome) return false;
  if (outcome->status < 400) return true;
  const auto* last = history.last();
  return last != nullptr && last->status == outcome->status && last->cls == Class::Success;
}

// Completes the history of a call that has ended, and moves it into the outcome: why the call
// ended, how long it took, and its only attempt if no middleware `retry` recorded any.
void finish(Outcome& outcome, Call::State& state) {
  auto& history = state.history;
  if (!outcome && state.exchanges == 0) {  // the request was not sent
    auto& error = outcome.error();
    error.exchange.sent = Sent::Never;
    // A middleware threw std::bad_alloc. LocalShortage says that nothing was sent.
    if (error.code == Errc::Internal && error.curl_code == kOutOfMemory) {
      error.code = Errc::LocalShortage;
      history.stop_reason = Reason::LocalShortage;
    }
  }
  try {
    if (history.attempts.empty() && state.exchanges > 0) add_only_attempt(outcome, state);
  } catch (const std::bad_alloc&) {
    history.attempts.clear();  // drops an incomplete entry; the outcome has the important facts
  }
  if (!outcome && outcome.error().code == Errc::Canceled) {
    history.stop_reason = Reason::Canceled;
  } else if (history.stop_reason == Reason::Success && !is_good(outcome, history)) {
    // Success is only the initial value: there is no middleware `retry`, which sets the reason, or
    // a middleware above it failed after it had succeeded.
    history.stop_reason = outcome ? Reason::NotRetryable : stop_reason(outcome.error().code);
  }
  // The loop reads its clock once per turn. Reads it again, so that `elapsed` includes the time
  // that middlewares have used in this turn.
  if (auto* queue = RunQueue::current(); queue == state.scheduler) queue->read_clock();
  history.elapsed = state.scheduler->now() - state.started;
  (outcome ? outcome->history : outcome.error().history) = std::move(history);
}

// Sets the state of a call that begins.
void set_up(Call::State& state, const ForCalls& client, RunsOn& placement,
            const CallOptions& options) {
  state.id = last_call_id.fetch_add(1, std::memory_order_relaxed) + 1;
  state.scheduler = placement.scheduler;
  state.transport = placement.transport;
  state.common = &client.common;
  state.started = placement.scheduler->now();
  state.stop = options.stop;
  state.watches_end = placement.watches_end;
  state.either_stop = std::move(placement.either_stop);
}

// Sends a request whose response body goes to a sink. Gives the sink a body that a user's
// middleware or transport made in memory.
Task<Outcome> send_to_sink(Request request, Call& call, Next chain) {
  const auto sending = chain(request, call);
  Outcome outcome = co_await sending;
  const auto delivering = Delivery::deliver_rest(std::move(request), call, std::move(outcome));
  Outcome delivered = co_await delivering;
  co_return delivered;
}

}  // namespace

// Runs a call from its start to its outcome, on the loop of `placement`: passes the request through
// the middlewares to the transport, completes the history, and passes the outcome to `completion`.
// Nothing can throw out of it: every failure becomes the outcome.
PostedCoroutine run_call(std::shared_ptr<const ForCalls> client, RunsOn placement, Request request,
                         CallOptions options, Completion& completion) {
  Call::State state;
  set_up(state, *client, placement, options);
  const auto timeout = std::min(options.timeout, request.options().timeout);
  Call call(state, std::min(options.deadline, later(state.started, timeout)),
            std::move(options.stop));

  std::optional<Outcome> result;
  try {
    if (const auto& url = request.parsed_url()) state.first_url = *url;
    state.context = request.options().context;
    call.emit(&Observer::call_started, request);
    const Next chain(client->options.middlewares, /*index=*/0);
    const bool to_sink = request.options().sink != nullptr;
    const auto sending =
        to_sink ? send_to_sink(std::move(request), call, chain) : chain(std::move(request), call);
    result = co_await sending;
  } catch (...) {  // std::bad_alloc; `Next` handles what a middleware throws
    result.emplace(out_of_memory(state.exchanges > 0));
  }
  // A user's middleware may have continued on another thread. Returns to the one of the loop.
  if (RunQueue::is_not_driving(*state.scheduler)) {
    const ResumeOn to_loop(*state.scheduler);
    co_await to_loop;
  }
  finish(*result, state);
  call.emit(&Observer::call_ended, *result);
  // Destroys the call's objects before the caller is notified. A sink then removes its unfinished
  // file, so the caller does not find it.
  state.context = Context();

  // The caller may begin its next call in `complete`. That call can then reuse this loop.
  placement.count.in_flight.reset();
  if (placement.registration) placement.registration->count_outcome(*result);
  completion.complete(*std::move(result));
  // `complete` may have destroyed the Client. `client` still keeps the counter of calls alive.
  placement.registration.reset();
}

// Runs work that the program spawned on the client. `client` keeps the counter of calls and work in
// flight alive.
PostedCoroutine run_work([[maybe_unused]] std::shared_ptr<const ForCalls> client, RunsOn placement,
                         std::shared_ptr<Work> work) {
  try {
    const auto running = work->run(*placement.scheduler);
    co_await running;
  } catch (...) {                                      // std::bad_alloc, as in run_call
    work->give_up(out_of_memory(/*exchanged=*/true));  // it may have been
  }
  if (RunQueue::is_not_driving(*placement.scheduler)) {
    const ResumeOn home(*placement.scheduler);
    co_await home;
  }
  work.reset();
  placement.registration.reset();
}

}  // namespace httpretry::detail
