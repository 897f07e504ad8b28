// Following: a middleware that waits for nothing but the outcome, and may then have another request
// sent: `redirect`.
#pragma once

#include <httpretry/flow/middleware.hpp>

namespace httpretry {

// Where it is the first of the chain, the coroutine of the call does what `handle` does: each call
// that waits is a frame smaller by it.
class Following : public Middleware {
 public:
  // After each outcome. True: another request is to be sent, and `request` is that one. `outcome`
  // may become an error. `followed`: how many times it was true before.
  virtual bool follow(Outcome& outcome, int followed, Request& request, const Call& call) const = 0;

  Task<Outcome> handle(Request request, Call& call, Next next) final {
    for (int followed = 0;; ++followed) {
      const auto sending = next(request, call);
      Outcome outcome = co_await sending;
      if (!follow(outcome, followed, request, call)) co_return outcome;
    }
  }

  [[nodiscard]] const Following* following() const final { return this; }
};

}  // namespace httpretry
