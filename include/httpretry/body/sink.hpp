// Sink receives the body of a successful response instead of Response::body. It can be a file, a
// function, a coroutine or a custom writer.
//
//   auto request = Request::get("https://example.com/big.iso");
//   request.edit_options().sink = save_to("big.iso");
//   Outcome outcome = client.send(request);
//
// A response is successful if its status is 200 to 299 and no rule of the policy retries it. All
// other bodies are in Response::body as usual, up to max_body, which does not limit a sink. If a
// rule of the policy reads the bodies of such responses (XML, for AWS's errors), it reads the first
// 64 KiB before the sink receives them.
//
// A custom middleware or transport may respond without using the sink. At the end of the call, the
// client then passes the contents of `body` to the sink, or ends the call with an error. If
// `delivered` is not 0, a middleware finds no body to read. To read the body, it must remove the
// sink from the request that it passes on.
//
// How a retry continues when the connection was lost in the middle of a body:
//
//   the response to a GET had a validator (a strong   the next attempt requests the rest, with
//   ETag or Last-Modified)                            Range and If-Range
//   the response has changed since, or the server     a sink that can restart does so; with other
//   sends all of it                                   sinks the call ends, or skips the bytes that
//                                                     the sink has if the ETag shows that they are
//                                                     the same
//   the rest does not fit: another total, other       the next attempt requests the whole body if
//   validators, other bytes than requested            the sink can restart; otherwise the call ends
//   no validator                                      a sink that can restart does so; with other
//                                                     sinks there is no retry (`not_replayable`)
//
// A sink therefore never receives a byte twice, and never bytes of two versions. A body that ends
// before the total announced by the first response is incomplete. A 206 with bytes that were not
// requested is an error. The Response is the last one: after a lost connection, a 206 with the
// rest. `delivered` counts all bytes that the sink has received.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/call.hpp>
#include <httpretry/chain/detail/coroutine_function.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/http/response.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace httpretry {

// The beginning of a body that a writer has from an earlier call.
struct HTTPRETRY_API BodyStart {
  BodyStart() = default;

  std::uint64_t size = 0;
  // For If-Range. If empty, the user guarantees that the body is still the same.
  std::string validator;
  std::optional<std::uint64_t> total;  // the size of the whole body, if known
};

// BodyWriter receives the body of one call, on the thread that drives the call. If a function
// returns an Error, the call ends with it.
class HTTPRETRY_API BodyWriter {
 public:
  // The writer's reply to a piece of the body.
  enum class Wish : std::uint8_t {
    More,
    Pause,  // pauses the transfer until `drain` has ended
    Stop,   // ends the call with Errc::Canceled
  };

  virtual ~BodyWriter();  // if `finish` was not called, the call has failed
  // Returns the beginning of the body, if the writer has it from an earlier call.
  [[nodiscard]] virtual std::optional<BodyStart> had() const;
  // Returns whether `begin` may be called with offset 0 after bytes were written.
  [[nodiscard]] virtual bool restartable() const;
  // Called when a successful response begins. `head` has no body. The following bytes belong at
  // `offset` in the whole body: 0, or the number of bytes written so far.
  virtual Result<void> begin(const Response& head, std::uint64_t offset);
  // Called if the existing bytes cannot be continued, because the server now has another body. In a
  // later call, `had` must not return them.
  virtual void forget();
  // Receives all of `bytes`. It is called from inside libcurl, so it must not block for long and
  // must not send.
  virtual Result<Wish> write(std::string_view bytes) = 0;
  // Awaited after each Pause, and after the last bytes. It may end on another thread.
  virtual Task<Result<Wish>> drain(Call& call);
  // Called when the body is complete.
  virtual Result<void> finish();
};

// Sink opens a writer for each call. One Sink may serve many calls, on several threads at once.
class HTTPRETRY_API Sink {
 public:
  virtual ~Sink();
  // Called before anything is sent. If it returns an Error, the call ends with it.
  virtual Result<std::unique_ptr<BodyWriter>> open(const Request& request) = 0;
};
// A sink that requests and programs share.
using SinkPtr = std::shared_ptr<Sink>;

// The options of `save_to`.
struct HTTPRETRY_API FileOptions {
  // If the call fails, PATH.part keeps the bytes received so far, and PATH.part.info identifies the
  // body that they belong to. The next call continues after these bytes, or restarts if the body
  // has changed.
  bool keep_partial = false;
  // PATH already contains the beginning of the body. The user guarantees that the body is the same.
  bool continue_existing = false;
  // Creates PATH so that only its owner can read and write it (0600).
  bool owner_only = false;
};
// Returns a sink that saves to a temporary file, which replaces PATH when the body is complete. An
// existing file therefore survives every failure. The new file has the mode of the old one. A
// device is written directly. A pipe is an error, because its reader could block the loop; use
// pass_to.
[[nodiscard]] HTTPRETRY_API SinkPtr save_to(std::string path, FileOptions options = FileOptions());

// Returns a sink that passes the body to a function. If the function returns false, the call ends
// with Errc::Canceled; if it returns an Error, with that error. The function cannot restart, so a
// retry never passes the first bytes again.
[[nodiscard]] HTTPRETRY_API SinkPtr
pass_to(std::function<Result<bool>(std::string_view bytes)> take);
// The same for a function that always continues: pass_to([&](std::string_view bytes) { text +=
// bytes; })
template <class F>
requires std::is_void_v<std::invoke_result_t<F&, std::string_view>>
[[nodiscard]] SinkPtr pass_to(F take) {
  return pass_to(
      [take = std::move(take)](std::string_view bytes) mutable { return take(bytes), true; });
}

namespace detail {
using AwaitBytes = std::function<Task<Result<bool>>(std::string bytes, Call& call)>;
[[nodiscard]] HTTPRETRY_API SinkPtr pass_to_coroutine(AwaitBytes take);
template <class F>
using TaskOfBytes = std::invoke_result_t<F&, std::string, Call&>;
}  // namespace detail

// Returns a sink that passes the body to a coroutine. The transfer pauses while the coroutine is
// awaited, once for each piece. A slow reader thus slows the server down, and only one piece is in
// memory. The coroutine returns a bool or a Result<bool>, with the same meaning as above.
//
//   request.edit_options().sink =
//       pass_to([&](std::string bytes, Call& call) -> Task<bool> { ... co_return true; });
template <class F>
requires std::is_same_v<detail::TaskOfBytes<F>, Task<bool>> ||
    std::is_same_v<detail::TaskOfBytes<F>, Task<Result<bool>>>
[[nodiscard]] SinkPtr pass_to(F take) {
  if constexpr (detail::Parameters<F>::known) detail::check_coroutine_function<F>();
  // A lambda with `auto` parameters may take references. This coroutine keeps what they refer to
  // alive.
  return detail::pass_to_coroutine(
      [take = std::move(take)](std::string bytes, Call& call) mutable -> Task<Result<bool>> {
        const auto task = take(std::move(bytes), call);
        auto more = co_await task;
        co_return more;
      });
}

}  // namespace httpretry
