// Sink: receives the body of a successful response instead of Response::body: a file, a function, a
// coroutine, a writer of your own.
//
//   auto request = Request::get("https://example.com/big.iso");
//   request.edit_options().sink = save_to("big.iso");
//   Outcome outcome = client.send(request);
//
// Successful means a status of 200 to 299 that no rule of the policy retries. All other bodies are
// in Response::body as usual, up to max_body; for a sink there is no limit. If a rule of the policy
// reads the bodies of such responses (XML, for AWS's errors), it reads the first 64 KiB before the
// sink receives them.
//
// A middleware or a transport of yours may respond without the sink. The client then gives it what
// `body` contains, at the end of the call, or the call ends with an error. A middleware that reads
// bodies finds none if `delivered` is not 0. To read it all the same, it removes the sink from the
// request that it passes on.
//
// How a retry continues when the connection was lost in the middle of a body:
//
//   the response had a validator (a strong ETag or    the next attempt asks for the rest, with
//   Last-Modified) and was to a GET                   Range and If-Range
//   the response has changed since, or the server     a sink that can restart does; for others the
//   sends all of it                                   call ends, or skips the bytes it has if the
//                                                     ETag shows that they are the same
//   the rest does not fit: another total, other       the next attempt asks for the whole body,
//   validators, other bytes than asked for            if the sink can restart; else the call ends
//   no validator                                      a sink that can restart does; for others
//                                                     there is no retry (`not_replayable`)
//
// So a sink never receives a byte twice, nor bytes of two versions. What ends before the total that
// the first response announced is not complete. A 206 with bytes that nobody asked for is an error.
// The Response is the last one: a 206 with the rest after a lost connection; `delivered` counts all
// bytes that the sink has.
#pragma once

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

// The beginning of a body, which a writer has from an earlier call.
struct HTTPRETRY_API BodyStart {
  BodyStart() = default;

  std::uint64_t size = 0;
  // For If-Range. Empty: the user guarantees that it is still the same body.
  std::string validator;
  std::optional<std::uint64_t> total;  // the size of the whole body; empty: unknown
};

// Receives the body of one call, on the thread that drives the call. An Error ends the call and
// becomes its outcome.
class HTTPRETRY_API BodyWriter {
 public:
  enum class Wish : std::uint8_t {
    More,
    Pause,  // the transfer pauses until `drain` is done
    Stop,   // the call ends with Errc::Canceled
  };

  virtual ~BodyWriter();  // without `finish` before it, the call failed
  [[nodiscard]] virtual std::optional<BodyStart> had() const;
  // Whether `begin` may be called with offset 0 after bytes were written.
  [[nodiscard]] virtual bool restartable() const;
  // A successful response begins; `head` has no body. The bytes that follow belong at `offset` of
  // the whole body: 0, or the number of bytes written so far.
  virtual Result<void> begin(const Response& head, std::uint64_t offset);
  // The bytes that it has cannot be continued: the server has another body now. `had` of a later
  // call must not offer them.
  virtual void forget();
  // Takes all of `bytes`. Called by libcurl: it must not block for long, and must not send.
  virtual Result<Wish> write(std::string_view bytes) = 0;
  // Awaited after each Pause, and after the last bytes.
  virtual Task<Result<Wish>> drain(Call& call);
  // The body is complete.
  virtual Result<void> finish();
};

// Opens a writer for each call. One Sink may serve many calls, on several threads at once.
class HTTPRETRY_API Sink {
 public:
  virtual ~Sink();
  // Called before anything is sent. An Error becomes the outcome of the call.
  virtual Result<std::unique_ptr<BodyWriter>> open(const Request& request) = 0;
};
using SinkPtr = std::shared_ptr<Sink>;

struct HTTPRETRY_API FileOptions {
  // If the call fails, PATH.part keeps the bytes received so far and PATH.part.info says which body
  // they belong to. The next call continues after them, or restarts if the body has changed.
  bool keep_partial = false;
  // PATH contains the beginning of the body already; the user guarantees that it is the same body.
  bool continue_existing = false;
  // Creates PATH readable and writable only by its owner (0600).
  bool owner_only = false;
};
// Saves to a temporary file that replaces PATH when the body is complete, so an old file survives
// every failure. The new file has the mode of the old one. A device is written to directly. A pipe
// is an error, because its reader could hold up the loop; use pass_to.
[[nodiscard]] HTTPRETRY_API SinkPtr save_to(std::string path, FileOptions options = FileOptions());

// Passes the body to a function; `false` ends the call with Errc::Canceled. The function cannot
// restart, so a retry never passes the first bytes again.
[[nodiscard]] HTTPRETRY_API SinkPtr pass_to(std::function<bool(std::string_view bytes)> take);
// One that takes all: pass_to([&](std::string_view bytes) { text += bytes; })
template <class F>
requires std::is_void_v<std::invoke_result_t<F&, std::string_view>>
[[nodiscard]] SinkPtr pass_to(F take) {
  return pass_to(
      [take = std::move(take)](std::string_view bytes) mutable { return take(bytes), true; });
}

namespace detail {
using AwaitBytes = std::function<Task<bool>(std::string bytes, Call& call)>;
[[nodiscard]] HTTPRETRY_API SinkPtr pass_to_coroutine(AwaitBytes take);
}  // namespace detail

// Passes the body to a coroutine that is awaited for each piece, while the transfer pauses: a slow
// reader slows the server down, and only one piece is in memory. `false` ends the call.
//
//   request.edit_options().sink =
//       pass_to([&](std::string bytes, Call& call) -> Task<bool> { ... co_return true; });
template <class F>
requires std::is_invocable_r_v<Task<bool>, F&, std::string, Call&> [[nodiscard]] SinkPtr pass_to(
    F take) {
  if constexpr (detail::Parameters<F>::known) {
    detail::check_coroutine_function<F>();
    return detail::pass_to_coroutine(std::move(take));
  } else {
    // A lambda with `auto` may take references: what they refer to is kept in this coroutine.
    return detail::pass_to_coroutine(
        [take = std::move(take)](std::string bytes, Call& call) mutable -> Task<bool> {
          const auto task = take(std::move(bytes), call);
          const bool more = co_await task;
          co_return more;
        });
  }
}

}  // namespace httpretry
