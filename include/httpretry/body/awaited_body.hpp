// Bodies that are awaited: for a generator that has to wait, for another response, a queue or a
// slow disk. A generator of body.hpp would stop its loop for as long as it blocks. This one is a
// coroutine: while it waits, the upload pauses, and the loop carries its other calls.
//
//   auto lines = [&queue](Call& call) -> Task<Result<std::string>> {
//     Result<std::string> line = co_await queue.pop(call.stop());
//     co_return line;  // an empty one is the end
//   };
//   Outcome outcome = client.put(url, awaited_body_once(lines));
//
// The deadlines and the stop of the call count while it waits; `response_timeout` and
// `stall_timeout` do not, because the server may be waiting for the body. When the exchange is
// over, for one of these reasons or because the server has responded, call.stop() is requested; the
// outcome comes when the coroutine has ended, so it should pass call.stop() to what it waits for.
// Meanwhile a coroutine that takes the body of the response (pass_to) waits, too.
#pragma once

#include <httpretry/chain/call.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/http/body.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace httpretry {

// Makes the next piece of a body; an empty one is the end. An Error, or an exception, ends the
// transfer. It starts on the thread that drives the call, and may end on another one.
using NextPiece = std::function<Task<Result<std::string>>(Call& call)>;

// Like Body::generated: `start` returns a function that begins at the first byte, so the body can
// be sent again.
[[nodiscard]] HTTPRETRY_API Body awaited_body(std::function<NextPiece()> start,
                                              std::optional<std::uint64_t> size = std::nullopt);
// Like Body::once: the body can be sent again only if none of it was asked for.
[[nodiscard]] HTTPRETRY_API Body
awaited_body_once(NextPiece next, std::optional<std::uint64_t> size = std::nullopt);

// A reader of your own that pauses, for Body::reopened and Body::once: `read` returns kPause if it
// has nothing to give yet.
class HTTPRETRY_API PausingReader : public BodyReader {
 public:
  // Awaited after kPause; then `read` is called again. An Error ends the transfer.
  virtual Task<Result<void>> wait(Call& call) = 0;
  PausingReader* pausing() final { return this; }
};

}  // namespace httpretry
