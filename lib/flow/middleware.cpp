#include "call_state.hpp"
#include "hop.hpp"

#include <httpretry/flow/middleware.hpp>

namespace httpretry {
namespace {

Task<Outcome> failed(Error error) { co_return error; }

// For a middleware that awaited something of another client, and continued on that client's loop.
Task<Outcome> return_and_send(Next next, Request request, Call& call) {
  const Hop home(call.scheduler());
  co_await home;
  Outcome outcome = co_await next(std::move(request), call);
  co_return outcome;
}

class OnRequest final : public Middleware {
 public:
  OnRequest(std::string name, std::function<void(Request&, Call&)> change)
      : name_(std::move(name)), change_(std::move(change)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    change_(request, call);
    return next(std::move(request), call);
  }

 private:
  std::string name_;
  std::function<void(Request&, Call&)> change_;
};

class OnOutcome final : public Middleware {
 public:
  OnOutcome(std::string name, std::function<void(const Request&, Outcome&, Call&)> look)
      : name_(std::move(name)), look_(std::move(look)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    Outcome outcome = co_await next(request, call);
    look_(request, outcome, call);
    co_return outcome;
  }

 private:
  std::string name_;
  std::function<void(const Request&, Outcome&, Call&)> look_;
};

class Coroutine final : public Middleware {
 public:
  Coroutine(std::string name, std::function<Task<Outcome>(Request, Call&, Next)> handle)
      : name_(std::move(name)), handle_(std::move(handle)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    return handle_(std::move(request), call, next);
  }

 private:
  std::string name_;
  std::function<Task<Outcome>(Request, Call&, Next)> handle_;
};

}  // namespace

Task<Outcome> Next::operator()(Request request, Call& call) const {
  auto& state = Call::State::of(call);
  if (RunQueue::strayed_from(*state.scheduler)) {
    return return_and_send(*this, std::move(request), call);
  }
  const bool last = index_ == chain_->size();
  std::string_view name = "transport";
  try {
    if (last) {
      ++state.exchanges;
      auto task = state.transport->send(std::move(request), call);
      task.set_thrower(name);
      return task;
    }
    Middleware& middleware = *(*chain_)[index_];
    name = middleware.name();
    auto task = middleware.handle(std::move(request), call, Next(*chain_, index_ + 1));
    task.set_thrower(name);
    return task;
  } catch (...) {
    return failed(detail::internal_error(name, std::current_exception()));
  }
}

MiddlewarePtr on_request(std::string name, std::function<void(Request&, Call&)> change) {
  return std::make_shared<OnRequest>(std::move(name), std::move(change));
}
MiddlewarePtr on_outcome(std::string name,
                         std::function<void(const Request&, Outcome&, Call&)> look) {
  return std::make_shared<OnOutcome>(std::move(name), std::move(look));
}
MiddlewarePtr middleware(std::string name,
                         std::function<Task<Outcome>(Request, Call&, Next)> handle) {
  return std::make_shared<Coroutine>(std::move(name), std::move(handle));
}

}  // namespace httpretry
