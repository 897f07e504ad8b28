#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/call.hpp>
#include <httpretry/chain/detail/coroutine_function.hpp>
#include <httpretry/flow/task.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

class Middleware;
// A middleware that several clients may share.
using MiddlewarePtr = std::shared_ptr<Middleware>;

// Next is the rest of the chain, seen from one middleware. It is a small value that may be copied,
// and called any number of times: each call passes a request on.
class HTTPRETRY_API Next {
 public:
  Next(const std::vector<MiddlewarePtr>& chain, std::size_t index)
      : Next(chain.data() + index, chain.data() + chain.size()) {}
  // Passes the request to the rest of the chain. `call` must outlive the task.
  Task<Outcome> operator()(Request request, Call& call) const;
  // Returns whether the rest of the chain has a middleware of that name.
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  Next(const MiddlewarePtr* first, const MiddlewarePtr* end) : first_(first), end_(end) {}
  const MiddlewarePtr* first_;
  const MiddlewarePtr* end_;  // the transport comes after the last one
};

// Middleware is a member of the chain through which a client sends every request. It wraps the rest
// of the chain: it can change the request, examine the outcome, send again, or respond by itself.
// One object serves all calls of its client, on several threads at once. State that it keeps
// between calls needs a lock; state of a single call belongs in the coroutine.
//
// A client's list of middlewares is in order from the outside in. Those above `retry` run once per
// call, those below it once per attempt:
//
//   log -> redirect -> retry -> hedge -> guards -> timeout -> bearer -> (libcurl)
//
// Most middlewares need no coroutine:
//
//   on_request("tenant", [](Request& request, Call&) { request.set_header("X-Tenant", "7"); })
//   on_outcome("count", [&](const Request&, Outcome& outcome, Call&) { if (!outcome) ++failures; })
class HTTPRETRY_API Middleware {
 public:
  virtual ~Middleware();
  // Returns the name for messages, and for checks of the order of the chain. Must always return the
  // same name.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Processes a request and returns its outcome. May call `next` once, several times (as retry()
  // does), or not at all (to respond by itself). An exception ends the call with an Errc::Internal
  // that names the middleware. The function must await every task that it starts before it returns.
  // If it has nothing to do for a request, it need not be a coroutine:
  //   return next(std::move(request), call);
  virtual Task<Outcome> handle(Request request, Call& call, Next next) = 0;
};

// Returns a middleware that calls `change` before each request is passed on. `change` may modify
// the request.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr on_request(std::string name,
                                                     std::function<void(Request&, Call&)> change);
// Returns a middleware that calls `look` with each outcome. `look` may modify the outcome.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr
on_outcome(std::string name, std::function<void(const Request&, Outcome&, Call&)> look);
namespace detail {
using Handle = std::function<Task<Outcome>(Request, Call&, Next)>;
[[nodiscard]] HTTPRETRY_API MiddlewarePtr make_middleware(std::string name, Handle handle);
}  // namespace detail

// Returns a middleware that calls a coroutine, a `Task<Outcome>(Request, Call&, Next)`. The
// function object is kept as long as the client, so the captures of a lambda stay valid. The
// coroutine must take its parameters by value, except Call&, because it may continue after its
// caller has returned. Only a lambda with `auto` parameters may take references, because the
// middleware keeps the arguments of such a lambda until its coroutine ends.
template <class F>
[[nodiscard]] MiddlewarePtr middleware(std::string name, F handle) {
  if constexpr (detail::Parameters<F>::known) {
    detail::check_coroutine_function<F>();
    return detail::make_middleware(std::move(name), std::move(handle));
  } else {
    // The parameters of a lambda with `auto` cannot be checked. If they are references, they refer
    // to the parameters of the coroutine below, which exist until `task` has ended.
    return detail::make_middleware(
        std::move(name),
        [handle = std::move(handle)](Request request, Call& call,
                                     Next next) mutable -> Task<Outcome> {
          const auto task = handle(std::move(request), call, next);
          Outcome outcome = co_await task;
          co_return outcome;
        });
  }
}

}  // namespace httpretry
