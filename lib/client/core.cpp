#include "core.hpp"

#include "lib/curl/errors.hpp"
#include "lib/flow/nested_retry.hpp"
#include "lib/flow/random.hpp"

#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace httpretry::detail {
namespace {

ClientOptions checked(ClientOptions options) {
  check(options);
  if (!options.random) options.random = &system_random;
  return options;
}

// For a call whose thread drives its scheduler until the end.
class BlockingCompletion final : public Completion {
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

// Nobody closes a scheduler that is not ours: a call there is stopped by its own token or by the
// client's.
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

Error client_gone() {
  return not_begun(Errc::Canceled, "canceled: the client was destroyed before the call began");
}

// A loop needs descriptors and a thread.
Error no_loop(const std::system_error& cause) {
  return not_begun(Errc::Internal, "the call cannot begin: " + std::string(cause.what()) +
                                       hint_at_limit(cause.code().value()));
}

}  // namespace

Error not_begun(Errc code, std::string why) {
  Error error(code, std::move(why));
  error.history.stop_reason = code == Errc::Canceled ? Reason::Canceled : Reason::NotRetryable;
  return error;
}

ClientCore::ClientCore(ClientOptions options)
    : options_(checked(std::move(options))),
      retries_(has_retry(options_)),
      process_(::getpid()),
      connection_(std::make_shared<const TransportOptions>(options_.connection)),
      resolver_(std::make_shared<Resolver>(connection_->lookup)),
      pool_(connection_, resolver_) {
  init_curl();
  if (options_.max_in_flight > 0 || options_.max_in_flight_per_origin > 0) {
    admission_.emplace(options_.max_in_flight, options_.max_in_flight_per_origin,
                       options_.transport.get());
  }
}

// Counts a call on its loop until it is posted there; takes that back where it never is.
class ClientCore::CountedCall {
 public:
  CountedCall(ClientCore& core, std::shared_ptr<BackgroundLoop> loop)
      : core_(core), loop_(std::move(loop)) {}
  ~CountedCall() {
    if (!loop_) return;
    loop_->call_not_begun();
    if (core_.closed()) loop_->close();
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;
  void posted() { loop_.reset(); }

 private:
  ClientCore& core_;
  std::shared_ptr<BackgroundLoop> loop_;
};

bool ClientCore::closed() {
  const std::lock_guard lock(mutex_);
  return closed_;
}

std::optional<Error> ClientCore::apply(Request& request, CallOptions& options) const {
  if (options.policy && !retries_) {
    return not_begun(Errc::InvalidRequest,
                     "the call has a policy, but the client has no retry middleware: add retry() "
                     "to its middlewares");
  }
  if (options.policy) request.edit_options().policy = std::move(options.policy);
  // Attempts multiply where a call that retries makes another one that does.
  if (retries_ && inside_retry() && request.options().retry) warn_of_nested_retry();
  return std::nullopt;
}

Outcome ClientCore::send(Request&& request, CallOptions&& options) {
  if (RunQueue::current() != nullptr) {
    return not_begun(
        Errc::Internal,
        "send() was called on a thread that drives a loop (in a callback, a middleware or after a "
        "co_send): it would wait for itself; use co_send or send_then there");
  }
  if (options_.blocking == Blocking::SharedLoop && !options_.scheduler) {
    return send_async(std::move(request), std::move(options)).get();
  }
  if (auto error = apply(request, options)) return *std::move(error);
  if (!options_.scheduler) return send_on_leased_loop(std::move(request), std::move(options));
  if (!options.stop.stop_possible()) options.stop = external_stop_.get_token();
  return run_here(external_scheduler(), std::move(request), std::move(options));
}

Outcome ClientCore::send_on_leased_loop(Request&& request, CallOptions&& options) {
  // The call may destroy the client; the loop goes back to a pool that still exists.
  const auto self = shared_from_this();
  try {
    LoopPool::Lease lease(pool_);
    return run_here({&lease.loop(), &transport_of(lease.loop()), &lease.loop(), nullptr},
                    std::move(request), std::move(options));
  } catch (const std::system_error& cause) {
    return no_loop(cause);
  }
}

Outcome ClientCore::run_here(RunsOn where, Request&& request, CallOptions&& options) {
  BlockingCompletion completion;
  auto call = run_call(shared_options(), where, std::move(request), std::move(options), completion);
  call.post_to(*where.scheduler, where.leased);
  where.scheduler->run_until(completion.done());
  return completion.take();
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
  auto error = apply(request, options);
  auto where = error ? std::nullopt : find_loop(error);
  if (!where) {
    Outcome outcome = *std::move(error);
    return completion.release()->complete(std::move(outcome));
  }
  CountedCall counted(*this, where->background);
  if (!where->background && !options.stop.stop_possible()) {
    options.stop = external_stop_.get_token();
  } else if (!where->background) {
    auto either = std::make_unique<StoppedByEither>(options.stop, external_stop_.get_token(),
                                                    std::move(completion));
    options.stop = either->token();
    completion = std::move(either);
  }
  auto& scheduler = *where->scheduler;
  auto call = run_call(shared_options(), *std::move(where), std::move(request), std::move(options),
                       *completion);
  call.post_to(scheduler);
  static_cast<void>(completion.release());  // the call owns it now
  counted.posted();
}

void ClientCore::run(std::shared_ptr<Work> work) {
  std::optional<Error> error;
  auto where = find_loop(error);
  if (!where) return work->give_up(*std::move(error));
  CountedCall counted(*this, where->background);
  auto& scheduler = *where->scheduler;
  auto call = run_work(*std::move(where), std::move(work));
  call.post_to(scheduler);
  counted.posted();
}

Transport& ClientCore::transport_of(Loop& loop) {
  if (admission_) return *admission_;
  return options_.transport ? *options_.transport : loop;
}

RunsOn ClientCore::external_scheduler() {
  Transport* transport = options_.transport.get();
  if (admission_) transport = &*admission_;
  return {options_.scheduler.get(), transport, nullptr, nullptr};
}

std::optional<RunsOn> ClientCore::find_loop(std::optional<Error>& why) {
  try {
    const std::lock_guard lock(mutex_);
    if (!closed_) return options_.scheduler ? external_scheduler() : background_loop();
    why = client_gone();
  } catch (const std::system_error& cause) {
    why = no_loop(cause);
  }
  return std::nullopt;
}

// With the mutex held, so that the call is counted before the loop can be closed.
RunsOn ClientCore::background_loop() {
  const auto index = next_loop_++ % static_cast<std::size_t>(options_.threads);
  if (index >= loops_.size()) {
    loops_.reserve(loops_.size() + 1);  // so that a loop that has started is in the list
    auto fresh = std::make_shared<BackgroundLoop>(connection_, resolver_);
    fresh->start();
    loops_.push_back(std::move(fresh));
  }
  const auto& background = loops_[std::min(index, loops_.size() - 1)];
  background->call_began();
  return {&background->loop(), &transport_of(background->loop()), nullptr, background};
}

void ClientCore::shut_down() {
  if (::getpid() != process_) {  // a lock may be held by a thread of the parent
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
