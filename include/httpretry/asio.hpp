// The bridge to Boost.Asio 1.74 or later (Boost's version): requests as asynchronous operations.
// Include it in addition to httpretry.hpp. No other header includes it.
//
//   boost::asio::awaitable<void> show(Client& client) {
//     Outcome outcome = co_await async_send(client, Request::get(url), boost::asio::use_awaitable);
//     ...
//   }
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/client/client.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/version.hpp>

#if BOOST_ASIO_VERSION >= 101900  // Boost 1.77, the first with cancellation slots
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#endif

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace httpretry {

namespace detail {

#if BOOST_ASIO_VERSION >= 101900
// AsioCancellation stops a call when the cancellation slot of its handler is triggered.
class AsioCancellation {
 public:
  // Replaces `options.stop` by a token that is stopped by the slot and by the previous token.
  template <class Handler>
  AsioCancellation(const Handler& handler, CallOptions& options) {
    slot_ = boost::asio::get_associated_cancellation_slot(handler);
    if (!slot_.is_connected()) return;
    std::stop_source source;  // stopped by the slot, and through `forward_` by the previous token
    const std::function<void()> stop = [source]() mutable { source.request_stop(); };
    forward_ = std::make_unique<Forward>(std::exchange(options.stop, source.get_token()), stop);
    slot_.assign([stop](boost::asio::cancellation_type type) {
      using boost::asio::cancellation_type;
      // The server may have executed the request, so `total` alone cannot be granted.
      const auto granted = cancellation_type::terminal | cancellation_type::partial;
      if ((type & granted) != cancellation_type::none) stop();
    });
  }
  // Must be called on the executor of the handler, because a slot is not thread-safe.
  void end() {
    if (slot_.is_connected()) slot_.clear();
  }

 private:
  using Forward = std::stop_callback<std::function<void()>>;
  boost::asio::cancellation_slot slot_;
  std::unique_ptr<Forward> forward_;
};
#else
struct AsioCancellation {
  AsioCancellation(const auto& /*handler*/, CallOptions& /*options*/) {}
  void end() {}
};
#endif

// Starts the call of async_send. When the call has ended, runs the handler with its outcome, on the
// handler's own executor. Until then `work` keeps that executor's io_context running.
struct AsioSend {
  Client* client;

  template <class Handler>
  void operator()(Handler&& handler, Request request, CallOptions options) const {
    AsioCancellation cancellation(handler, options);  // may replace options.stop
    // A handler without an executor must not run on the client's thread, so it gets this one.
    const boost::asio::system_executor fallback;
    auto work =
        boost::asio::make_work_guard(boost::asio::get_associated_executor(handler, fallback));
    client->send_then(
        std::move(request),
        [handler = std::forward<Handler>(handler), work = std::move(work),
         cancellation = std::move(cancellation)](Outcome outcome) mutable {
          // On the client's thread: posts the handler, with everything it needs, to its executor.
          const auto executor = work.get_executor();  // before `work` is moved
          boost::asio::post(executor, [handler = std::move(handler), work = std::move(work),
                                       cancellation = std::move(cancellation),
                                       outcome = std::move(outcome)]() mutable {
            // First, because the handler may use the slot for its next operation.
            cancellation.end();
            work.reset();
            std::move(handler)(std::move(outcome));
          });
        },
        std::move(options));
  }
};

}  // namespace detail

// Sends a request as Client::send_then does. `token` is any completion token for the signature
// void(Outcome): use_awaitable, use_future, a callback, and so on. The client must exist until the
// operation has begun, and its destruction completes the operation with Errc::Canceled. As an I/O
// object of Asio, the client must be destroyed before the io_context.
//
// The operation completes on the executor that is associated with the token, for example that of
// the coroutine or that of bind_executor. The executor has outstanding work until then, so
// io_context::run does not return earlier. A callback without an executor runs on a thread of
// Asio's system_executor, and never on a thread of the client. A callback may throw; the exception
// leaves io_context::run.
//
// From Boost 1.77 on, the cancellation slot that is associated with the token stops the call, which
// then completes with Errc::Canceled. The types `terminal` and `partial` are supported, and `total`
// is ignored. CallOptions::stop works with every version.
template <class Token>
auto async_send(Client& client, Request request, CallOptions options, Token&& token) {
  return boost::asio::async_initiate<Token, void(Outcome)>(detail::AsioSend{&client}, token,
                                                           std::move(request), std::move(options));
}
template <class Token>
auto async_send(Client& client, Request request, Token&& token) {
  return async_send(client, std::move(request), CallOptions(), std::forward<Token>(token));
}

}  // namespace httpretry
