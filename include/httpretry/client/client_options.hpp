// ClientOptions and CallOptions: what can be chosen for a client, and for one call. All members
// have a default that suits most programs.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/chain/observer.hpp>
#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace httpretry {

// Where Client::send runs its call.
enum class Blocking : std::uint8_t {
  // On the calling thread. The fastest way.
  OwnThread,
  // On the client's loops, while the thread waits. Each call is handed over to another thread and
  // back, but blocking calls can share HTTP/2 connections.
  SharedLoop,
};

class SharedState;

// Returns redirect(), retry(), hedge() and guards().
[[nodiscard]] HTTPRETRY_API std::vector<MiddlewarePtr> default_chain();

struct HTTPRETRY_API ClientOptions {
  ClientOptions() = default;

  // The chain, outermost first. What stands above retry() happens once per call, what stands below
  // it once per attempt. If it is empty, requests go straight to the transport, and nothing is
  // retried.
  //
  // A chain that does not begin with default_chain() needs hedge() and guards() below retry() for
  // pauses, rates, limits, breakers and hedges. A policy that sets one of these for a chain without
  // the stage is an error: std::invalid_argument when the client is made, Errc::InvalidRequest for
  // a request's own policy. After a policy file has changed, it is a warning in the log.
  //
  // Default: redirect(), retry(), hedge(), guards()
  std::vector<MiddlewarePtr> middlewares = default_chain();

  // Requests whose URL has no scheme and host ("/items", "items?page=2") are sent there: their URL
  // is appended to this one. "https://api.example.com/v1" is the same with and without "/" at its
  // end.
  //
  // Default: empty. Such a request is Errc::InvalidRequest.
  std::string base_url;

  // Names and values that are added to the query of these requests, such as the key of an API.
  //
  // Default: none
  std::vector<std::pair<std::string, std::string>> base_query;

  // The policies for a retry() that was given none itself: a PolicySet, or a file that is read
  // again when it changes (PolicySource::watch).
  //
  // Default: none. retry() then uses the preset "standard" for every endpoint.
  std::optional<PolicySource> policies;

  // Told what happens in each call: attempts, waits, outcomes. Called on the threads that drive
  // the calls.
  //
  // Default: none.
  std::vector<std::shared_ptr<Observer>> observers;

  // The number of loops, each with a thread, for co_send, send_async, send_then and spawn. Started
  // when first needed. One carries thousands of calls; more help only where callbacks need much
  // CPU. A call goes to one with an idle connection to its origin, else to that with the fewest.
  //
  // Default: 1
  int threads = 1;

  // Where Client::send runs its call. Programs whose threads send many requests to one HTTP/2
  // server may want SharedLoop; all others should leave it alone.
  //
  // Default: OwnThread
  Blocking blocking = Blocking::OwnThread;

  // How many exchanges may run at once, over all threads. More wait, first come first served,
  // without a thread or a connection; Timings::queued tells how long. The wait belongs to the call
  // and not to the attempt: attempt_timeout, and a `timeout` below retry(), begin after it.
  //
  // Default: 0, no limit
  int max_in_flight = 0;

  // The same for each origin ("https://api.example.com").
  //
  // Default: 0, no limit
  int max_in_flight_per_origin = 0;

  // Where retry() keeps its budgets, and hedge() and guards() their states, if not in this client:
  // clients that have the same one share them (shared_state.hpp).
  //
  // Default: none, each client has its own
  std::shared_ptr<SharedState> shared_state;

  // How to connect, whom to trust, and what to accept.
  TransportOptions connection;

  // Carries the exchanges instead of libcurl: for tests, and for programs with a network of their
  // own.
  //
  // Default: libcurl
  std::shared_ptr<Transport> transport;

  // Every call runs on it, driven by whoever drives it. An EventLoop (event_loop.hpp) is for
  // programs with a loop of their own, and needs nothing else. With any other, for example that of
  // a test, `transport` must be set, too.
  //
  // Default: the client's own loops
  std::shared_ptr<Scheduler> scheduler;

  // Uniform in [0, 1), for jitter. Called from several threads.
  //
  // Default: a generator that the system seeds
  std::function<double()> random;
};

struct HTTPRETRY_API CallOptions {
  CallOptions() = default;

  // Ends the call with Errc::Canceled, within milliseconds, from any thread.
  //
  // Default: the call cannot be stopped
  std::stop_token stop;

  // The limit of the whole call: all attempts, waits and redirects. An attempt that still runs then
  // ends with Errc::Timeout. A wait that would end later is not begun: the call ends at once, with
  // the outcome of its last attempt. `timed_out(outcome)` is true for both. All limits of time are
  // listed in time.hpp.
  //
  // Default: none
  Duration timeout = kForever;

  // The same as a point in time (of std::chrono::steady_clock), for several calls that share a
  // limit. The earlier of `timeout` and `deadline` counts.
  //
  // Default: none
  Time deadline = kNever;

  // Used instead of the endpoint's policy and of RequestOptions::policy. Errc::InvalidRequest if
  // the client has no retry(), or lacks a stage that the policy needs (ClientOptions::middlewares).
  //
  // Default: the endpoint's policy
  std::shared_ptr<const RetryPolicy> policy;

  // Where a co_send resumes its awaiter.
  //
  // Default: on the loop that carried the call
  Scheduler* resume_on = nullptr;
};

}  // namespace httpretry
