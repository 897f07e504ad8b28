#include <httpretry/client/client.hpp>

#include "core.hpp"

#include "lib/flow/hop.hpp"

#include <mutex>

namespace httpretry {

detail::Completion::~Completion() = default;

namespace {

ClientOptions with_middlewares(std::initializer_list<MiddlewarePtr> middlewares) {
  ClientOptions options;
  options.middlewares = middlewares;
  return options;
}

// Where a call and the coroutine that awaits it meet. The coroutine may be destroyed while the call
// runs; then the call is stopped and its outcome dropped.
struct Meeting {
  std::stop_source stop;
  std::optional<Outcome> outcome;
  std::coroutine_handle<> awaiter;
  std::atomic<bool> settled = false;  // the outcome is there, or nobody waits for it any more
  std::recursive_mutex mutex;         // of a scheduler's that resumes at once, too
  Scheduler* resume_on = nullptr;     // while somebody waits; guarded by the mutex

  void meet() {
    if (!settled.exchange(true, std::memory_order_acq_rel)) awaiter.resume();
  }
};

// Looks whether anybody waits only when it has got there: until then the awaiter may be destroyed
// on that scheduler, with the outcome already on its way.
detail::Detached meet_there(std::shared_ptr<Meeting> meeting, Scheduler& scheduler) {
  const Hop hop(scheduler);
  co_await hop;
  meeting->meet();
}

class MeetingCompletion final : public detail::Completion {
 public:
  MeetingCompletion(std::shared_ptr<Meeting> meeting, bool elsewhere)
      : meeting_(std::move(meeting)), elsewhere_(elsewhere) {}
  void complete(Outcome outcome) noexcept override {
    const std::unique_ptr<MeetingCompletion> self(this);
    const auto meeting = std::move(meeting_);
    meeting->outcome.emplace(std::move(outcome));
    if (!elsewhere_) return meeting->meet();
    // The scheduler need not outlive whoever waits there: it is used while that one cannot go.
    const std::lock_guard lock(meeting->mutex);
    if (meeting->resume_on != nullptr) meet_there(meeting, *meeting->resume_on);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  bool elsewhere_;
};

// Awaited for the outcome of a call on one of the core's loops.
class Sending {
 public:
  Sending(std::shared_ptr<detail::ClientCore> core, Request request, CallOptions options)
      : core_(std::move(core)), request_(std::move(request)), options_(std::move(options)) {
    meeting_->resume_on = options_.resume_on;
  }
  ~Sending() {
    forward_.reset();
    {
      const std::lock_guard lock(meeting_->mutex);
      meeting_->resume_on = nullptr;
    }
    if (!meeting_->settled.exchange(true, std::memory_order_acq_rel)) meeting_->stop.request_stop();
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> awaiter) {
    meeting_->awaiter = awaiter;
    if (options_.stop.stop_possible()) forward_.emplace(options_.stop, Forward{meeting_->stop});
    options_.stop = meeting_->stop.get_token();
    const bool elsewhere = options_.resume_on != nullptr;
    // From here on the awaiter may run, and end, on another thread.
    const auto core = core_;
    core->start(std::move(request_), std::move(options_),
                std::make_unique<MeetingCompletion>(meeting_, elsewhere));
  }
  Outcome await_resume() { return *std::move(meeting_->outcome); }

 private:
  struct Forward {
    std::stop_source to;
    void operator()() { to.request_stop(); }
  };
  std::shared_ptr<detail::ClientCore> core_;
  Request request_;
  CallOptions options_;
  std::shared_ptr<Meeting> meeting_ = std::make_shared<Meeting>();
  std::optional<std::stop_callback<Forward>> forward_;
};

Task<Outcome> send_on(std::shared_ptr<detail::ClientCore> core, Request request,
                      CallOptions options) {
  Sending sending(std::move(core), std::move(request), std::move(options));
  Outcome outcome = co_await sending;
  co_return outcome;
}

}  // namespace

Client::Client(ClientOptions options)
    : core_(std::make_shared<detail::ClientCore>(std::move(options))) {}
Client::Client(std::initializer_list<MiddlewarePtr> middlewares)
    : Client(with_middlewares(middlewares)) {}
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

Outcome Client::send(Request request, CallOptions options) {
  return core_->send(std::move(request), std::move(options));
}

Task<Outcome> Client::co_send(Request request, CallOptions options) {
  return send_on(core_, std::move(request), std::move(options));
}

std::future<Outcome> Client::send_async(Request request, CallOptions options) {
  std::promise<Outcome> promise;
  auto outcome = promise.get_future();
  send_then(
      std::move(request),
      [promise = std::move(promise)](Outcome value) mutable {
        promise.set_value(std::move(value));
      },
      std::move(options));
  return outcome;
}

void Client::run(std::shared_ptr<detail::Work> work) { core_->run(std::move(work)); }

void Client::start(Request request, CallOptions options,
                   std::unique_ptr<detail::Completion> completion) {
  core_->start(std::move(request), std::move(options), std::move(completion));
}

}  // namespace httpretry
