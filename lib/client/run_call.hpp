// One call, from its first line to its outcome.
#pragma once

#include "loops.hpp"

#include "lib/flow/posted_coroutine.hpp"

#include <httpretry/client/client.hpp>

namespace httpretry::detail {

// Where a call runs.
struct RunsOn {
  Scheduler* scheduler;
  Transport* transport;
  RunQueue* leased;                            // the scheduler, where this thread will drive it
  std::shared_ptr<BackgroundLoop> background;  // null elsewhere
};

// The coroutines run on the scheduler's thread. `options` and what `completion` is must live until
// `completion` is told.
PostedCoroutine run_call(std::shared_ptr<const ClientOptions> client, RunsOn where, Request request,
                         CallOptions options, Completion& completion);
PostedCoroutine run_work(RunsOn where, std::shared_ptr<Work> work);

// The error of a call that did not begin.
Error not_begun(Errc code, std::string why);

}  // namespace httpretry::detail
