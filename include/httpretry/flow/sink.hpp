// Sink: where the body of a good answer goes instead of into Response::body: a file, a function, a
// coroutine, a writer of your own.
//
//   auto request = Request::get("https://example.com/big.iso");
//   request.edit_options().sink = save_to("big.iso");
//   Outcome outcome = client.send(request);
//
// Only a good answer's: a status of 200 to 299, and nothing in it that the policy retries. The
// bodies of all others are in Response::body as ever, within max_body; a sink takes any size. Where
// a rule of the policy reads bodies of good answers (XML, for AWS's errors), the sink gets the
// first 64 KiB when they have been looked at.
//
// What a retry means for a sink, when an answer broke off after its first bytes:
//
//   the answer had a validator (a strong ETag, or a   the next attempt asks for the rest, with
//   Last-Modified), and was for a GET                 Range and If-Range
//   the answer has changed meanwhile, or the server   a sink that can begin anew does; for others
//   sends all of it                                   the call ends, or the same bytes are skipped
//                                                     where the ETag says that they are the same
//   no validator                                      a sink that can begin anew does; for others
//                                                     there is no retry (`not_replayable`)
//
// No byte reaches a sink twice, or from two versions of what was asked for. The Response is the
// last answer: a 206 about the rest where one broke off before, and `delivered` counts all that the
// sink has.
#pragma once

#include <httpretry/flow/call.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/http/response.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

// The beginning of a body that a writer has already, from an earlier call.
struct HTTPRETRY_API BodyStart {
  BodyStart() = default;

  std::uint64_t size = 0;
  // What If-Range may be asked with. Empty: the user vouches that it is still the same body.
  std::string validator;
};

// Takes the body of one call. On the thread that drives the call; an error ends the call, and is
// its outcome.
class HTTPRETRY_API BodyWriter {
 public:
  enum class Wish : std::uint8_t {
    More,
    Pause,  // no more until `drain` is done: the transfer stands still meanwhile
    Stop,   // no more at all: the call ends with Errc::Canceled
  };

  virtual ~BodyWriter();  // where the call has not finished it, it failed
  [[nodiscard]] virtual std::optional<BodyStart> had() const;
  // Whether `begin` with offset 0 may come again after bytes were written.
  [[nodiscard]] virtual bool restartable() const;
  // A good answer comes. `head` has no body; `url` is the one that was asked for. The bytes that
  // follow stand at `offset` of the whole: 0, or as many as were written before.
  virtual Result<void> begin(const Response& head, std::uint64_t offset);
  // Takes all of `bytes`. Called from inside libcurl: it must not block for long, and not send.
  virtual Result<Wish> write(std::string_view bytes) = 0;
  // Awaited after each Pause, and when no more bytes will come.
  virtual Task<Result<Wish>> drain(Call& call);
  // The body is whole.
  virtual Result<void> finish();
};

// Opens a writer for each call. One Sink may serve many calls, on several threads at once.
class HTTPRETRY_API Sink {
 public:
  virtual ~Sink();
  // Before anything is sent. An error is the outcome of the call.
  virtual Result<std::unique_ptr<BodyWriter>> open(const Request& request) = 0;
};
using SinkPtr = std::shared_ptr<Sink>;

struct HTTPRETRY_API FileOptions {
  // Where the call fails, PATH.part keeps what came of the body (and PATH.part.info which body that
  // was), and the next call goes on behind it: where it has changed meanwhile, from its beginning.
  bool keep_partial = false;
  // What stands in PATH is the beginning of the body, on the user's word.
  bool continue_existing = false;
};
// A file that is written aside and takes its place when it is whole; the old one survives every
// failure. What is no regular file, a device or a pipe, is written to directly.
[[nodiscard]] HTTPRETRY_API SinkPtr save_to(std::string path, FileOptions options = FileOptions());

// A function; false: it wants no more. It cannot take bytes back, so it is no retry's to call it
// with the first ones again.
[[nodiscard]] HTTPRETRY_API SinkPtr pass_to(std::function<bool(std::string_view bytes)> take);

// A coroutine, awaited for each piece of the body, while the transfer stands still: so a slow
// reader slows the server down, and no more than a piece is in memory. Ends early with false.
//
//   request.edit_options().sink =
//       pass_to([&](std::string bytes, Call& call) -> Task<bool> { ... co_return true; });
[[nodiscard]] HTTPRETRY_API SinkPtr
pass_to(std::function<Task<bool>(std::string bytes, Call& call)> take);

}  // namespace httpretry
