#include "lib/core/chain/detail/attempt_headers.hpp"
#include "lib/core/chain/detail/call_state.hpp"
#include "lib/core/flow/resume_on.hpp"

#include "lib/core/base/shortage.hpp"
#include "lib/core/base/text.hpp"

#include <httpretry/chain/middleware.hpp>

#include <algorithm>
#include <new>

namespace httpretry {
namespace {

constexpr std::string_view kTransport = "transport";

Task<Outcome> failed(Error error) { co_return error; }

// Used if a middleware has awaited something of another client and continued on that client's loop.
Task<Outcome> return_and_send(Next next, Request request, Call& call) {
  const ResumeOn home(call.scheduler());
  co_await home;
  Outcome outcome = co_await next(std::move(request), call);
  co_return outcome;
}

// Sends by the transport. Turns an exception into an error, with the transport's name.
Task<Outcome> send_by(Transport& transport, Request request, Call& call) {
  try {
    auto task = transport.send(std::move(request), call);
    task.set_thrower(kTransport);
    return task;
  } catch (...) {
    return failed(detail::internal_error(kTransport, std::current_exception()));
  }
}

// Used if the client has observers. `number` is that of the exchange in its call.
Task<Outcome> send_observed(Transport& transport, Request request, Call& call, int number) {
  call.emit(&Observer::exchange_started, request, number);
  Outcome outcome = co_await send_by(transport, request, call);
  call.emit(&Observer::exchange_ended, request, number, outcome);
  co_return outcome;
}

Task<Outcome> handled_by(Middleware& middleware, Request&& request, Call& call, Next next) {
  auto task = middleware.handle(std::move(request), call, next);
  task.set_thrower(middleware.name());
  return task;
}

// The end of the chain. Not inlined, because each middleware before it would save more registers.
[[gnu::noinline]] Task<Outcome> send_to_transport(Request&& request, Call& call) {
  auto& state = Call::State::of(call);
  const int number = ++state.exchanges;
  auto& transport = *state.transport;
  if (auto* racing = Call::State::racing(call)) racing->on_start();
  if (!state.common->transport_adds_headers) add_attempt_headers(request, call);
  if (state.common->observers->empty()) return send_by(transport, std::move(request), call);
  auto task = send_observed(transport, std::move(request), call, number);
  task.set_thrower(kTransport);
  return task;
}

class FunctionMiddleware final : public Middleware {
 public:
  FunctionMiddleware(std::string name, detail::Handle handle)
      : name_(std::move(name)), handle_(std::move(handle)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    return handle_(std::move(request), call, next);
  }

 private:
  std::string name_;
  detail::Handle handle_;
};

bool is_bad_alloc(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

bool Next::has(std::string_view name) const {
  return std::any_of(first_, end_, [name](const auto& each) { return each->name() == name; });
}

Middleware::~Middleware() = default;

Error detail::internal_error(std::string_view name, const std::exception_ptr& thrown) {
  Error error(Errc::Internal, "middleware \"" + std::string(name) + "\" threw: " + text_of(thrown));
  if (is_bad_alloc(thrown)) error.curl_code = kOutOfMemory;
  error.exchange.sent = Sent::Maybe;  // the exception does not say whether the request was sent
  return error;
}

// Passes the request to the next middleware, or to the transport at the end of the chain. Turns an
// exception into an error, with the name of what threw it.
Task<Outcome> Next::operator()(Request request, Call& call) const {
  if (RunQueue::is_not_driving(*Call::State::of(call).scheduler)) {
    return return_and_send(*this, std::move(request), call);
  }
  const bool at_end = first_ == end_;
  try {
    if (at_end) return send_to_transport(std::move(request), call);
    return handled_by(**first_, std::move(request), call, Next(first_ + 1, end_));
  } catch (...) {
    const auto name = at_end ? kTransport : (*first_)->name();
    return failed(detail::internal_error(name, std::current_exception()));
  }
}

MiddlewarePtr detail::make_middleware(std::string name, Handle handle) {
  return std::make_shared<FunctionMiddleware>(std::move(name), std::move(handle));
}

MiddlewarePtr on_request(std::string name, std::function<void(Request&, Call&)> change) {
  return detail::make_middleware(
      std::move(name),
      [change = std::move(change)](Request&& request, Call& call, const Next& next) {
        change(request, call);
        return next(std::move(request), call);
      });
}

MiddlewarePtr on_outcome(std::string name,
                         std::function<void(const Request&, Outcome&, Call&)> inspect) {
  return middleware(
      std::move(name),
      [inspect = std::move(inspect)](Request request, Call& call, Next next) -> Task<Outcome> {
        Outcome outcome = co_await next(request, call);
        inspect(request, outcome, call);
        co_return outcome;
      });
}

}  // namespace httpretry
