// ClientOptions and CallOptions: the settings of a client and of a single call. Every member has a
// default that suits most programs.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>
#include <httpretry/chain/observer.hpp>
#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace httpretry {

// The thread that runs the call of Client::send.
enum class Blocking : std::uint8_t {
  // On the calling thread. This is the fastest way.
  OwnThread,
  // On the client's loops, while the calling thread waits. Each call moves to another thread and
  // back, but blocking calls can share HTTP/2 connections.
  SharedLoop,
};

class SharedState;

// Returns redirect(), retry(), hedge() and guards().
[[nodiscard]] HTTPRETRY_API std::vector<MiddlewarePtr> default_chain();

// The settings of a Client: its chain of middlewares, its policies, its limits, and where its calls
// run.
struct HTTPRETRY_API ClientOptions {
  ClientOptions() = default;

  // The chain, outermost middleware first. Middlewares above retry() run once per call, those below
  // it once per attempt. If the list is empty, requests go straight to the transport and are never
  // retried.
  //
  // A chain that does not begin with default_chain() needs hedge() and guards() below retry() to
  // support pauses, rates, limits, breakers and hedges. A policy that sets one of these is an error
  // if the chain lacks the middleware: the constructor of the client throws std::invalid_argument,
  // and a request with such a policy ends with Errc::InvalidRequest. If a reloaded policy file sets
  // one, the library only logs a warning.
  //
  // Default: redirect(), retry(), hedge(), guards()
  std::vector<MiddlewarePtr> middlewares = default_chain();

  // Middlewares to add to that chain: those in the first list above it, so they run once per call,
  // and those in the second list below it, so they run once per send.
  //
  //   options.call_middlewares = {log()};
  //   options.attempt_middlewares = {timeout(2s), bearer(token)};
  //
  // Default: none
  std::vector<MiddlewarePtr> call_middlewares;
  std::vector<MiddlewarePtr> attempt_middlewares;

  // The URL against which the URL of a request is resolved if it has no scheme (RFC 3986). Its path
  // must end with "/". With "https://api.example.com/v1/", "items?page=2" is
  // "https://api.example.com/v1/items?page=2", and "/items" is "https://api.example.com/items".
  //
  // Default: empty. Such a request ends with Errc::InvalidRequest.
  std::string base_url;

  // Names and values to add to the query of requests that use base_url, for example an API key.
  // They are added only to URLs of the same origin, and only if the URL does not have the name.
  //
  // Default: none
  std::vector<std::pair<std::string, std::string>> base_query;

  // The policies for a retry() that was created without any: a PolicySet, or a file that is
  // reloaded when it changes (PolicySource::watch).
  //
  // Default: none. retry() uses the preset "standard" for every endpoint.
  std::optional<PolicySource> policies;

  // Objects that are notified of the events of each call: attempts, waits, outcomes. They are
  // called on the threads that drive the calls.
  //
  // Default: none
  std::vector<std::shared_ptr<Observer>> observers;

  // The number of loops for co_send, send_async, send_then and spawn. Each loop has one thread,
  // which starts when it is first needed. One loop carries thousands of calls; more loops help only
  // if callbacks need much CPU time. A call goes to a loop that has an idle connection to its
  // origin, or otherwise to the loop with the fewest calls.
  //
  // Default: 1
  int threads = 1;

  // The thread that runs the call of Client::send. SharedLoop can help programs in which many
  // threads send requests to the same HTTP/2 server. All other programs should leave this alone.
  //
  // Default: OwnThread
  Blocking blocking = Blocking::OwnThread;

  // How many exchanges may be in flight at once, over all threads. Further exchanges wait in FIFO
  // order, without using a thread or a connection; Timings::queued reports how long. This wait
  // counts toward the call and not the attempt: attempt_timeout, and a `timeout` below retry(),
  // begin after it.
  //
  // Default: 0, no limit
  int max_in_flight = 0;

  // The same limit for each origin ("https://api.example.com").
  //
  // Default: 0, no limit
  int max_in_flight_per_origin = 0;

  // The object that holds the budgets of retry() and the state of hedge() and guards(). Clients
  // that have the same object share them (shared_state.hpp).
  //
  // Default: none, each client has its own state
  std::shared_ptr<SharedState> shared_state;

  // How to connect, which certificates to trust, and which responses to accept.
  TransportOptions connection;

  // Performs the exchanges instead of libcurl. For tests, and for programs with their own network
  // code.
  //
  // Default: libcurl
  std::shared_ptr<Transport> transport;

  // The scheduler on which every call runs. The program (or the test) drives it. A program that has
  // its own event loop sets an EventLoop here (event_loop.hpp). With any other scheduler, for
  // example that of a test, `transport` must be set as well.
  //
  // Default: the client's own loops
  std::shared_ptr<Scheduler> scheduler;

  // Returns random numbers for jitter, uniform in [0, 1). Called from several threads.
  //
  // Default: a generator that is seeded by the system
  std::function<double()> random;

  // Set the members of these names, or add to them, in one expression:
  //   Client client(ClientOptions().with_base_url("https://api.example.com/v1/")
  //                     .with_attempt_middleware(bearer(token)));
  ClientOptions& with_call_middleware(MiddlewarePtr added) {
    return call_middlewares.push_back(std::move(added)), *this;
  }
  ClientOptions& with_attempt_middleware(MiddlewarePtr added) {
    return attempt_middlewares.push_back(std::move(added)), *this;
  }
  ClientOptions& with_base_url(std::string url) { return base_url = std::move(url), *this; }
  ClientOptions& with_policies(PolicySource source) { return policies = std::move(source), *this; }
  ClientOptions& with_observer(std::shared_ptr<Observer> added) {
    return observers.push_back(std::move(added)), *this;
  }
  ClientOptions& with_connection(TransportOptions settings) {
    return connection = std::move(settings), *this;
  }
};

// The settings of a single call, for the functions of Client that send.
struct HTTPRETRY_API CallOptions {
  CallOptions() = default;

  // Cancels the call from any thread: the call ends with Errc::Canceled within milliseconds.
  //
  // Default: the call cannot be stopped
  std::stop_token stop;

  // The limit of the whole call, including all attempts, waits and redirects. An attempt that is
  // still running at the limit ends with Errc::Timeout. A wait that would end after the limit is
  // not begun: the call ends at once, with the outcome of its last attempt. `timed_out(outcome)` is
  // true in both cases. time.hpp lists all time limits.
  //
  // Default: none
  Duration timeout = kForever;

  // The same limit as a point in time of std::chrono::steady_clock, for several calls that share a
  // limit. The earlier of `timeout` and `deadline` applies.
  //
  // Default: none
  Time deadline = kNever;

  // Used instead of the endpoint's policy and of RequestOptions::policy. The call ends with
  // Errc::InvalidRequest if the client has no retry(), or lacks a middleware that the policy needs
  // (ClientOptions::middlewares).
  //
  // Default: the endpoint's policy
  CallPolicy policy;

  // The scheduler on which `co_send` resumes the coroutine that awaits it.
  //
  // Default: on the loop that carried the call
  Scheduler* resume_on = nullptr;

  // Set the members of these names in one expression:
  //   client.get(url, CallOptions().with_timeout(1.5s).with_stop(token))
  CallOptions& with_stop(std::stop_token token) { return stop = std::move(token), *this; }
  CallOptions& with_timeout(Duration limit) { return timeout = limit, *this; }
  CallOptions& with_deadline(Time end) { return deadline = end, *this; }
  CallOptions& with_policy(CallPolicy rules) { return policy = std::move(rules), *this; }
};

}  // namespace httpretry
