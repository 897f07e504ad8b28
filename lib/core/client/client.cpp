#include <httpretry/client/client.hpp>

#include "core.hpp"

#include "lib/core/flow/resume_on.hpp"

#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>

namespace httpretry {

detail::Completion::~Completion() = default;

namespace {

// Shared by a call and the coroutine that awaits it. If the coroutine is destroyed while the call
// runs, the call is stopped and its outcome dropped.
struct AwaitedCall {
  std::stop_source stop;
  std::optional<Outcome> outcome;
  std::recursive_mutex mutex;       // recursive, because a scheduler may resume inside post()
  std::coroutine_handle<> awaiter;  // set while a coroutine waits; guarded by the mutex

  // Returns the coroutine that waits, or null, and clears `awaiter`.
  std::coroutine_handle<> take_awaiter() {
    const std::lock_guard lock(mutex);
    return std::exchange(awaiter, nullptr);
  }
  void resume() {
    if (const auto waiting = take_awaiter()) waiting.resume();
  }
};

// Moves to the scheduler, and only then checks whether the awaiter still exists. Until then it may
// be destroyed on that scheduler.
detail::Detached resume_there(std::shared_ptr<AwaitedCall> state, Scheduler& scheduler) {
  const ResumeOn hop(scheduler);
  co_await hop;
  state->resume();
}

// An awaitable that starts a call on one of the core's loops and returns its outcome.
class CoSend {
 public:
  CoSend(std::shared_ptr<detail::ClientCore> core, Request request, CallOptions options)
      : core_(std::move(core)), request_(std::move(request)), options_(std::move(options)) {}
  ~CoSend() {
    forwarder_.reset();
    if (state_->take_awaiter()) state_->stop.request_stop();
  }
  CoSend(const CoSend&) = delete;
  CoSend& operator=(const CoSend&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  // Starts the call. Its end resumes the awaiter, on the scheduler `resume_on` if one is set. Not
  // inlined, because clang 14 would keep variables in the frame of the awaiter, which may not exist
  // any longer.
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> awaiter) {
    state_->awaiter = awaiter;
    // The call is stopped by the caller's stop token, or if the awaiter is destroyed.
    if (options_.stop.stop_possible()) forwarder_.emplace(options_.stop, RequestStop{state_->stop});
    options_.stop = state_->stop.get_token();
    auto done = [state = state_, resume_on = options_.resume_on](Outcome outcome) {
      state->outcome.emplace(std::move(outcome));
      if (resume_on == nullptr) return state->resume();
      // The scheduler exists at least as long as the awaiter. ~CoSend locks the mutex, so an
      // awaiter that is still set is not destroyed before `resume_there` posts to the scheduler.
      const std::lock_guard lock(state->mutex);
      if (state->awaiter) resume_there(state, *resume_on);
    };
    // Once started, the call may resume and destroy this awaitable on another thread.
    const auto core = core_;
    core->start(std::move(request_), std::move(options_),
                std::make_unique<detail::CallbackCompletion<decltype(done)>>(std::move(done)));
  }
  Outcome await_resume() { return *std::move(state_->outcome); }

 private:
  std::shared_ptr<detail::ClientCore> core_;
  Request request_;
  CallOptions options_;
  std::shared_ptr<AwaitedCall> state_ = std::make_shared<AwaitedCall>();
  std::optional<std::stop_callback<RequestStop>> forwarder_;
};

Task<Outcome> await_call(std::shared_ptr<detail::ClientCore> core, Request request,
                         CallOptions options) {
  CoSend call(std::move(core), std::move(request), std::move(options));
  Outcome outcome = co_await call;
  co_return outcome;
}

// Puts the middlewares of the three lists into one, in the order in which a request passes them.
ClientOptions with_one_chain(ClientOptions options) {
  auto& chain = options.middlewares;
  const auto above = std::exchange(options.call_middlewares, {});
  const auto below = std::exchange(options.attempt_middlewares, {});
  chain.insert(chain.begin(), above.begin(), above.end());
  chain.insert(chain.end(), below.begin(), below.end());
  return options;
}

}  // namespace

std::vector<MiddlewarePtr> default_chain() { return {redirect(), retry(), hedge(), guards()}; }

Client::Client(ClientOptions options)
    : core_(std::make_shared<detail::ClientCore>(with_one_chain(std::move(options)))) {}
Client::Client(std::initializer_list<MiddlewarePtr> middlewares)
    : Client([&] {
        ClientOptions options;
        options.middlewares = middlewares;
        return options;
      }()) {}
Client Client::bare() { return Client(std::initializer_list<MiddlewarePtr>()); }
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&& other) noexcept {
  if (this == &other) return *this;
  shut_down();
  core_ = std::move(other.core_);
  return *this;
}
Client::~Client() { shut_down(); }

void Client::shut_down() {
  if (core_) core_->shut_down();
}

const std::shared_ptr<detail::ClientCore>& Client::core() const {
  if (!core_) detail::misuse("a Client was used after it was moved from");
  return core_;
}

Outcome Client::send(Request request, CallOptions options) {
  return core()->send(std::move(request), std::move(options));
}

Outcome Client::send_with(Request request, const Headers& headers, std::string_view content_type,
                          CallOptions options) {
  for (const auto& [name, value] : headers) request.add_header(name, value);
  if (!content_type.empty()) request.set_header("Content-Type", content_type);
  return send(std::move(request), std::move(options));
}

Task<Outcome> Client::co_send(Request request, CallOptions options) {
  return await_call(core(), std::move(request), std::move(options));
}

OutcomeFuture Client::send_async(Request request, CallOptions options) {
  return OutcomeFuture(core()->send_async(std::move(request), std::move(options)));
}

DrainResult Client::drain(Time deadline) { return core()->drain(deadline); }

Task<DrainResult> Client::co_drain(Time deadline) {
  return detail::ClientCore::co_drain(core(), deadline);
}

DrainResult Client::drain(Duration timeout) { return drain(later(core()->now(), timeout)); }

Task<DrainResult> Client::co_drain(Duration timeout) {
  return co_drain(later(core()->now(), timeout));
}

Scheduler& Client::scheduler() { return core()->scheduler(); }

void Client::run(std::shared_ptr<detail::Work> work) { core()->run(std::move(work)); }

void Client::start(Request request, CallOptions options,
                   std::unique_ptr<detail::Completion> completion) {
  core()->start(std::move(request), std::move(options), std::move(completion));
}

}  // namespace httpretry
