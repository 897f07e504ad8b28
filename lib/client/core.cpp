#include "core.hpp"

#include "lib/curl/errors.hpp"
#include "lib/flow/call_state.hpp"
#include "lib/flow/hop.hpp"
#include "lib/flow/nested_retry.hpp"
#include "lib/flow/random.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <system_error>

namespace httpretry::detail {
namespace {

std::atomic<std::uint64_t> last_call_id = 0;

// What a program gets wrong in a chain shows when the client is made, not in production.
void check_chain(const std::vector<MiddlewarePtr>& chain) {
  bool below_retry = false;
  for (const auto& stage : chain) {
    if (!stage) throw std::invalid_argument("a middleware of the client is null");
    if (below_retry && stage->name() == "retry") {
      throw std::invalid_argument(
          "two retry stages in one chain: the attempts of the inner would be multiplied by the "
          "outer");
    }
    if (below_retry && stage->name() == "redirect") {
      throw std::invalid_argument(
          "redirect stands below retry: put it above, so that each hop is retried by its own "
          "endpoint's policy");
    }
    below_retry = below_retry || stage->name() == "retry";
  }
}

std::shared_ptr<const TransportOptions> checked(const TransportOptions& options) {
  check(options);
  return std::make_shared<const TransportOptions>(options);
}

// A chain without a retry stage leaves no history: then there was this one attempt.
void add_only_attempt(const Outcome& outcome, Call::State& state) {
  const auto& exchange = outcome ? outcome->exchange : outcome.error().exchange;
  auto& attempt = state.history.attempts.emplace_back();
  attempt.number = state.exchanges;
  attempt.status = outcome ? outcome->status : outcome.error().status;
  if (!outcome) {
    attempt.error = outcome.error().code;
    attempt.curl_code = outcome.error().curl_code;
    attempt.error_message = outcome.error().message;
  }
  const bool good = outcome && outcome->status < 400;
  attempt.rule = "no retry stage";
  attempt.cls = good ? Class::Success : outcome ? Class::Permanent : Class::Transport;
  attempt.sent = exchange.sent;
  attempt.wire_sends = exchange.wire_sends;
  attempt.duration = exchange.timings.total;
}

// What was thrown tells nothing of what was sent; that nothing was begun does.
Error out_of_memory() {
  Error error(Errc::Internal, "out of memory");
  error.permanent = true;
  error.exchange.sent = Sent::Maybe;
  return error;
}

void finish(Outcome& outcome, Call::State& state) {
  auto& history = state.history;
  if (!outcome && state.exchanges == 0) outcome.error().exchange.sent = Sent::Never;
  try {
    if (history.attempts.empty() && state.exchanges > 0) add_only_attempt(outcome, state);
  } catch (const std::bad_alloc&) {
    history.attempts.clear();  // the outcome itself tells
  }
  const bool canceled = !outcome && outcome.error().code == Errc::Canceled;
  // A rule may call an answer of any status a success.
  const bool good =
      outcome && (outcome->status < 400 ||
                  (!history.attempts.empty() && history.attempts.back().status == outcome->status &&
                   history.attempts.back().cls == Class::Success));
  if (canceled) {
    history.stop_reason = Reason::Canceled;
  } else if (history.stop_reason == Reason::Success && !good) {
    history.stop_reason = Reason::NotRetryable;
  }
  history.elapsed = state.scheduler->now() - state.started;
  (outcome ? outcome->history : outcome.error().history) = std::move(history);
}

// For a call that a thread waits for while it drives the call's scheduler.
class Waited final : public Completion {
 public:
  void complete(Outcome outcome) noexcept override {
    outcome_.emplace(std::move(outcome));
    done_.store(true, std::memory_order_release);
  }
  [[nodiscard]] const std::atomic<bool>& done() const { return done_; }
  Outcome take() { return *std::move(outcome_); }

 private:
  std::optional<Outcome> outcome_;
  std::atomic<bool> done_ = false;
};

// On a scheduler that is not ours, which nobody closes: stops the call by its own token or by the
// client's, whichever comes first.
class StoppedByEither final : public Completion {
 public:
  StoppedByEither(const std::stop_token& one, const std::stop_token& other,
                  std::unique_ptr<Completion> told)
      : told_(std::move(told)), on_one_(one, Forward{stop_}), on_other_(other, Forward{stop_}) {}
  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  void complete(Outcome outcome) noexcept override {
    const std::unique_ptr<StoppedByEither> self(this);
    told_.release()->complete(std::move(outcome));
  }

 private:
  struct Forward {
    std::stop_source to;
    void operator()() { to.request_stop(); }
  };
  std::unique_ptr<Completion> told_;
  std::stop_source stop_;
  std::stop_callback<Forward> on_one_;
  std::stop_callback<Forward> on_other_;
};

Error not_begun(Errc code, std::string why) {
  Error error(code, std::move(why));
  error.history.stop_reason = code == Errc::Canceled ? Reason::Canceled : Reason::NotRetryable;
  return error;
}

Error client_gone() {
  return not_begun(Errc::Canceled, "canceled: the client was destroyed before the call began");
}

Error ignored_policy() {
  return not_begun(Errc::InvalidRequest,
                   "the call has a policy, and the client no stage that retries by it: add retry() "
                   "to its middlewares");
}

// What a loop needs of the system: descriptors, a thread.
Error no_loop(const std::system_error& cause) {
  return not_begun(Errc::Internal, "the call cannot begin: " + std::string(cause.what()) +
                                       hint_at_limit(cause.code().value()));
}

}  // namespace

ClientCore::ClientCore(ClientOptions options)
    : options_(std::move(options)),
      process_(::getpid()),
      connection_(checked(options_.connection)),
      resolver_(std::make_shared<Resolver>(connection_->lookup)),
      pool_(connection_, resolver_) {
  init_curl();
  check_chain(options_.middlewares);
  for (const auto& observer : options_.observers) {
    if (!observer) throw std::invalid_argument("an observer of the client is null");
  }
  if (options_.max_in_flight < 0 || options_.max_in_flight_per_origin < 0) {
    throw std::invalid_argument("ClientOptions::max_in_flight must not be negative (0: no limit)");
  }
  if (options_.max_in_flight > 0 || options_.max_in_flight_per_origin > 0) {
    admission_.emplace(options_.max_in_flight, options_.max_in_flight_per_origin,
                       options_.transport.get());
  }
  if (options_.threads < 1)
    throw std::invalid_argument("ClientOptions::threads must be at least 1");
  if (options_.scheduler && !options_.transport) {
    throw std::invalid_argument("a client with a scheduler of its own needs a transport too");
  }
  if (!options_.random) options_.random = &system_random;
  retries_ = std::any_of(options_.middlewares.begin(), options_.middlewares.end(),
                         [](const auto& stage) { return stage->name() == "retry"; });
  if (options_.policies && !retries_) {
    throw std::invalid_argument(
        "the client has policies and no stage that retries by them: add retry() to its "
        "middlewares");
  }
}

void ClientCore::check_nesting(const Request& request) const {
  if (retries_ && inside_retry() && request.options().retry) warn_of_nested_retry();
}

class ClientCore::Beginning {
 public:
  Beginning(ClientCore& core, std::shared_ptr<BackgroundLoop> loop)
      : core_(core), loop_(std::move(loop)) {}
  ~Beginning() {
    if (!loop_) return;
    loop_->call_not_begun();
    if (core_.closed()) loop_->close();
  }
  Beginning(const Beginning&) = delete;
  Beginning& operator=(const Beginning&) = delete;
  void begun() { loop_.reset(); }

 private:
  ClientCore& core_;
  std::shared_ptr<BackgroundLoop> loop_;
};

bool ClientCore::closed() {
  const std::lock_guard lock(mutex_);
  return closed_;
}

// All of a call, on the scheduler's thread.
Prepared ClientCore::carry(std::shared_ptr<ClientCore> core, Where where, Request request,
                           CallOptions options, Completion& completion) {
  Call::State state;
  state.id = last_call_id.fetch_add(1, std::memory_order_relaxed) + 1;
  state.scheduler = where.scheduler;
  state.transport = where.transport;
  state.random = &core->options_.random;
  state.observers = &core->options_.observers;
  if (core->options_.policies) state.policies = &*core->options_.policies;
  state.started = where.scheduler->now();
  const auto deadline = std::min(options.deadline, later(state.started, options.timeout));
  Call call(state, deadline, std::move(options.stop));

  std::optional<Outcome> came;
  try {
    if (const auto& url = request.parsed_url()) state.first_url = *url;
    call.emit(&Observer::call_started, request);
    const Next chain(core->options_.middlewares, 0);
    Outcome outcome = co_await chain(std::move(request), call);
    came.emplace(std::move(outcome));
  } catch (...) {  // only for want of memory: what a stage throws is an outcome
    came.emplace(out_of_memory());
  }
  if (RunQueue::strayed_from(*where.scheduler)) {
    const Hop home(*where.scheduler);
    co_await home;
  }
  Outcome outcome = *std::move(came);
  finish(outcome, state);
  call.emit(&Observer::call_ended, outcome);
  state.delivery.reset();  // a file that was not finished is gone when the user hears of it

  completion.complete(std::move(outcome));
  if (where.background) where.background->call_ended();
}

Outcome ClientCore::drive(const Where& where, Request&& request, CallOptions&& options) {
  check_nesting(request);
  Waited waited;
  auto call = carry(shared_from_this(), where, std::move(request), std::move(options), waited);
  call.post_to(*where.scheduler, where.leased);
  where.scheduler->run_until(waited.done());
  return waited.take();
}

Outcome ClientCore::send(Request&& request, CallOptions&& options) {
  if (RunQueue::current() != nullptr) {
    return not_begun(
        Errc::Internal,
        "send() was called on a thread that drives a loop (in a callback, a middleware or after a "
        "co_send): it would wait for itself; use co_send or send_then there");
  }
  if (options.policy && !retries_) return ignored_policy();
  if (options.policy) request.edit_options().policy = std::move(options.policy);
  if (options_.blocking == Blocking::SharedLoop && !options_.scheduler) {
    std::promise<Outcome> promise;
    auto outcome = promise.get_future();
    auto done = [promise = std::move(promise)](Outcome value) mutable {
      promise.set_value(std::move(value));
    };
    start(std::move(request), std::move(options),
          std::make_unique<CallbackCompletion<decltype(done)>>(std::move(done)));
    return outcome.get();
  }
  return send_here(std::move(request), std::move(options));
}

Outcome ClientCore::send_here(Request&& request, CallOptions&& options) {
  if (options_.scheduler) {
    if (!options.stop.stop_possible()) options.stop = external_stop_.get_token();
    return drive(on_external_scheduler(), std::move(request), std::move(options));
  }
  // The call may destroy the client: the loop is given back to a pool that still is one.
  const auto self = shared_from_this();
  try {
    LoopPool::Lease lease(pool_);
    const Where here{&lease.loop(), &transport_of(lease.loop()), &lease.loop(), nullptr};
    return drive(here, std::move(request), std::move(options));
  } catch (const std::system_error& cause) {
    return no_loop(cause);
  }
}

void ClientCore::start(Request&& request, CallOptions&& options,
                       std::unique_ptr<Completion> completion) {
  check_nesting(request);
  std::optional<Error> refused;
  if (options.policy && !retries_) refused = ignored_policy();
  if (options.policy) request.edit_options().policy = std::move(options.policy);
  auto where = refused ? std::nullopt : place_for_call(refused);
  if (!where) {
    Outcome outcome = *std::move(refused);
    return completion.release()->complete(std::move(outcome));
  }
  Beginning beginning(*this, where->background);
  if (!where->background && !options.stop.stop_possible()) {
    options.stop = external_stop_.get_token();
  } else if (!where->background) {
    auto either = std::make_unique<StoppedByEither>(options.stop, external_stop_.get_token(),
                                                    std::move(completion));
    options.stop = either->token();
    completion = std::move(either);
  }
  auto& scheduler = *where->scheduler;
  auto call = carry(shared_from_this(), *std::move(where), std::move(request), std::move(options),
                    *completion);
  call.post_to(scheduler);
  static_cast<void>(completion.release());  // the call's
  beginning.begun();
}

void ClientCore::run(std::shared_ptr<Work> work) {
  std::optional<Error> refused;
  auto where = place_for_call(refused);
  if (!where) return work->give_up(*std::move(refused));
  Beginning beginning(*this, where->background);
  auto& scheduler = *where->scheduler;
  auto call = carry_work(*std::move(where), std::move(work));
  call.post_to(scheduler);
  beginning.begun();
}

Prepared ClientCore::carry_work(Where where, std::shared_ptr<Work> work) {
  try {
    const auto running = work->run(*where.scheduler);
    co_await running;
  } catch (...) {  // as with a call
    work->give_up(out_of_memory());
  }
  if (RunQueue::strayed_from(*where.scheduler)) {
    const Hop home(*where.scheduler);
    co_await home;
  }
  work.reset();
  if (where.background) where.background->call_ended();
}

Transport& ClientCore::transport_of(Loop& loop) {
  if (admission_) return *admission_;
  return options_.transport ? *options_.transport : loop.transport();
}

ClientCore::Where ClientCore::on_external_scheduler() {
  Transport* transport = options_.transport.get();
  if (admission_) transport = &*admission_;
  return {options_.scheduler.get(), transport, nullptr, nullptr};
}

std::optional<ClientCore::Where> ClientCore::place_for_call(std::optional<Error>& why) {
  try {
    const std::lock_guard lock(mutex_);
    if (!closed_) return options_.scheduler ? on_external_scheduler() : on_background_loop();
    why = client_gone();
  } catch (const std::system_error& cause) {
    why = no_loop(cause);
  }
  return std::nullopt;
}

// With the mutex held, so that the call is counted before the loop can be closed.
ClientCore::Where ClientCore::on_background_loop() {
  const auto index = next_loop_++ % static_cast<std::size_t>(options_.threads);
  if (index >= loops_.size()) {
    loops_.reserve(loops_.size() + 1);  // what has started must be in the list
    auto fresh = std::make_shared<BackgroundLoop>(connection_, resolver_);
    fresh->start();
    loops_.push_back(std::move(fresh));
  }
  const auto& background = loops_[std::min(index, loops_.size() - 1)];
  background->call_began();
  return {&background->loop(), &transport_of(background->loop()), nullptr, background};
}

void ClientCore::shut_down() {
  if (::getpid() != process_) {  // the locks, too, may be another process's
    for (const auto& background : loops_) background->detach();
    return pool_.abandon();
  }
  std::vector<std::shared_ptr<BackgroundLoop>> loops;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    loops.swap(loops_);
  }
  external_stop_.request_stop();
  for (const auto& background : loops) background->close();
  pool_.close();
  for (const auto& background : loops) background->join();
}

}  // namespace httpretry::detail
