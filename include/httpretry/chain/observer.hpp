// Observer: is told of everything that happens to a call, as it happens. For traces, metrics and
// live progress. To change a request or an outcome, write a Middleware.
#pragma once

#include <httpretry/http/response.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace httpretry {

class Call;
class Request;
struct PolicyReload;

// What observers are told. The views live as long as the event.
struct HTTPRETRY_API CircuitChange {
  CircuitChange() = default;

  std::string_view key;
  Circuit from = Circuit::Closed;
  Circuit to = Circuit::Closed;
  std::string_view why;  // "10 of 20 failed in 10s", "7 failures in a row", "a probe succeeded", …
  std::uint32_t failed = 0;
  std::uint32_t total = 0;
  Time until = kNever;   // of an open one
  bool dry_run = false;  // nothing is refused
};

struct HTTPRETRY_API PauseBegun {
  PauseBegun() = default;

  std::string_view key;
  Time until = kNever;
  std::string_view source;  // the header that asked for it: "retry-after"
};

struct HTTPRETRY_API LimitChange {
  LimitChange() = default;

  std::string_view key;
  int from = 0;  // sends at once
  int to = 0;
};

// The place where a SharedState keeps its limits cannot be reached any more, or can again.
struct HTTPRETRY_API SharedStateChange {
  SharedStateChange() = default;

  std::uint64_t number = 0;  // of the change, from 1
  bool degraded = false;     // this process goes on with its share of each limit
  std::string place;         // "redis://redis.internal:6379/0"
  std::string why;           // it cannot be reached
};

// Each function runs on the thread that drives the call, so it must be quick. Several threads may
// call one Observer at once, for different calls. It must not throw.
class HTTPRETRY_API Observer {
 public:
  virtual ~Observer();
  virtual void call_started(const Call& /*call*/, const Request& /*request*/) noexcept {}
  // Before the attempt is sent. It ends with `attempt_ended`, or with `shed` where it is held back.
  virtual void attempt_started(const Call& /*call*/, const Request& /*request*/,
                               int /*number*/) noexcept {}
  // After it was judged: `attempt.retried` says whether another follows, after `attempt.wait`.
  virtual void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                             const Attempt& /*attempt*/) noexcept {}
  // A request goes to the transport, as all middlewares have made it. `number` counts the exchanges
  // of the call from 1; Call::attempt is the attempt that this one belongs to. There may be several
  // in an attempt: a middleware below retry() that refreshes a token sends twice.
  virtual void exchange_started(const Call& /*call*/, const Request& /*request*/,
                                int /*number*/) noexcept {}
  // The transport is done with it. Told before `attempt_ended`; `outcome` has no history yet.
  virtual void exchange_ended(const Call& /*call*/, const Request& /*request*/, int /*number*/,
                              const Outcome& /*outcome*/) noexcept {}
  // The same request is sent again while an earlier send of the attempt has no response for that
  // time (RetryPolicy::hedge). It has an `attempt_started` and an `attempt_ended` of its own.
  virtual void hedge_started(const Call& /*call*/, const Request& /*request*/, int /*number*/,
                             Duration /*after*/) noexcept {}
  virtual void hedge_refused(const Call& /*call*/, HedgeRefused /*why*/) noexcept {}
  // A redirect is followed; `next` is the request that will be sent.
  virtual void redirected(const Call& /*call*/, const Request& /*next*/) noexcept {}
  // The policy file was read again, or could not be read; `reload` says which, and what was wrong.
  // Told for the first call that finds the file changed.
  virtual void policies_reloaded(const Call& /*call*/, const PolicyReload& /*reload*/) noexcept {}
  // The next ones are told of what GuardPolicy holds back, for the call that caused or found the
  // change. Many calls may share what has changed.
  virtual void circuit_changed(const Call& /*call*/, const CircuitChange& /*change*/) noexcept {}
  virtual void paused(const Call& /*call*/, const PauseBegun& /*pause*/) noexcept {}
  // A pause is over, and all that waited for it has been sent.
  virtual void resumed(const Call& /*call*/, std::string_view /*key*/) noexcept {}
  // Of the number of sends at once.
  virtual void limit_changed(const Call& /*call*/, const LimitChange& /*change*/) noexcept {}
  // ClientOptions::shared_state cannot reach the place where it keeps the limits, or can again.
  // Told for the first call that finds it changed.
  virtual void shared_state_changed(const Call& /*call*/,
                                    const SharedStateChange& /*change*/) noexcept {}
  // A send was refused, and nothing was sent.
  virtual void shed(const Call& /*call*/, const Error& /*reason*/) noexcept {}
  virtual void call_ended(const Call& /*call*/, const Outcome& /*outcome*/) noexcept {}
};

}  // namespace httpretry
