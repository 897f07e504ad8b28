#include "core.hpp"

#include "lib/core/base/random.hpp"
#include "lib/core/chain/nested_retry.hpp"
#include "lib/core/curl/errors.hpp"
#include "lib/core/flow/resume_on.hpp"

#include <httpretry/middleware/retry_call.hpp>
#include <httpretry/retry/classify.hpp>

#include <unistd.h>

#include <system_error>

namespace httpretry::detail {
namespace {

ClientOptions checked(ClientOptions options) {
  check(options);
  if (!options.random) options.random = &random_number;
  return options;
}

// Completes a blocking call. The calling thread drives a scheduler until `done`.
struct BlockingCompletion final : Completion {
  void complete(Outcome value) noexcept override {
    outcome.emplace(std::move(value));
    done.store(true, std::memory_order_release);
  }
  std::optional<Outcome> outcome;
  std::atomic<bool> done = false;
};

// Returns the error for a call that did not begin.
Error not_begun(Errc code, std::string why) {
  Error error(code, std::move(why));
  error.history.stop_reason = stop_reason(code);
  return error;
}

Error drained_error() {
  return not_begun(Errc::Canceled,
                   "canceled: the client was drained before the call began; send it with another "
                   "client");
}

void add_base(const ClientOptions& options, Request& request) {
  const std::string_view url = request.url();
  const auto colon = url.find_first_of(":/?#");
  if (colon != url.npos && url.substr(colon, 3) == "://") return;
  std::string whole = options.base_url;
  const bool path = !url.empty() && url.front() != '?' && url.front() != '#';
  if (path) {
    while (whole.ends_with('/')) whole.pop_back();
    if (url.front() != '/') whole += '/';
  }
  request.set_url(whole.append(url));
  for (const auto& [name, value] : options.base_query) request.add_query(name, value);
}

Task<bool> sleep_there(Scheduler& scheduler, Time when, std::stop_token stop) {
  const ReturnTo there(scheduler);
  co_await there;
  const bool slept = co_await scheduler.sleep_until(when, std::move(stop));
  co_return slept;
}

// Drives the scheduler until the task has ended.
template <class T>
T run_on(Scheduler& driver, Task<T> task) {
  const auto running = std::make_shared<Running<T>>();
  run_into(running, std::move(task));
  driver.run_until(running->done());
  return running->take();
}

}  // namespace

ClientCore::ClientCore(ClientOptions options)
    : options_(checked(std::move(options))),
      retries_(has_retry(options_)),
      on_event_loop_(std::dynamic_pointer_cast<EventLoop>(options_.scheduler) != nullptr),
      process_(::getpid()),
      connection_(std::make_shared<const TransportOptions>(options_.connection)),
      resolver_(std::make_shared<Resolver>(connection_->lookup, connection_->lookup_may_block)),
      pool_(connection_, resolver_) {
  init_curl();
  if (!options_.transport) try_out(*connection_);
  if (options_.max_in_flight > 0 || options_.max_in_flight_per_origin > 0) {
    admission_.emplace(options_.max_in_flight, options_.max_in_flight_per_origin,
                       options_.transport.get());
  }
  if (on_event_loop_) {
    event_loop_ = std::static_pointer_cast<EventLoop>(options_.scheduler);
    options_.scheduler.reset();  // calls share the options, but must not share their driver
    options_.threads = 1;
  }
}

Result<RunsOn> ClientCore::begin(Request& request, CallOptions& options,
                                 CallsInFlight::Ticket& ticket, LoopPool::Lease* lent) {
  if (!options_.base_url.empty()) add_base(options_, request);
  if (options.policy) request.edit_options().policy = std::move(options.policy);
  if (request.options().policy && !retries_) {
    return not_begun(Errc::InvalidRequest,
                     "the call has a policy, but the client has no retry middleware: add retry() "
                     "to its middlewares");
  }
  // A call that retries inside another one that retries multiplies the attempts.
  if (retries_ && inside_retry() && request.options().retry) warn_of_nested_retry();
  if (!ticket) return drained_error();
  auto where = find_loop(&request, lent);
  if (!where) return where;
  where->ticket = std::move(ticket);
  if (!where->watches_end) stop_with_client(*where, options);
  return where;
}

Outcome ClientCore::send(Request&& request, CallOptions&& options) {
  if (RunQueue::current() != nullptr) {
    return not_begun(
        Errc::Internal,
        "send() was called on a thread that drives a loop (in a callback, a middleware or after a "
        "co_send): it would wait for itself; use co_send or send_then there");
  }
  const auto driver = scheduler_driven_here();
  if (!driver && options_.blocking == Blocking::SharedLoop) {
    return send_async(std::move(request), std::move(options)).get();
  }
  // The call may destroy the client. `self` keeps the scheduler and the pool alive until the end of
  // this function.
  const auto self = shared_from_this();
  LoopPool::Lease lent;
  auto ticket = calls_in_flight_.begin(true);
  auto where = begin(request, options, ticket, driver ? nullptr : &lent);
  if (!where) return std::move(where).error();
  BlockingCompletion completion;
  auto& scheduler = *where->scheduler;
  run_call(for_calls(), *std::move(where), std::move(request), std::move(options), completion)
      .post_to(scheduler);
  (driver ? *driver : scheduler).run_until(completion.done);
  return *std::move(completion.outcome);
}

std::future<Outcome> ClientCore::send_async(Request&& request, CallOptions&& options) {
  std::promise<Outcome> promise;
  auto outcome = promise.get_future();
  auto done = [promise = std::move(promise)](Outcome value) mutable {
    promise.set_value(std::move(value));
  };
  start(std::move(request), std::move(options),
        std::make_unique<CallbackCompletion<decltype(done)>>(std::move(done)));
  return outcome;
}

void ClientCore::start(Request&& request, CallOptions&& options,
                       std::unique_ptr<Completion> completion) {
  auto ticket = calls_in_flight_.begin(true);
  auto where = begin(request, options, ticket, nullptr);
  if (!where) {
    Outcome outcome = std::move(where).error();
    return completion.release()->complete(std::move(outcome));
  }
  auto& scheduler = *where->scheduler;
  run_call(for_calls(), *std::move(where), std::move(request), std::move(options), *completion)
      .post_to(scheduler);
  static_cast<void>(completion.release());  // the call owns it now
}

void ClientCore::run(std::shared_ptr<Work> work) {
  auto ticket = calls_in_flight_.begin(false);
  auto where = find_loop();
  if (!where) return work->give_up(std::move(where).error());
  where->ticket = std::move(ticket);
  auto& scheduler = *where->scheduler;
  run_work(for_calls(), *std::move(where), std::move(work)).post_to(scheduler);
}

Scheduler& ClientCore::scheduler() {
  if (on_event_loop_) {
    const std::lock_guard lock(mutex_);
    if (event_loop_) return *event_loop_;
  }
  const auto where = find_loop();
  if (!where) throw Failure(where.error());
  return *where->scheduler;
}

Time ClientCore::now() const {
  return options_.scheduler ? options_.scheduler->now() : std::chrono::steady_clock::now();
}

Transport* ClientCore::transport_of(Loop* loop) {
  if (admission_) return &*admission_;
  return options_.transport ? options_.transport.get() : loop;
}

// The client does not close a scheduler that it does not own. Calls there watch the client's stop
// token in addition to their own.
void ClientCore::stop_with_client(RunsOn& where, CallOptions& options) {
  auto stop = at_end_;
  if (options.stop.stop_possible()) {
    where.either_stop = std::make_unique<EitherStop>(options.stop, stop);
    stop = where.either_stop->token();
  }
  options.stop = std::move(stop);
}

Result<RunsOn> ClientCore::find_loop(const Request* request, LoopPool::Lease* lent) {
  try {
    if (lent != nullptr) {
      *lent = pool_.lend();
      return RunsOn{lent->get(), transport_of(lent->get()), true};
    }
    const std::lock_guard lock(mutex_);  // so that the call is counted before the loop is closed
    if (closed_ && calls_in_flight_.is_draining()) return drained_error();
    if (closed_) {
      return not_begun(Errc::Canceled, "canceled: the client was destroyed before the call began");
    }
    if (auto* scheduler = options_.scheduler.get()) return RunsOn{scheduler, transport_of(nullptr)};
    std::string_view origin;
    if (options_.threads > 1 && request != nullptr) {
      if (const auto& url = request->parsed_url()) origin = url->origin();
    }
    auto& background = choose_loop(origin);
    auto* const loop = &background.loop();
    return RunsOn{loop, transport_of(loop), true, background.count_call(origin)};
  } catch (const std::system_error& cause) {  // a loop needs descriptors and a thread
    return not_begun(Errc::LocalShortage, "the call cannot begin: " + std::string(cause.what()) +
                                              hint_at_limit(cause.code().value()));
  }
}

// Returns the loop with the fewest calls in flight among those with an idle connection to the
// origin. If no loop has one, adds a loop, or returns the one with the fewest calls if it is idle
// or all loops exist. So a call that begins when another ends reuses its connection: 64 calls in
// flight on two loops never need more than 64 connections.
BackgroundLoop& ClientCore::choose_loop(std::string_view origin) {
  BackgroundLoop* best = nullptr;
  std::pair<bool, int> least;  // busy, in flight
  for (const auto& loop : loops_) {
    const bool idle = !origin.empty() && loop->has_idle(origin);
    const std::pair load(!idle, loop->in_flight());
    if (best != nullptr && load >= least) continue;
    best = loop.get();
    least = load;
  }
  const auto& [busy, in_flight] = least;
  const bool all_made = loops_.size() == static_cast<std::size_t>(options_.threads);
  return best != nullptr && (!busy || in_flight == 0 || all_made) ? *best : add_loop();
}

BackgroundLoop& ClientCore::add_loop() {
  loops_.reserve(loops_.size() + 1);  // so that push_back cannot throw after the start
  auto fresh = std::make_shared<BackgroundLoop>(connection_, resolver_);
  if (event_loop_) {
    event_loop_->core_->carry(fresh);
  } else {
    fresh->start();
  }
  loops_.push_back(std::move(fresh));
  return *loops_.back();
}

void ClientCore::cancel_all() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& background : loops_) background->loop().close();
  }
  end_.request_stop();
  pool_.stop();
}

std::shared_ptr<Scheduler> ClientCore::scheduler_driven_here() const {
  if (!on_event_loop_) return options_.scheduler;
  const std::lock_guard lock(mutex_);  // a drain on another thread releases the event loop
  return event_loop_ && event_loop_->core_->is_driver() ? event_loop_ : nullptr;
}

bool ClientCore::wait_until(Time when, const std::stop_token& stop) {
  if (const auto driver = scheduler_driven_here()) {
    return run_on(*driver, sleep_there(*driver, when, stop));
  }
  return BlockingClock().wait_until(when, stop);
}

DrainResult ClientCore::drain(Time deadline) {
  check_may_block("drain()");
  if (const auto driver = scheduler_driven_here()) {
    return run_on(*driver, co_drain(shared_from_this(), deadline));
  }
  calls_in_flight_.drain();
  static_cast<void>(BlockingClock().wait_until(deadline, calls_in_flight_.nothing_left()));
  shut_down();
  return calls_in_flight_.result();
}

Task<DrainResult> ClientCore::co_drain(std::shared_ptr<ClientCore> self, Time deadline) {
  self->calls_in_flight_.drain();
  const auto where = self->find_loop();
  if (!where) {
    if (where.error().code == Errc::Canceled) co_return self->calls_in_flight_.result();
    throw Failure(where.error());
  }
  auto& scheduler = *where->scheduler;
  const ReturnTo there(scheduler);
  co_await there;
  const auto nothing_left = self->calls_in_flight_.nothing_left();
  static_cast<void>(co_await scheduler.sleep_until(deadline, nothing_left));
  self->cancel_all();
  UntilNothingLeft end(self->calls_in_flight_, scheduler);
  co_await end;
  co_return self->calls_in_flight_.result();
}

void ClientCore::shut_down() {
  if (::getpid() != process_) {  // forked: a thread that holds a lock may not exist here
    for (const auto& background : loops_) background->detach();
    return pool_.abandon();
  }
  std::shared_ptr<EventLoop> event_loop;
  std::vector<std::shared_ptr<BackgroundLoop>> loops;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    loops.swap(loops_);
    event_loop.swap(event_loop_);
  }
  end_.request_stop();
  for (const auto& background : loops) background->close();
  pool_.close();
  for (const auto& background : loops) background->join();
}

}  // namespace httpretry::detail
