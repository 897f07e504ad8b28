// Client: where requests are sent from. Safe to use from many threads at once; make one and keep
// it, for it holds the connections.
//
//   Client client({retry(), timeout(std::chrono::seconds(2))});
//   Outcome outcome = client.get("https://api.example.com/v1/items");
//
// Four doors lead to the same chain of middlewares:
//
//   send        blocks; the call runs on the calling thread
//   co_send     a Task to await; the call runs on a loop of the client's
//   send_async  a std::future
//   send_then   a callback
//
// Only `send` holds a thread, the caller's, and it must not be used on a thread that drives a loop
// (in a callback, a middleware, after a co_send that resumed there): it answers with Errc::Internal
// then, where a wait would never end.
//
// Every call ends once, and all doors tell how. Where there is no memory to begin one a door throws
// std::bad_alloc, and nothing is sent; later it is an outcome. A call that is stopped
// (CallOptions::stop, the end of the client) ends with Errc::Canceled wherever it waits: for
// admission, for the name's address, a connection, an answer, or its next attempt; after that it
// sends nothing.
//
// OpenSSL writes to sockets without MSG_NOSIGNAL: a program that speaks TLS should ignore SIGPIPE,
// as the `httpretry` command does; the library does not touch the signals of its process.
//
// A client does not survive a fork: its threads are the parent's, and so are its connections. The
// child makes one of its own; the one it inherited it may only destroy, which touches nothing. A
// client that is itself an object with static storage may be destroyed after main: libcurl is never
// shut down, and OpenSSL not before the objects that were made when it was. What the client's
// middlewares use must live as long.
#pragma once

#include <httpretry/curl/transport_options.hpp>
#include <httpretry/flow/middleware.hpp>
#include <httpretry/flow/shared.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/flow/transport.hpp>
#include <httpretry/http/request.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstdint>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace httpretry {

// Where a `send` runs its call.
enum class Blocking : std::uint8_t {
  OwnThread,   // on the calling thread, which is the fastest
  SharedLoop,  // on the client's loops, while the thread waits: costs a hand-over each way, and
               // lets blocking calls share HTTP/2 connections
};

struct HTTPRETRY_API ClientOptions {
  ClientOptions() = default;

  // Outermost first. Empty: requests go straight to the transport, and nothing is retried.
  std::vector<MiddlewarePtr> middlewares;
  // For the stage retry(), where that was given none of its own: a PolicySet, or a file that is
  // read again when it changes, as PolicySource::watch gives it.
  std::optional<PolicySource> policies;
  std::vector<std::shared_ptr<Observer>> observers;
  // Loops, each with a thread, for co_send, send_async, send_then and spawn; started when first
  // needed.
  int threads = 1;
  Blocking blocking = Blocking::OwnThread;
  // Exchanges that may be under way at once, over all threads: in all, and with one origin
  // ("https://api.example.com"). 0 is no limit. What comes beyond waits for its turn, first come
  // first served, with neither a thread nor a connection; Timings::queued tells how long. The wait
  // is the call's, not the attempt's: attempt_timeout, and a `timeout` below `retry`, begin after
  // it.
  int max_in_flight = 0;
  int max_in_flight_per_origin = 0;
  TransportOptions connection;

  // For tests, and for programs with a network or a loop of their own. Where `scheduler` is given
  // every call runs on it, driven by whoever drives it, and `transport` must be given too.
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Scheduler> scheduler;
  // Uniform in [0, 1); called from several threads. Seeded from the system where left out.
  std::function<double()> random;
};

// What belongs to one call.
struct HTTPRETRY_API CallOptions {
  CallOptions() = default;

  // Ends the call with Errc::Canceled, within milliseconds and from any thread.
  std::stop_token stop;
  // For all of it: attempts, waits, redirects. Errc::Timeout when it is over.
  Duration timeout = kForever;
  // The same as a point in time (of std::chrono::steady_clock), for a limit that several calls
  // share; the earlier of the two counts.
  Time deadline = kNever;
  // Used instead of the endpoint's policy, and of RequestOptions::policy. Errc::InvalidRequest
  // where the client has no stage retry().
  std::shared_ptr<const RetryPolicy> policy;
  // Where a co_send resumes its awaiter; on the loop that carried the call where left out.
  Scheduler* resume_on = nullptr;
};

namespace detail {

class ClientCore;

// Told once how a call ended, on the thread that drove it; frees itself.
class HTTPRETRY_API Completion {
 public:
  virtual ~Completion();
  virtual void complete(Outcome outcome) noexcept = 0;
};

template <class Callback>
class CallbackCompletion final : public Completion {
 public:
  explicit CallbackCompletion(Callback callback) : callback_(std::move(callback)) {}
  void complete(Outcome outcome) noexcept override {
    const std::unique_ptr<CallbackCompletion> self(this);
    callback_(std::move(outcome));
  }

 private:
  Callback callback_;
};

}  // namespace detail

class HTTPRETRY_API Client {
 public:
  // Throws std::invalid_argument where the chain cannot work (two stages named "retry", "redirect"
  // below "retry", policies without a stage "retry", a null entry) or an option makes no sense.
  explicit Client(ClientOptions options = {});
  Client(std::initializer_list<MiddlewarePtr> middlewares);
  // Ends what is in flight with Errc::Canceled and waits until it has ended: not while holding what
  // a callback may wait for. On a thread of the client's own it does not wait for that thread's
  // calls, and its loop frees itself.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  Outcome send(Request request, CallOptions options = CallOptions());
  // Starts when it is awaited. Destroying the task before its end stops the call and does not wait.
  //
  // As with any coroutine, one thread must not destroy it while another resumes it. It is resumed
  // once, when the call ends, on the loop's thread or on `resume_on`: there it may be destroyed at
  // any time, elsewhere only while it is certain that the call has not ended. A thread that cannot
  // know requests a stop (CallOptions::stop) and lets the task end.
  Task<Outcome> co_send(Request request, CallOptions options = CallOptions());
  std::future<Outcome> send_async(Request request, CallOptions options = CallOptions());
  // `callback(Outcome)` runs on the loop's thread, once: it must not block and must not throw. It
  // may be a type that can only be moved.
  template <class Callback>
  void send_then(Request request, Callback callback, CallOptions options = CallOptions()) {
    start(std::move(request), std::move(options),
          std::make_unique<detail::CallbackCompletion<Callback>>(std::move(callback)));
  }

  // Work that many calls wait for, as the renewal of a token: `work(Scheduler&)` is a coroutine, a
  // Task<Result<T>>, and runs on one of the client's loops, apart from the call that needed it
  // first. The function is kept until its end; a lambda's captures are safe to use in it. The end
  // of the client calls off what it waits for on that scheduler.
  template <class Function>
  [[nodiscard]] auto spawn(Function work) {
    using Answer = decltype(std::declval<std::invoke_result_t<Function&, Scheduler&>&>()
                                .
                                operator co_await()
                                .await_resume());
    using Value = typename Answer::value_type;
    auto shared = std::make_shared<detail::SharedWork<Value>>(std::move(work));
    run(shared);
    return Shared<Value>(std::move(shared));
  }

  Outcome get(std::string url) { return send(Request::get(std::move(url))); }
  Outcome head(std::string url) { return send(Request::head(std::move(url))); }
  Outcome del(std::string url) { return send(Request::del(std::move(url))); }
  Outcome post(std::string url, Body body) {
    return send(Request::post(std::move(url), std::move(body)));
  }
  Outcome put(std::string url, Body body) {
    return send(Request::put(std::move(url), std::move(body)));
  }
  Outcome patch(std::string url, Body body) {
    return send(Request::patch(std::move(url), std::move(body)));
  }

 private:
  void start(Request request, CallOptions options, std::unique_ptr<detail::Completion> completion);
  void run(std::shared_ptr<detail::Work> work);
  void shut_down();
  std::shared_ptr<detail::ClientCore> core_;
};

}  // namespace httpretry
