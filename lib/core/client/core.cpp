#include "core.hpp"

#include "lib/core/base/random.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/chain/nested_retry.hpp"
#include "lib/core/curl/errors.hpp"
#include "lib/core/flow/resume_on.hpp"
#include "lib/core/middleware/named_url.hpp"

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

// Returns the text without percent-encoding.
std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digits = text.substr(i, 3);
    const bool encodes =
        digits.size() == 3 && digits[0] == '%' && hex_value(digits[1]) && hex_value(digits[2]);
    plain +=
        encodes ? static_cast<char>(*hex_value(digits[1]) * 16 + *hex_value(digits[2])) : text[i];
    if (encodes) i += 2;
  }
  return plain;
}

// Returns whether the query of a URL has a parameter of that name, however it is encoded.
bool has_parameter(std::string_view url, std::string_view name) {
  auto query = url.substr(0, url.find('#'));
  static_cast<void>(take_until(query, '?'));
  while (!query.empty()) {
    const auto item = take_until(query, '&');
    if (decoded(item.substr(0, item.find('='))) == name) return true;
  }
  return false;
}

// Resolves a URL without a scheme against the client's base URL, and adds the base query. The query
// may be secret, so a URL of another origin ("//other.example.com/") does not get it, nor the user
// name and the password in the base URL.
Result<void> add_base(const ClientOptions& options, const Url& base, Request& request) {
  const std::string_view url = request.url();
  const auto first_delimiter = std::min(url.find_first_of(":/?#"), url.size());
  if (url.substr(first_delimiter, 3) == "://") return {};  // has a scheme
  // Without the "./", the name before the colon in "items:batch" would be a scheme.
  const bool has_colon = url.substr(first_delimiter).starts_with(':');
  const auto resolved = base.resolve((has_colon ? "./" : "") + std::string(url));
  if (!resolved) return not_begun(resolved.error().code, resolved.error().message);
  const auto target = resolved->to_string();
  const bool same_origin = resolved->origin() == base.origin();
  const bool has_user = same_origin && base.has_userinfo();
  request.set_url(has_user ? with_userinfo_of(options.base_url, target) : target);
  if (!same_origin) return {};
  for (const auto& [name, value] : options.base_query) {
    if (!has_parameter(target, name)) request.add_query(name, value);
  }
  return {};
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
      base_url_(options_.base_url.empty() ? std::nullopt
                                          : std::optional(Url::parse(options_.base_url).value())),
      retries_(has_retry(options_)),
      on_event_loop_(options_.scheduler && EventLoop::is_one(*options_.scheduler)),
      process_(::getpid()),
      connection_(std::make_shared<const TransportOptions>(options_.connection)),
      resolver_(std::make_shared<Resolver>(connection_->lookup, connection_->lookup_may_block)),
      pool_(connection_, resolver_) {
  init_curl();
  if (!options_.transport) try_out(*connection_);
  if (limits_in_flight_) {
    admission_.emplace(options_.max_in_flight, options_.max_in_flight_per_origin,
                       options_.transport.get());
  }
  if (on_event_loop_) {
    event_loop_ = std::static_pointer_cast<EventLoop>(options_.scheduler);
    options_.scheduler.reset();  // calls share the options, but must not share their driver
    options_.threads = 1;
  }
}

Result<void> ClientCore::add_base_url(Request& request) const {
  return base_url_ ? add_base(options_, *base_url_, request) : Result<void>();
}

// Applies the client's options to a call, and chooses where it runs. Returns an error if the call
// cannot begin, for example because the client drains, in which case `registration` is nullptr.
Result<RunsOn> ClientCore::begin(Request& request, CallOptions& options,
                                 CallsInFlight::Registration& registration,
                                 LoopPool::Lease* leased_loop) {
  if (auto added = add_base_url(request); !added) return std::move(added).error();
  if (options.policy) request.edit_options().policy = std::move(options.policy);
  if (request.options().policy && !retries_) {
    return not_begun(Errc::InvalidRequest,
                     "the call has a policy, but the client has no retry middleware: add retry() "
                     "to its middlewares");
  }
  // A call that retries inside another one that retries multiplies the attempts.
  if (retries_ && inside_retry() && request.options().retry) warn_of_nested_retry();
  if (!registration) return drained_error();
  auto placement = find_loop(&request, leased_loop);
  if (!placement) return placement;
  placement->registration = std::move(registration);
  if (!placement->watches_end) stop_with_client(*placement, options);
  return placement;
}

// Runs a call and blocks until it ends. In the meantime, this thread drives the program's scheduler
// (which may be an EventLoop) if the client has one that is driven here, and otherwise a loop that
// it leases from the pool. With Blocking::SharedLoop, it only waits instead of leasing a loop.
// Returns an error if the call cannot begin.
Outcome ClientCore::send(Request&& request, CallOptions&& options) {
  if (RunQueue::current() != nullptr) {  // this thread already drives a loop
    return not_begun(
        Errc::Internal,
        "send() was called on a thread that drives a loop (in a callback, a middleware or after a "
        "co_send): it would deadlock; use co_send or send_then there");
  }
  const auto programs_scheduler = scheduler_driven_here();  // nullptr if none is driven here
  if (!programs_scheduler && options_.blocking == Blocking::SharedLoop) {
    // SharedLoop: the call runs on a background loop, and this thread only waits.
    return send_async(std::move(request), std::move(options)).get();
  }
  // The call may destroy the client. `self` keeps the scheduler and the pool alive until the end of
  // this function.
  const auto self = shared_from_this();
  LoopPool::Lease leased_loop;  // set by `begin`; returns the loop to the pool at the end
  // Counts the call as in flight. It is nullptr if the client drains (it ends, and accepts no more
  // calls); `begin` then returns an error.
  auto registration = calls_in_flight_.register_one(CallsInFlight::Kind::Call);
  auto placement =
      begin(request, options, registration, programs_scheduler ? nullptr : &leased_loop);
  if (!placement) return std::move(placement).error();
  BlockingCompletion completion;
  auto& scheduler = *placement->scheduler;
  run_call(for_calls(), *std::move(placement), std::move(request), std::move(options), completion)
      .post_to(scheduler);
  // With an EventLoop, `scheduler` is not the EventLoop, but a loop of the client that it drives.
  auto& driver = programs_scheduler ? *programs_scheduler : scheduler;
  driver.run_until(completion.done);
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

// Starts a call. `completion` gets its outcome, or the error if it cannot begin.
void ClientCore::start(Request&& request, CallOptions&& options,
                       std::unique_ptr<Completion> completion) {
  auto registration = calls_in_flight_.register_one(CallsInFlight::Kind::Call);
  auto placement = begin(request, options, registration, /*leased_loop=*/nullptr);
  if (!placement) return completion.release()->complete(Outcome(std::move(placement).error()));
  auto& scheduler = *placement->scheduler;
  run_call(for_calls(), *std::move(placement), std::move(request), std::move(options), *completion)
      .post_to(scheduler);
  static_cast<void>(completion.release());  // the call owns it now
}

void ClientCore::run(std::shared_ptr<Work> work) {
  auto registration = calls_in_flight_.register_one(CallsInFlight::Kind::Work);
  auto placement = find_loop();
  if (!placement) return work->give_up(std::move(placement).error());
  placement->registration = std::move(registration);
  auto& scheduler = *placement->scheduler;
  run_work(for_calls(), *std::move(placement), std::move(work)).post_to(scheduler);
}

Scheduler& ClientCore::scheduler() {
  if (on_event_loop_) {
    const std::lock_guard lock(mutex_);
    if (event_loop_) return *event_loop_;
  }
  const auto placement = find_loop();
  if (!placement) throw Failure(placement.error());
  return *placement->scheduler;
}

Time ClientCore::now() const {
  return options_.scheduler ? options_.scheduler->now() : std::chrono::steady_clock::now();
}

Transport* ClientCore::transport_of(Loop* loop) {
  if (admission_) return &*admission_;
  return options_.transport ? options_.transport.get() : loop;
}

// Makes a call end with the client, which does not close a scheduler that it does not own.
void ClientCore::stop_with_client(RunsOn& placement, CallOptions& options) {
  auto stop = at_end_;
  if (options.stop.stop_possible()) {
    placement.either_stop = std::make_unique<EitherStop>(options.stop, stop);
    stop = placement.either_stop->token();
  }
  options.stop = std::move(stop);
}

// Chooses the loop and the transport for a call, or for work that is not a call (`request` is
// nullptr). If `leased_loop` is not nullptr, the thread of a blocking call will drive the loop:
// leases one from the pool, and sets `leased_loop` to it. Otherwise chooses the scheduler in the
// client's options, if there is one, or a background loop. Returns an error if the client has ended
// or a new loop cannot be made.
Result<RunsOn> ClientCore::find_loop(const Request* request, LoopPool::Lease* leased_loop) {
  // When the client ends, it closes its own loops, which cancels the calls on them without a stop
  // token. So Call::stop(), which user code may call, watches the client's end as well. On the
  // program's scheduler, stop_with_client() adds the client's end to the call's stop token instead.
  constexpr bool kWatchesEnd = true;
  try {
    if (leased_loop != nullptr) {
      *leased_loop = pool_.lend();  // already closed if the client has ended: it cancels the call
      return RunsOn{leased_loop->get(), transport_of(leased_loop->get()), kWatchesEnd};
    }
    // Held until `count_call`, so that a client that ends cannot close the loop before that.
    const std::lock_guard lock(mutex_);
    if (closed_ && calls_in_flight_.is_draining()) return drained_error();
    if (closed_) {
      return not_begun(Errc::Canceled, "canceled: the client was destroyed before the call began");
    }
    // Options with a scheduler that is no EventLoop also have a transport, which needs no loop.
    if (auto* scheduler = options_.scheduler.get()) return RunsOn{scheduler, transport_of(nullptr)};
    std::string_view origin;  // needed only to choose among several background loops
    if (options_.threads > 1 && request != nullptr) {
      if (const auto& url = request->parsed_url()) origin = url->origin();
    }
    auto& background = choose_loop(origin);  // prefers one with an idle connection to the origin
    auto* const loop = &background.loop();
    return RunsOn{loop, transport_of(loop), kWatchesEnd, background.count_call(origin)};
  } catch (const std::system_error& cause) {  // a loop needs descriptors and a thread
    return not_begun(Errc::LocalShortage, "the call cannot begin: " + std::string(cause.what()) +
                                              hint_at_limit(cause.code().value()));
  }
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

// Ends the client when nothing is in flight, or at the deadline. Returns how its calls have ended.
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

// Ends the client, as `drain` does, but without blocking: lets no further call begin, waits until
// nothing is in flight or the deadline has come, cancels the calls that are left, and waits for
// their end. Returns how many calls succeeded, failed and were canceled. Throws Failure if the
// client has no loop and none can be started. `self` keeps the client's state alive.
Task<DrainResult> ClientCore::co_drain(std::shared_ptr<ClientCore> self, Time deadline) {
  self->calls_in_flight_.drain();
  const auto placement = self->find_loop();  // the loop on which this coroutine waits
  if (!placement) {
    // Canceled: an earlier drain or the client's destructor has already ended the client.
    if (placement.error().code == Errc::Canceled) co_return self->calls_in_flight_.result();
    throw Failure(placement.error());
  }
  auto& scheduler = *placement->scheduler;
  const ReturnTo to_scheduler(scheduler);  // the caller may run on another thread
  co_await to_scheduler;
  const auto nothing_left = self->calls_in_flight_.nothing_left();  // a token that ends the sleep
  static_cast<void>(co_await scheduler.sleep_until(deadline, nothing_left));
  self->cancel_all();
  // Unlike `sleep_until`, this also waits on a loop that `cancel_all` has closed.
  UntilNothingLeft all_ended(self->calls_in_flight_, scheduler);
  co_await all_ended;
  co_return self->calls_in_flight_.result();
}

// Ends the client: cancels all calls, waits until those of other threads have ended, and joins the
// threads of the background loops. In a child process after a fork, only lets go of the loops:
// their threads do not exist there, and their connections belong to the parent process.
void ClientCore::shut_down() {
  const bool is_forked_child = ::getpid() != process_;
  if (is_forked_child) {  // locks nothing: the owner of a lock may not exist in this process
    for (const auto& background : loops_) background->detach();
    return pool_.abandon();
  }
  // The program's. Released without the mutex, because the destructor of an EventLoop runs canceled
  // calls to their end, and their callbacks may lock the mutex.
  std::shared_ptr<EventLoop> event_loop;
  std::vector<std::shared_ptr<BackgroundLoop>> loops;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;  // no further call begins
    loops.swap(loops_);
    event_loop.swap(event_loop_);
  }
  end_.request_stop();  // the stop token of calls on the program's scheduler
  // Cancels the calls on all loops before it waits for any of them.
  for (const auto& background : loops) background->close();
  pool_.close();  // also waits for the blocking calls of other threads
  for (const auto& background : loops) background->join();
}

}  // namespace httpretry::detail
