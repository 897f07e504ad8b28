// One call, from its first line to its outcome.
#pragma once

#include "loops.hpp"
#include "under_way.hpp"

#include "lib/flow/either_stop.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/flow/detail/posted.hpp>

namespace httpretry::detail {

// Where a call runs.
struct RunsOn {
  Scheduler* scheduler = nullptr;  // null: nowhere
  Transport* transport = nullptr;
  BackgroundLoop::CallCount count{};   // of nothing where no background loop runs it
  std::unique_ptr<EitherStop> stop{};  // of the call's token, where that is not the user's
  UnderWay::Ticket ticket{};
  // Requested when the client ends; nullptr where the call's token is requested then, too.
  const std::stop_token* client_end = nullptr;
};

// The coroutines run on the scheduler's thread. `options` and what `completion` is must live until
// `completion` is told.
PostedCoroutine run_call(std::shared_ptr<const ClientOptions> client, RunsOn where, Request request,
                         CallOptions options, Completion& completion);
PostedCoroutine run_work(std::shared_ptr<const ClientOptions> client, RunsOn where,
                         std::shared_ptr<Work> work);

}  // namespace httpretry::detail
