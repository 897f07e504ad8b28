#include "run_call.hpp"

#include <new>
#include "lib/core/base/shortage.hpp"
#include "lib/core/body/detail/delivery.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/curl/errors.hpp"
#include "lib/core/flow/resume_on.hpp"

namespace httpretry::detail {
namespace {

std::atomic<std::uint64_t> last_call_id = 0;

// Returns the error for std::bad_alloc. The exception does not show whether an exchange sent its
// request, so the error says Sent::Maybe if there was one.
Error out_of_memory(bool exchanged) {
  if (!exchanged) return Error(Errc::LocalShortage, "out of memory");
  auto error = permanent_error(Errc::Internal, "out of memory");
  error.exchange.sent = Sent::Maybe;
  return error;
}

// Completes the history of a call that has ended (its attempts, why it ended, and how long it
// took), and moves it into the outcome. If the transport began no exchange, an error says
// Sent::Never.
void finish(Outcome& outcome, const Call& call) {
  auto& state = Call::State::of(call);
  auto& history = state.history;
  if (!outcome && state.exchanges == 0) {  // the request was not sent
    auto& error = outcome.error();
    error.exchange.sent = Sent::Never;
    // A middleware threw std::bad_alloc (internal_error() sets this curl_code). That is Internal if
    // something may have been sent. Nothing was, so the only problem is the lack of memory.
    if (error.code == Errc::Internal && error.curl_code == kOutOfMemory) {
      error.code = Errc::LocalShortage;
      history.stop_reason = Reason::LocalShortage;
    }
  }
  Call::State::complete_history(call, outcome);
  // The loop of this thread reads its clock once per iteration. If the call runs on that loop,
  // reads the clock again, so that `elapsed` includes the time that middlewares have just used.
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
    if (const auto& context = request.options().context; !context.empty()) state.context = context;
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
  finish(*result, call);
  call.emit(&Observer::call_ended, *result);
  // Destroys the call's objects before the caller is notified. A sink then removes its unfinished
  // file, so the caller does not find it.
  if (!state.context.empty()) state.context = Context();

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
  } catch (...) {
    // std::bad_alloc, as in run_call. The work may have sent requests.
    work->give_up(out_of_memory(/*exchanged=*/true));
  }
  if (RunQueue::is_not_driving(*placement.scheduler)) {
    const ResumeOn home(*placement.scheduler);
    co_await home;
  }
  work.reset();
  placement.registration.reset();
}

}  // namespace httpretry::detail
