// Middleware: a member of the chain that every request passes. It wraps what comes after it: it may
// change the request, look at the outcome, send again, or respond by itself.
//
// A client's list of middlewares reads from the outside in. What stands above `retry` happens once
// per call, what stands below it once per attempt:
//
//   log -> redirect -> retry -> hedge -> guards -> timeout -> bearer -> (libcurl)
//
// Most middlewares need no coroutine:
//
//   on_request("tenant", [](Request& request, Call&) { request.set_header("X-Tenant", "7"); })
//   on_outcome("count", [&](const Request&, Outcome& outcome, Call&) { if (!outcome) ++failures; })
#pragma once

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
using MiddlewarePtr = std::shared_ptr<Middleware>;

// The rest of the chain. A small value: keep it, call it never, once or several times.
class HTTPRETRY_API Next {
 public:
  Next(const std::vector<MiddlewarePtr>& chain, std::size_t index)
      : Next(chain.data() + index, chain.data() + chain.size()) {}
  // `call` must outlive the task.
  Task<Outcome> operator()(Request request, Call& call) const;
  // Whether the rest of the chain has a middleware of that name.
  [[nodiscard]] bool has(std::string_view name) const;

 private:
  Next(const MiddlewarePtr* first, const MiddlewarePtr* end) : first_(first), end_(end) {}
  const MiddlewarePtr* first_;
  const MiddlewarePtr* end_;  // there is the transport
};

// One Middleware object serves all calls of its client, on several threads at once: what it keeps
// between calls needs a lock of its own; what belongs to one call lives in the coroutine.
class HTTPRETRY_API Middleware {
 public:
  virtual ~Middleware();
  // For messages, and for checks of the chain's order. Must not change.
  [[nodiscard]] virtual std::string_view name() const = 0;
  // An exception ends the call with an Errc::Internal that names the middleware. It must await
  // every task that it starts before it returns. Where there is nothing to do for a request, it
  // need not be a coroutine: `return next(std::move(request), call);`
  virtual Task<Outcome> handle(Request request, Call& call, Next next) = 0;
};

// A middleware that changes the request, or only looks at it.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr on_request(std::string name,
                                                     std::function<void(Request&, Call&)> change);
// A middleware that looks at the outcome, or changes it.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr
on_outcome(std::string name, std::function<void(const Request&, Outcome&, Call&)> look);
namespace detail {
using Handle = std::function<Task<Outcome>(Request, Call&, Next)>;
[[nodiscard]] HTTPRETRY_API MiddlewarePtr make_middleware(std::string name, Handle handle);
}  // namespace detail

// A middleware from a coroutine, a `Task<Outcome>(Request, Call&, Next)`. The function is kept as
// long as the client, so the coroutine may use the captures of a lambda. Parameters must be taken
// by value, except Call&.
template <class F>
[[nodiscard]] MiddlewarePtr middleware(std::string name, F handle) {
  if constexpr (detail::Parameters<F>::known) {
    detail::check_coroutine_function<F>();
    return detail::make_middleware(std::move(name), std::move(handle));
  } else {
    // A lambda with `auto` may take references: what they refer to is kept in this coroutine.
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
