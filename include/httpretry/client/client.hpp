// Client: where requests are sent from. Safe to use from many threads at once. Make one and keep
// it: it holds the connections.
//
//   Client client;  // follows redirects, and retries
//   Outcome outcome = client.get("https://api.example.com/v1/items");
//
// There are four ways to send a request. All of them use the same chain of middlewares:
//
//   send        blocks; the call runs on the calling thread
//   co_send     a Task to await; the call runs on one of the client's loops
//   send_async  a std::future
//   send_then   a callback
//
// Every call ends once, with an Outcome. After it was stopped (CallOptions::stop, the end of the
// client) a call sends nothing, and ends with Errc::Canceled wherever it waits: for admission, an
// address, a connection, a response or the next attempt. Where there is no memory to begin a call,
// these functions throw std::bad_alloc and nothing is sent; a call that has begun ends with an
// error instead.
//
// A program with an event loop of its own drives the calls itself: event_loop.hpp.
//
// `send` holds its thread. On a thread that drives a loop (in a callback, in a middleware, after a
// co_send that resumed there) it would wait for itself, so there it returns Errc::Internal; `get`
// and `wait` of a future, and `sync_wait`, throw std::logic_error there.
//
// A Client that was moved from may only be assigned or destroyed; using it aborts with a message.
//
// SIGPIPE: OpenSSL writes to sockets without MSG_NOSIGNAL, so a program that speaks TLS should
// ignore SIGPIPE. The library does not change the signals of its process.
//
// fork: a client does not survive it, for its threads and connections belong to the parent. The
// child makes a client of its own; it may destroy the old one, which touches nothing.
//
// A client with static storage may be destroyed after main, if all that its middlewares use still
// lives. libcurl is never shut down.
#pragma once

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

// Told once how a call ended, on the thread that drove the call. It deletes itself then.
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

// The type of `co_await awaitable`.
template <class Awaitable>
using ResultOf = decltype(std::declval<Awaitable&>().operator co_await().await_resume());

}  // namespace httpretry::detail

namespace httpretry {

// A std::future that does not wait for itself.
class OutcomeFuture : public std::future<Outcome> {
 public:
  OutcomeFuture() = default;
  explicit OutcomeFuture(std::future<Outcome> plain) : std::future<Outcome>(std::move(plain)) {}
  Outcome get() { return check(), std::future<Outcome>::get(); }
  void wait() const { return check(), std::future<Outcome>::wait(); }

 private:
  void check() const {
    if (!valid() || wait_for(Duration::zero()) == std::future_status::ready) return;
    detail::check_may_block("get() or wait() of a future");
  }
};

// How the calls ended that were under way when a client was drained.
struct DrainResult {
  std::size_t succeeded = 0;  // as the policy judges it
  std::size_t failed = 0;
  std::size_t canceled = 0;  // by the deadline, or by their own stop
};

class HTTPRETRY_API Client {
 public:
  // Throws std::invalid_argument if the chain cannot work (two middlewares named "retry",
  // "redirect" below "retry", policies without "retry", a null entry), if a policy sets pauses,
  // rates, limits, breakers or hedges and the chain lacks guards() or hedge(), or if an option
  // makes no sense.
  //
  // `Client client;` follows redirects and retries by the policy `standard`.
  explicit Client(ClientOptions options = ClientOptions());
  Client(std::initializer_list<MiddlewarePtr> middlewares);
  // Without middlewares: sends each request once.
  [[nodiscard]] static Client bare();
  // Ends the calls in flight with Errc::Canceled, requests Call::stop(), and waits until they have
  // ended: do not hold what a callback may wait for. On one of the client's own threads it does not
  // wait for the calls of that thread, and never for calls on an EventLoop, which end in its next
  // turns.
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  Outcome send(Request request, CallOptions options = CallOptions());

  // The call starts when the task is awaited. Destroying the task stops the call and does not wait.
  //
  // As with any coroutine, one thread must not destroy it while another resumes it. It is resumed
  // once, when the call ends, on the loop's thread or on CallOptions::resume_on. There it may be
  // destroyed at any time; on another thread only while the call certainly has not ended. Such a
  // thread requests a stop instead (CallOptions::stop) and lets the task end.
  Task<Outcome> co_send(Request request, CallOptions options = CallOptions());

  OutcomeFuture send_async(Request request, CallOptions options = CallOptions());

  // `callback(Outcome)` runs once, on the loop's thread: it must not block and must not throw. It
  // may be a type that can only be moved.
  template <class Callback>
  void send_then(Request request, Callback callback, CallOptions options = CallOptions()) {
    start(std::move(request), std::move(options),
          std::make_unique<detail::CallbackCompletion<Callback>>(std::move(callback)));
  }

  // For work that many calls wait for, as the renewal of a token. `work(Scheduler&)` is a
  // coroutine, a Task<Result<T>>. It runs on one of the client's loops, independent of the call
  // that needed it first. The function is kept until the work ends, so a lambda's captures are safe
  // to use in it. The end of the client ends what the work waits for on that scheduler.
  template <class Function>
  [[nodiscard]] auto spawn(Function work) {
    using Made = detail::ResultOf<std::invoke_result_t<Function&, Scheduler&>>;
    auto shared = std::make_shared<detail::SharedWork<typename Made::value_type>>(std::move(work));
    run(shared);
    return Shared<typename Made::value_type>(std::move(shared));
  }

  // For an orderly end. From now on no call begins: each ends with an Errc::Canceled that says why.
  // The calls under way go on, with their retries, until `deadline`; then the rest is canceled.
  // Returns when all have ended. Work of `spawn` counts as under way but is not in the result;
  // calls may still spawn what they need. Afterwards the client may only be destroyed. Where a job
  // of the program makes several calls, let the jobs end first: their next calls would be refused.
  //
  //   const auto ends = client.drain(10s);
  //
  // `drain` may be called on any thread but those that drive a loop, where it throws
  // std::logic_error; there is `co_drain`, which begins when it is awaited and resumes on a loop of
  // the client. A call or work of this client must not await it: it would wait for itself. It
  // throws Failure where no loop can be had. If there is a ClientOptions::scheduler, `drain` drives
  // it, as `send` does, and the deadline is by its clock.
  DrainResult drain(Time deadline);
  Task<DrainResult> co_drain(Time deadline);
  // The same, with the time from now: client.drain(10s).
  DrainResult drain(Duration timeout);
  Task<DrainResult> co_drain(Duration timeout);

  // One of the client's loops, for coroutines that wait: sleep_for, Semaphore, co_retry_call. The
  // client must outlive them. Throws Failure if there is no loop, for example after a drain.
  [[nodiscard]] Scheduler& scheduler();

  // client.get(url, {{"Accept", "application/json"}})
  Outcome get(std::string url, const Headers& headers = Headers(),
              CallOptions options = CallOptions()) {
    return send_with(Request::get(std::move(url)), headers, {}, std::move(options));
  }
  Outcome head(std::string url, const Headers& headers = Headers(),
               CallOptions options = CallOptions()) {
    return send_with(Request::head(std::move(url)), headers, {}, std::move(options));
  }
  Outcome del(std::string url, const Headers& headers = Headers(),
              CallOptions options = CallOptions()) {
    return send_with(Request::del(std::move(url)), headers, {}, std::move(options));
  }
  // client.post(url, json_text, "application/json"). Without a content type none is sent.
  Outcome post(std::string url, Body body, std::string_view content_type = {},
               const Headers& headers = Headers(), CallOptions options = CallOptions()) {
    return send_with(Request::post(std::move(url), std::move(body)), headers, content_type,
                     std::move(options));
  }
  Outcome put(std::string url, Body body, std::string_view content_type = {},
              const Headers& headers = Headers(), CallOptions options = CallOptions()) {
    return send_with(Request::put(std::move(url), std::move(body)), headers, content_type,
                     std::move(options));
  }
  Outcome patch(std::string url, Body body, std::string_view content_type = {},
                const Headers& headers = Headers(), CallOptions options = CallOptions()) {
    return send_with(Request::patch(std::move(url), std::move(body)), headers, content_type,
                     std::move(options));
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
