// The members of the interfaces that are not inline.
#include "lib/http/text.hpp"

#include <httpretry/flow/middleware.hpp>
#include <httpretry/flow/transport.hpp>

namespace httpretry {

Scheduler::~Scheduler() = default;
Transport::~Transport() = default;
Middleware::~Middleware() = default;

Observer::~Observer() = default;
void Observer::call_started(const Call& /*call*/, const Request& /*request*/) noexcept {}
void Observer::attempt_started(const Call& /*call*/, const Request& /*request*/,
                               int /*number*/) noexcept {}
void Observer::attempt_ended(const Call& /*call*/, const Request& /*request*/,
                             const Attempt& /*attempt*/) noexcept {}
void Observer::redirected(const Call& /*call*/, const Request& /*next*/) noexcept {}
void Observer::policies_reloaded(const Call& /*call*/, const PolicyReload& /*reload*/) noexcept {}
void Observer::call_ended(const Call& /*call*/, const Outcome& /*outcome*/) noexcept {}

Error detail::internal_error(std::string_view thrower, const std::exception_ptr& thrown) {
  Error error(Errc::Internal,
              "middleware \"" + std::string(thrower) + "\" threw: " + text_of(thrown));
  error.exchange.sent = Sent::Maybe;  // the exception does not say
  return error;
}

}  // namespace httpretry
