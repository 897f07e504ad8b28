// Awaited bodies: for a body whose generator has to wait for another response, a queue or a slow
// disk. A generator of body.hpp would block its loop during the wait. An awaited body is a
// coroutine: while it waits, the upload pauses and the loop continues with its other calls.
//
//   auto lines = [&queue](Call& call) -> Task<Result<std::string>> {
//     Result<std::string> line = co_await queue.pop(call.stop());
//     co_return line;  // an empty one is the end
//   };
//   Outcome outcome = client.put(url, awaited_body_once(lines));
//
// While the coroutine waits, the deadlines and the stop of the call apply. `response_timeout` and
// `stall_timeout` do not, because the server may be waiting for the body. When the exchange ends,
// for one of these reasons or because the server has responded, call.stop() is requested. The
// outcome is available only after the coroutine has ended, so the coroutine should pass call.stop()
// to whatever it waits for. A coroutine that receives the body of the response (pass_to) has to
// wait as well.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/call.hpp>
#include <httpretry/flow/task.hpp>
#include <httpretry/http/body.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace httpretry {

// Returns the next piece of a body; an empty piece is the end. An Error or an exception ends the
// transfer. The coroutine starts on the thread that drives the call, and may end on another thread.
using NextPiece = std::function<Task<Result<std::string>>(Call& call)>;

// Like Body::generated: `start` returns a function that begins at the first byte, so the body can
// be sent again.
[[nodiscard]] HTTPRETRY_API Body awaited_body(std::function<NextPiece()> start,
                                              std::optional<std::uint64_t> size = std::nullopt);
// Like Body::once: the body can be sent again only if no piece was requested.
[[nodiscard]] HTTPRETRY_API Body
awaited_body_once(NextPiece next, std::optional<std::uint64_t> size = std::nullopt);

// PausingReader is the base of custom readers that pause, for Body::reopened and Body::once. Its
// `read` returns kPause if no data is available yet.
class HTTPRETRY_API PausingReader : public BodyReader {
 public:
  // Awaited after kPause, before `read` is called again. An Error ends the transfer.
  virtual Task<Result<void>> wait(Call& call) = 0;
  PausingReader* pausing() final { return this; }
};

}  // namespace httpretry
