// A middleware that does nothing, as a coroutine.
#pragma once

#include <httpretry/chain/middleware.hpp>

#include <memory>

namespace bench {

class Passing final : public httpretry::Middleware {
 public:
  [[nodiscard]] std::string_view name() const override { return "passing"; }
  httpretry::Task<httpretry::Outcome> handle(httpretry::Request request, httpretry::Call& call,
                                             httpretry::Next next) override {
    httpretry::Outcome outcome = co_await next(std::move(request), call);
    co_return outcome;
  }
};

inline httpretry::MiddlewarePtr passing() { return std::make_shared<Passing>(); }

}  // namespace bench
