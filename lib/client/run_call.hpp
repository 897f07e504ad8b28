// One call, from its first line to its outcome.
#pragma once

#include "loops.hpp"
#include "under_way.hpp"

#include "lib/flow/call_state.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/flow/detail/posted.hpp>

namespace httpretry::detail {

// Where a call runs.
struct RunsOn {
  Scheduler* scheduler = nullptr;
  Transport* transport = nullptr;
  BackgroundLoop::CallCount count{};  // of nothing where no background loop runs it
  // With the stop of the call's token, where that is not the user's.
  std::unique_ptr<EitherStop> either_stop{};
  UnderWay::Ticket ticket{};
  bool watches_end = false;  // Call::State::watches_end
};

// What a client keeps for its calls.
struct ForCalls {
  const ClientOptions& options;
  CallsInCommon common;
};

// The coroutines run on the scheduler's thread. `options` and what `completion` is must live until
// `completion` is told.
PostedCoroutine run_call(std::shared_ptr<const ForCalls> client, RunsOn where, Request request,
                         CallOptions options, Completion& completion);
PostedCoroutine run_work(std::shared_ptr<const ForCalls> client, RunsOn where,
                         std::shared_ptr<Work> work);

}  // namespace httpretry::detail
