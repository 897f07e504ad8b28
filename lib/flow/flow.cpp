// The members of the interfaces that are not inline.
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
  const auto said = [&](std::string_view what) {
    Error error(Errc::Internal,
                "middleware \"" + std::string(thrower) + "\" threw: " + std::string(what));
    error.exchange.sent = Sent::Maybe;  // an exception does not say
    return error;
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    return said(exception.what());
  } catch (...) {
    return said("something that is no std::exception");
  }
}

}  // namespace httpretry
