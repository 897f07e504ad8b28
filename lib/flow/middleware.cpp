#include "hop.hpp"

#include <httpretry/flow/middleware.hpp>
#include <httpretry/flow/transport.hpp>

namespace httpretry {
namespace {

Task<Outcome> failed(Error error) { co_return error; }

// A stage that awaited something of another client's, say, went on there.
Task<Outcome> at_home(Next next, Request request, Call& call) {
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
  if (RunQueue::strayed_from(call.scheduler())) return at_home(*this, std::move(request), call);
  const bool last = index_ == chain_->size();
  std::string_view name = "transport";
  try {
    if (last) {
      ++call.state_->exchanges;
      auto task = call.state_->transport->send(std::move(request), call);
      task.blame(name);
      return task;
    }
    Middleware& stage = *(*chain_)[index_];
    name = stage.name();
    auto task = stage.handle(std::move(request), call, Next(*chain_, index_ + 1));
    task.blame(name);
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
