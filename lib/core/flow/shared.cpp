#include "lib/core/base/either_stop.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/flow/detail/shared_work.hpp>
#include <httpretry/flow/start.hpp>

namespace httpretry::detail {

Event::~Event() = default;

// Waits for the event, at most until `limit`. Returns false only if `stop` ended the wait. The wait
// can end early for two reasons, but sleep_until takes only one stop token.
Task<bool> Event::wait(Scheduler& scheduler, Time limit, std::stop_token stop) const {
  const EitherStop either(happened_.get_token(), stop);
  const bool reached_limit = co_await scheduler.sleep_until(limit, either.token());
  co_return reached_limit || (happened() && !stop.stop_requested());
}

Error Work::thrown_by_work(const std::exception_ptr& thrown) {
  return Error(Errc::Internal, "the work of spawn threw: " + text_of(thrown));
}

Error thrown_by_task(const std::exception_ptr& thrown) {
  return Error(Errc::Internal, "the task threw: " + text_of(thrown));
}

Error wait_ended(bool canceled, std::string_view waited_for) {
  const auto code = canceled ? Errc::Canceled : Errc::Timeout;
  Error error(code, (canceled ? "canceled while waiting for " : "timed out while waiting for ") +
                        std::string(waited_for));
  // CURLE_ABORTED_BY_CALLBACK or CURLE_OPERATION_TIMEDOUT, as the transport reports these cases.
  error.curl_code = canceled ? 42 : 28;
  return error;
}

}  // namespace httpretry::detail
