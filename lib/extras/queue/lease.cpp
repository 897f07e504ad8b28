#include "lease.hpp"

#include <utility>

namespace httpretry::queue {

// Before each send, checks the lease, and refuses the send if the lease does not allow it. Marks
// the job as idle after the send, because the call may then wait for a retry.
MiddlewarePtr leased_sends() {
  return middleware("lease of the job",
                    [](Request request, Call& call, Next next) -> Task<Outcome> {
                      const auto lease = call.get<LeaseOfCall>()->lease;
                      if (!lease->allows_sends(std::chrono::steady_clock::now())) {
                        co_return Error(Errc::Canceled, "the lease of the job was not renewed");
                      }
                      lease->set_idle(false);
                      const auto task = next(std::move(request), call);
                      Outcome outcome = co_await task;
                      lease->set_idle(true);
                      co_return outcome;
                    });
}

}  // namespace httpretry::queue
