// sleep_for: a wait in a coroutine, on any loop.
//
//   const bool slept = co_await sleep_for(call.scheduler(), 2s, stop);
//
// A middleware has the loop of its call, work of Client::spawn is given one, and a program may have
// one of its own.
//
// httpretry.hpp does not include this header.
#pragma once

#include <httpretry/flow/scheduler.hpp>

namespace httpretry {

// Waits on `loop`. On another thread it may be awaited, too; there it may also continue. True when
// the time has passed, never earlier; false as soon as `stop` is requested, and when the client of
// the loop ends. It holds no thread. `loop` must outlive the task.
[[nodiscard]] HTTPRETRY_API Task<bool> sleep_for(Scheduler& loop, Duration time,
                                                 std::stop_token stop = std::stop_token());

}  // namespace httpretry
