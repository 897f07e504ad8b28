// Observer: told of everything that happens to a call, as it happens. For traces, metrics and live
// progress; what must change a request or an outcome is a Middleware.
#pragma once

#include <httpretry/http/response.hpp>

namespace httpretry {

class Call;
class Request;
struct PolicyReload;

// Each function runs on the thread that drives the call, so it must be quick; one Observer may hear
// of several calls on several threads at once. Nothing may be thrown.
class HTTPRETRY_API Observer {
 public:
  virtual ~Observer();
  virtual void call_started(const Call& call, const Request& request) noexcept;
  // About to be sent.
  virtual void attempt_started(const Call& call, const Request& request, int number) noexcept;
  // Ended and judged: `attempt.retried` says whether another follows, after `attempt.wait`.
  virtual void attempt_ended(const Call& call, const Request& request,
                             const Attempt& attempt) noexcept;
  // A redirect is followed; `next` is what will be sent.
  virtual void redirected(const Call& call, const Request& next) noexcept;
  // The file of the policies was read again, or could not be; told by the first call that finds it
  // so. It says which of the two, and what was wrong (policy_source.hpp).
  virtual void policies_reloaded(const Call& call, const PolicyReload& reload) noexcept;
  virtual void call_ended(const Call& call, const Outcome& outcome) noexcept;
};

}  // namespace httpretry
