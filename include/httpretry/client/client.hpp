// Client, and the types that its functions return.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>
#include <httpretry/chain/shared.hpp>
#include <httpretry/client/client_options.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/http/request.hpp>

#include <future>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace httpretry::detail {

class ClientCore;
struct CoreOf;

// Receives the outcome of one call, once, on the thread that drove the call. `complete` deletes the
// object.
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

// The type of the expression `co_await awaitable`.
template <class Awaitable>
using ResultOf = decltype(std::declval<Awaitable&>().operator co_await().await_resume());

}  // namespace httpretry::detail

namespace httpretry {

// A std::future that throws std::logic_error if `get` or `wait` would block a thread that drives a
// loop.
class OutcomeFuture : public std::future<Outcome> {
 public:
  OutcomeFuture() = default;
  explicit OutcomeFuture(std::future<Outcome> plain) : std::future<Outcome>(std::move(plain)) {}
  // Return the outcome, and wait for it, as a std::future does.
  Outcome get() { return check(), std::future<Outcome>::get(); }
  void wait() const { return check(), std::future<Outcome>::wait(); }

 private:
  void check() const {
    if (!valid() || wait_for(Duration::zero()) == std::future_status::ready) return;
    detail::check_may_block("get() or wait() of a future");
  }
};

// How the calls ended that were in flight when Client::drain began.
struct DrainResult {
  std::size_t succeeded = 0;  // according to the policy
  std::size_t failed = 0;     // ended without success, by themselves
  std::size_t canceled = 0;   // by the deadline, or by their own stop token
};

// Client sends requests through a chain of middlewares, and owns the connections. Create one, keep
// it for the life of the program and share it: any number of threads may call its functions at
// once.
//
//   Client client;  // follows redirects, and retries
//   Outcome outcome = client.get("https://api.example.com/v1/items");
//
// There are four ways to send a request. All of them use the same chain of middlewares:
//
//   send        blocks; the call runs on the calling thread
//   co_send     returns a Task to await; the call runs on one of the client's loops
//   send_async  returns a std::future; the call runs on one of the client's loops
//   send_then   calls a function at the end; the call runs on one of the client's loops
//
// Every call ends exactly once, with an Outcome. A call can be stopped by CallOptions::stop or by
// the destruction of the client. A stopped call sends nothing more and ends with Errc::Canceled,
// whether it waits for admission, an address, a connection, a response or the next attempt. If
// there is not enough memory to begin a call, these functions throw std::bad_alloc and nothing is
// sent. A call that has begun ends with an error instead.
//
// A program that has its own event loop can drive the calls itself; see event_loop.hpp.
//
// `send` blocks its thread. A thread that drives a loop (in a callback, in a middleware, or after a
// co_send that resumed there) would wait for itself, so `send` returns Errc::Internal on it. `get`
// and `wait` of a future, and `sync_wait`, throw std::logic_error on such a thread.
//
// A moved-from Client may only be assigned or destroyed. Any other use aborts with a message.
//
// SIGPIPE: OpenSSL writes to sockets without MSG_NOSIGNAL, so a program that uses TLS should ignore
// SIGPIPE. The library does not change the signal handling of the process.
//
// fork: a client cannot be used in a child process, because its threads and connections belong to
// the parent. The child must create a new client. It may destroy the old one, which has no effect
// on the parent.
//
// A client with static storage duration may be destroyed after main if everything that its
// middlewares use still exists. The library never shuts libcurl down.
class HTTPRETRY_API Client {
 public:
  // `Client client;` follows redirects, and retries according to the policy "standard".
  //
  // Throws std::invalid_argument
  // * if the chain cannot work: a middleware is null, two are named "retry" or two "hedge",
  //   "redirect" stands below "retry", "guards" stands above "retry" or "hedge", or "hedge" has no
  //   "retry" above it;
  // * if ClientOptions::policies is set and the chain has no "retry";
  // * if a policy sets a pause, a rate, a concurrency limit or a breaker and the chain lacks
  //   guards(), or sets a hedge and the chain lacks hedge();
  // * if another option has an invalid value.
  explicit Client(ClientOptions options = ClientOptions());
  Client(std::initializer_list<MiddlewarePtr> middlewares);
  // Returns a client without middlewares, which sends each request once.
  [[nodiscard]] static Client bare();
  // Ends the calls in flight with Errc::Canceled, requests a stop on their tokens (Call::stop), and
  // blocks until the calls have ended. Do not hold a lock that a callback may wait for. On one of
  // the client's own threads, the destructor does not wait for the calls of that thread. It never
  // waits for calls on an EventLoop; these end in the next turns of that loop.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  // Sends a request and blocks until the call has ended.
  Outcome send(Request request, CallOptions options = CallOptions());

  // Returns a task that sends a request. The call starts when the task is awaited. Destroying the
  // task stops the call and does not block.
  //
  // As with any coroutine, one thread must not destroy the task while another thread resumes it.
  // The task is resumed once, when the call ends, on the loop's thread or on
  // CallOptions::resume_on. On that thread it may be destroyed at any time. Another
  // thread must not destroy it while the call may end, because the end resumes it. That thread can
  // request a stop instead (CallOptions::stop) and let the task end.
  Task<Outcome> co_send(Request request, CallOptions options = CallOptions());

  // Starts a call and returns its outcome as a future.
  OutcomeFuture send_async(Request request, CallOptions options = CallOptions());

  // Starts a call. At its end, calls `callback(Outcome)` once, on the loop's thread. The callback
  // must not block and must not throw. It may be a move-only type.
  template <class Callback>
  void send_then(Request request, Callback callback, CallOptions options = CallOptions()) {
    start(std::move(request), std::move(options),
          std::make_unique<detail::CallbackCompletion<Callback>>(std::move(callback)));
  }

  // Starts work that many calls can wait for, such as the renewal of a token. `work(Scheduler&)` is
  // a coroutine that returns a Task<Result<T>>. It runs on one of the client's loops, independently
  // of the call that started it. The function object is kept until the work ends, so the captures
  // of a lambda stay valid. When the client is destroyed, the work's waits on that scheduler end.
  template <class Function>
  [[nodiscard]] auto spawn(Function work) {
    using Made = detail::ResultOf<std::invoke_result_t<Function&, Scheduler&>>;
    auto shared = std::make_shared<detail::SharedWork<typename Made::value_type>>(std::move(work));
    run(shared);
    return Shared<typename Made::value_type>(std::move(shared));
  }

  // Shuts the client down gracefully. From now on no call begins: each new call ends with
  // Errc::Canceled and a message with the reason. Calls in flight continue, with their retries,
  // until `deadline`; then the remaining calls are canceled. Returns when all calls have ended. The
  // work of `spawn` is also awaited but is not part of the result; calls in flight may still spawn
  // work that they need. Afterwards the client may only be destroyed. If the program has jobs of
  // several calls each, let the jobs end first, because their next calls would be refused.
  //
  //   const auto ends = client.drain(10s);
  //
  // `drain` throws std::logic_error on a thread that drives a loop. Use `co_drain` there: it begins
  // when it is awaited and resumes on one of the client's loops. A call or a spawned work of this
  // client must not await it, because it would wait for itself. `co_drain` throws Failure if it
  // cannot get a loop. If ClientOptions::scheduler is set, `drain` drives that scheduler, as `send`
  // does, and uses its clock for the deadline. It does not drive an EventLoop on another thread
  // than that of its last turn, or before the first turn: there it waits, and the calls in flight
  // end only if the program drives the loop.
  DrainResult drain(Time deadline);
  Task<DrainResult> co_drain(Time deadline);
  // `drain` and `co_drain` with a timeout from now: client.drain(10s).
  DrainResult drain(Duration timeout);
  Task<DrainResult> co_drain(Duration timeout);

  // Returns one of the client's loops, for coroutines that wait with sleep_for, Semaphore or
  // co_retry_call. The client must outlive them. Throws Failure if there is no loop, for example
  // after a drain.
  [[nodiscard]] Scheduler& scheduler();

  // The functions below send a request as `send` does:
  //   client.get(url)
  //   client.get(url, {{"Accept", "application/json"}})
  //   client.get(url, CallOptions().with_timeout(2s))
  Outcome get(std::string url, const Headers& headers = Headers(),
              CallOptions options = CallOptions()) {
    return send_with(Request::get(std::move(url)), headers, {}, std::move(options));
  }
  Outcome get(std::string url, CallOptions options) {
    return send(Request::get(std::move(url)), std::move(options));
  }
  Outcome head(std::string url, const Headers& headers = Headers(),
               CallOptions options = CallOptions()) {
    return send_with(Request::head(std::move(url)), headers, {}, std::move(options));
  }
  Outcome head(std::string url, CallOptions options) {
    return send(Request::head(std::move(url)), std::move(options));
  }
  Outcome del(std::string url, const Headers& headers = Headers(),
              CallOptions options = CallOptions()) {
    return send_with(Request::del(std::move(url)), headers, {}, std::move(options));
  }
  Outcome del(std::string url, CallOptions options) {
    return send(Request::del(std::move(url)), std::move(options));
  }
  // client.post(url, json_text, "application/json"); `put` and `patch` are alike. With an empty
  // content type, no Content-Type header is sent.
  Outcome post(std::string url, Body body, std::string_view content_type = {},
               const Headers& headers = Headers(), CallOptions options = CallOptions()) {
    return send_with(Request::post(std::move(url), std::move(body)), headers, content_type,
                     std::move(options));
  }
  Outcome post(std::string url, Body body, CallOptions options) {
    return send(Request::post(std::move(url), std::move(body)), std::move(options));
  }
  Outcome put(std::string url, Body body, std::string_view content_type = {},
              const Headers& headers = Headers(), CallOptions options = CallOptions()) {
    return send_with(Request::put(std::move(url), std::move(body)), headers, content_type,
                     std::move(options));
  }
  Outcome put(std::string url, Body body, CallOptions options) {
    return send(Request::put(std::move(url), std::move(body)), std::move(options));
  }
  Outcome patch(std::string url, Body body, std::string_view content_type = {},
                const Headers& headers = Headers(), CallOptions options = CallOptions()) {
    return send_with(Request::patch(std::move(url), std::move(body)), headers, content_type,
                     std::move(options));
  }
  Outcome patch(std::string url, Body body, CallOptions options) {
    return send(Request::patch(std::move(url), std::move(body)), std::move(options));
  }

  // `post`, `put` and `patch` with a value that BodyOf makes a body:
  //   client.post(url, UrlEncoded().add("name", "Ann"))
  template <HasBody T>
  Outcome post(std::string url, const T& value, CallOptions options = CallOptions()) {
    return send(Request::post(std::move(url), value), std::move(options));
  }
  template <HasBody T>
  Outcome put(std::string url, const T& value, CallOptions options = CallOptions()) {
    return send(Request::put(std::move(url), value), std::move(options));
  }
  template <HasBody T>
  Outcome patch(std::string url, const T& value, CallOptions options = CallOptions()) {
    return send(Request::patch(std::move(url), value), std::move(options));
  }

 private:
  friend struct detail::CoreOf;
  Outcome send_with(Request request, const Headers& headers, std::string_view content_type,
                    CallOptions options);
  void start(Request request, CallOptions options, std::unique_ptr<detail::Completion> completion);
  void run(std::shared_ptr<detail::Work> work);
  void shut_down();
  [[nodiscard]] const std::shared_ptr<detail::ClientCore>& core() const;
  std::shared_ptr<detail::ClientCore> core_;
};

}  // namespace httpretry
