// sleep_for: waits in a coroutine, on any loop.
//
//   const bool slept = co_await sleep_for(call.scheduler(), 2s, stop);
//
// A middleware has the loop of its call, and work of Client::spawn receives a loop. A program can
// use Client::scheduler() or its own EventLoop.
//
// httpretry.hpp does not include this header.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/scheduler.hpp>

namespace httpretry {

// Waits on `loop`, which must outlive the task. Returns true when the time has passed, never
// earlier. Returns false as soon as `stop` is requested or the loop's client is destroyed. The wait
// blocks no thread. It may be awaited on another thread, and may also continue there.
[[nodiscard]] HTTPRETRY_API Task<bool> sleep_for(Scheduler& loop, Duration time,
                                                 std::stop_token stop = std::stop_token());

}  // namespace httpretry
