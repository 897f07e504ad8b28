#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/response.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace httpretry {

class Call;
class Request;
struct PolicyReload;

// A change of the state of a circuit breaker. The structs here are the arguments of Observer's
// functions; their views are valid only during the notification.
struct HTTPRETRY_API CircuitChange {
  CircuitChange() = default;

  std::string_view key;  // the origin, endpoint or policy that shares the breaker
  Circuit from = Circuit::Closed;
  Circuit to = Circuit::Closed;
  std::string_view why;  // "10 of 20 failed in 10s", "7 failures in a row", "a probe succeeded", …
  std::uint32_t failed = 0;  // sends that failed, of those that the breaker counts
  std::uint32_t total = 0;   // sends that the breaker counts
  Time until = kNever;       // the end of the open state
  bool dry_run = false;      // if true, no send is refused
};

// A pause that a server asked for has begun.
struct HTTPRETRY_API PauseBegun {
  PauseBegun() = default;

  std::string_view key;  // the origin, endpoint or policy that pauses
  Time until = kNever;
  std::string_view source;  // the header that requested the pause: "retry-after"
};

// A concurrency limit has changed.
struct HTTPRETRY_API LimitChange {
  LimitChange() = default;

  std::string_view key;  // the origin, endpoint or policy that shares the limit
  int from = 0;          // concurrent sends
  int to = 0;
};

// The store where a SharedState keeps its limits has become unreachable, or reachable again.
struct HTTPRETRY_API SharedStateChange {
  SharedStateChange() = default;

  std::uint64_t number = 0;  // of the change, counted from 1
  bool degraded = false;     // if true, this process uses its share of each limit
  std::string place;         // "redis://redis.internal:6379/0"
  std::string why;           // why the store is unreachable
};

// Observer is the base of objects that are notified of the events of calls as they happen, for
// traces, metrics and progress displays. To change a request or an outcome, write a Middleware. The
// functions run on the thread that drives the call, so they must be quick and must not throw.
// Several threads may call one Observer at once, for different calls.
class HTTPRETRY_API Observer {
 public:
  virtual ~Observer();
  // Called when a call begins, before its first middleware.
  virtual void call_started(const Call& /*call*/, const Request& /*request*/) noexcept {}
  // Called before the attempt is sent. `attempt_ended` follows, or `shed` if the attempt is held
  // back.
  virtual void attempt_started(const Call& /*call*/, const Request& /*request*/,
                               int /*number*/) noexcept {}
  // Called after the attempt was judged. If `attempt.retried` is true, another attempt follows
  // after `attempt.wait`, or later if guards() holds it back.
  virtual void attempt_ended(const Call& /*call*/, const Request& /*request*/,
                             const Attempt& /*attempt*/) noexcept {}
  // Called when a request is passed to the transport, as all middlewares have changed it. `number`
  // counts the exchanges of the call from 1; Call::attempt is the attempt that the exchange belongs
  // to. An attempt may have several exchanges, for example if a middleware below retry() refreshes
  // a token and sends again.
  virtual void exchange_started(const Call& /*call*/, const Request& /*request*/,
                                int /*number*/) noexcept {}
  // Called when the transport has finished the exchange, before `attempt_ended`. `outcome` has no
  // history yet.
  virtual void exchange_ended(const Call& /*call*/, const Request& /*request*/, int /*number*/,
                              const Outcome& /*outcome*/) noexcept {}
  // Called when the same request is sent again because an earlier send of the attempt has had no
  // response for the time `after` (RetryPolicy::hedge). The hedge has its own `attempt_started` and
  // `attempt_ended`.
  virtual void hedge_started(const Call& /*call*/, const Request& /*request*/, int /*number*/,
                             Duration /*after*/) noexcept {}
  // Called when a hedge was due and was not sent.
  virtual void hedge_refused(const Call& /*call*/, HedgeRefused /*why*/) noexcept {}
  // Called when a guard holds a send back, and again if another guard takes over. `until` is when
  // the send may be made, and kNever if that depends on other sends. `attempt_ended` or `shed`
  // follows. Not called for ClientOptions::max_in_flight.
  virtual void held_back(const Call& /*call*/, QueuedBy /*by*/, Time /*until*/) noexcept {}
  // Called when a redirect is followed. `next` is the request that will be sent.
  virtual void redirected(const Call& /*call*/, const Request& /*next*/) noexcept {}
  // Called after the policy file was reloaded, or failed to reload; `reload` has the result and the
  // problems. Called for the first call that finds the file changed.
  virtual void policies_reloaded(const Call& /*call*/, const PolicyReload& /*reload*/) noexcept {}
  // The functions below report what GuardPolicy holds back. They are called for the call that
  // caused or detected the change. Many calls may share the circuit, pause or limit.
  virtual void circuit_changed(const Call& /*call*/, const CircuitChange& /*change*/) noexcept {}
  virtual void paused(const Call& /*call*/, const PauseBegun& /*pause*/) noexcept {}
  // Called when a pause is over and all sends that waited for it have been made.
  virtual void resumed(const Call& /*call*/, std::string_view /*key*/) noexcept {}
  // Called when the limit of concurrent sends has changed.
  virtual void limit_changed(const Call& /*call*/, const LimitChange& /*change*/) noexcept {}
  // Called when the store behind ClientOptions::shared_state has become unreachable, or reachable
  // again. Called for the first call that detects the change.
  virtual void shared_state_changed(const Call& /*call*/,
                                    const SharedStateChange& /*change*/) noexcept {}
  // Called when a send was refused. Nothing was sent.
  virtual void shed(const Call& /*call*/, const Error& /*reason*/) noexcept {}
  // Called once at the end of each call, with its final outcome.
  virtual void call_ended(const Call& /*call*/, const Outcome& /*outcome*/) noexcept {}
};

}  // namespace httpretry
