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
// OpenSSL writes to sockets without MSG_NOSIGNAL: a program that speaks TLS should ignore SIGPIPE,
// as the `httpretry` command does; the library does not touch the signals of its process.
//
// A client does not survive a fork: make it in the child. A client with static storage is best
// destroyed before main returns; libcurl itself is never shut down.
#pragma once

#include <httpretry/middleware.hpp>
#include <httpretry/policy_source.hpp>
#include <httpretry/request.hpp>
#include <httpretry/task.hpp>
#include <httpretry/transport.hpp>

#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace httpretry {

struct HTTPRETRY_API ClientOptions {
  ClientOptions();
  ~ClientOptions();
  ClientOptions(const ClientOptions&);
  ClientOptions(ClientOptions&&) noexcept;
  ClientOptions& operator=(const ClientOptions&);
  ClientOptions& operator=(ClientOptions&&) noexcept;

  // Outermost first. Empty: requests go straight to the transport, and nothing is retried.
  std::vector<MiddlewarePtr> middlewares;
  // For the stage retry(), where that was given none of its own: a PolicySet, or a file that is
  // read again when it changes, as PolicySource::watch gives it.
  std::optional<PolicySource> policies;
  std::vector<std::shared_ptr<Observer>> observers;
  // Loops, each with a thread, for co_send, send_async and send_then; started when first needed.
  int threads = 1;
  // true: `send`, too, runs its call on those loops, and only waits. Costs a hand-over, and lets
  // blocking calls share HTTP/2 connections.
  bool blocking_on_loops = false;
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
  CallOptions();
  ~CallOptions();
  CallOptions(const CallOptions&);
  CallOptions(CallOptions&&) noexcept;
  CallOptions& operator=(const CallOptions&);
  CallOptions& operator=(CallOptions&&) noexcept;

  // Ends the call with Errc::Canceled, within milliseconds and from any thread.
  std::stop_token stop;
  // For all of it: attempts, waits, redirects. Errc::Timeout when it is over.
  Duration timeout = kForever;
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
  // Ends what is in flight with Errc::Canceled and waits until it has ended; on a thread of the
  // client's own it does not wait, and the loop frees itself.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  Outcome send(Request request, CallOptions options = CallOptions());
  // Starts when it is awaited. Destroying the task before its end stops the call and does not wait.
  Task<Outcome> co_send(Request request, CallOptions options = CallOptions());
  std::future<Outcome> send_async(Request request, CallOptions options = CallOptions());
  // `callback(Outcome)` runs on the loop's thread, once: it must not block and must not throw. It
  // may be a type that can only be moved.
  template <class Callback>
  void send_then(Request request, Callback callback, CallOptions options = CallOptions()) {
    start(std::move(request), std::move(options),
          std::make_unique<detail::CallbackCompletion<Callback>>(std::move(callback)));
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
  void shut_down();
  std::shared_ptr<detail::ClientCore> core_;
};

}  // namespace httpretry
