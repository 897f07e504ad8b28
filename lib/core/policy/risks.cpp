// Warns of policies that are valid, but harmful to servers or callers. Presets get no warnings,
// because each one is reported at a value that the user wrote.
#include "checks.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/retry/policy_limits.hpp"

#include <algorithm>

namespace httpretry::detail::policy_file {
namespace {

// Returns whether there is never a wait before a retry.
bool has_no_waits(const Backoff& backoff) {
  const auto first = delay_range(backoff, /*retry=*/1);
  return first.most == Duration() && delay_range(backoff, /*retry=*/2, first).most == Duration();
}

// The methods of requests that the server may execute twice without harm.
constexpr std::string_view kIdempotent[] = {"GET", "HEAD",   "OPTIONS", "TRACE",
                                            "PUT", "DELETE", "QUERY"};

// Returns the first method that may do harm if it is executed twice, or "" if no method may.
std::string unsafe_method(const std::vector<std::string>& methods) {
  if (methods.empty()) return "POST";  // all methods
  const auto unsafe = std::ranges::find_if(methods, [](const std::string& method) {
    return std::ranges::find(kIdempotent, method) == std::end(kIdempotent);
  });
  return unsafe == methods.end() ? std::string() : *unsafe;
}

struct RiskCheck : PolicyCheck {
  explicit RiskCheck(const PolicyCheck& base) : PolicyCheck(base) {}

  void check() const {
    if (resolved.max_attempts != 1) check_retries();
    check_hanging();
    if (resolved.hedge) check_hedges(*resolved.hedge);
  }

 private:
  // Warns of retries that harm a failing server, or that may execute a request twice.
  void check_retries() const {
    const auto& guards = resolved.guards;
    const bool is_limited =
        resolved.budget.kind != BudgetPolicy::Kind::None || guards.breaker || resolved.adaptive;
    if (!is_limited) {
      const auto by_how_much = resolved.max_attempts
                                   ? "by up to " + std::to_string(*resolved.max_attempts)
                                   : std::string("without limit");
      warn(Warning::NoBudget, {"budget"},
           "while a server fails, the retries multiply its load " + by_how_much +
               "; set \"budget\" or \"breaker\"");
    }
    check_waits();
    if (resolved.repeat == Repeat::Always && resolved.idempotency_key.empty()) {
      warn(Warning::RepeatAlways, {"repeat"},
           "a POST that the server may have executed is sent again, and may be executed twice; set "
           "\"idempotency_key\", or \"repeat\": \"safe\"");
    }
    check_statuses("retry_on.statuses", resolved.retry_on.statuses);
    check_statuses("retry_on.throttle_statuses", resolved.retry_on.throttle_statuses);
    check_server_delay(resolved.server_delay);
  }

  // Warns of retries and polls that follow without any wait.
  void check_waits() const {
    const std::string at_once =
        " at once, so that all clients hit a server together while it fails; set a longer ";
    if (has_no_waits(resolved.backoff)) {
      warn(Warning::NoBackoff, {"backoff"}, "retries follow" + at_once + "\"backoff\"");
    }
    if (resolved.throttle_backoff && has_no_waits(*resolved.throttle_backoff)) {
      warn(Warning::NoBackoff, {"throttle_backoff"},
           "retries after a throttle follow" + at_once + "\"throttle_backoff\"");
    }
    const auto& pending = resolved.retry_on.pending;
    if (pending && has_no_waits(pending->backoff)) {
      warn(Warning::NoBackoff, {"retry_on.pending.backoff"},
           "polls follow one another without a wait; set a longer \"retry_on.pending.backoff\"");
    }
  }

  // Warns of statuses that are retried although the request has succeeded, or although its retry
  // gets the same response. `statuses` is the value of `key`.
  void check_statuses(const std::string& key, const StatusSet& statuses) const {
    bool has_success = false;
    for (int status = 200; status < 300; ++status) has_success |= statuses.contains(status);
    if (has_success) {
      warn(Warning::RetriedStatus, {key},
           "requests that succeeded (2xx) are sent again; exclude them with \"!2xx\", and set "
           "\"retry_on.pending\" for a response that means \"not yet\"");
    }
    std::string list;      // for example: 400, 404
    std::string excluded;  // for example: "!400", "!404"
    for (const auto status : {400, 401, 404}) {
      if (!statuses.contains(status)) continue;
      const auto text = std::to_string(status);
      list += (list.empty() ? "" : ", ") + text;
      excluded += (excluded.empty() ? "\"!" : ", \"!") + text + '"';
    }
    if (list.empty()) return;
    warn(Warning::RetriedStatus, {key},
         "after " + list + ", the same request gets the same response again; exclude them with " +
             excluded);
  }

  void check_server_delay(const ServerDelayPolicy& delay) const {
    if (!policy::ignores_servers(delay)) return;
    const bool reads_none = delay.headers.empty();
    const std::string key = reads_none ? "server_delay.headers" : "server_delay.combine";
    warn(Warning::ServersIgnored, {key},
         "retries come earlier than the server asks for (Retry-After); " +
             std::string(reads_none ? "list the headers to follow"
                                    : "set \"combine\": \"max\" or \"grow\""));
  }

  // Warns of calls without a limit of time.
  void check_hanging() const {
    if (resolved.max_elapsed_time != kForever) return;
    if (resolved.attempt_timeout == kForever && resolved.response_timeout == kForever) {
      warn(Warning::NoTimeout, {"max_elapsed_time", "attempt_timeout", "response_timeout"},
           "nothing ends an attempt whose server hangs; set \"attempt_timeout\", "
           "\"response_timeout\" or \"max_elapsed_time\"");
    } else if (resolved.max_attempts != 1) {
      warn(
          Warning::NoTimeLimit, {"max_elapsed_time"},
          "all attempts and waits of a call together have no time limit; set \"max_elapsed_time\"");
    }
  }

  void check_hedges(const HedgePolicy& hedge) const {
    const auto method = unsafe_method(hedge.methods);
    if (method.empty() || !resolved.idempotency_key.empty()) return;
    if (resolved.repeat == Repeat::Always) {
      warn(Warning::HedgedUnsafe, {"hedge.methods", "hedge.after", "repeat"},
           "a slow " + method +
               " is sent twice, and may be executed twice; set "
               "\"idempotency_key\", or leave the method out of \"hedge.methods\"");
    } else if (!hedge.methods.empty() && resolved.repeat == Repeat::Safe) {
      warn(Warning::HedgedUnsafe, {"hedge.methods"},
           "a " + method + " is hedged only with an idempotency key; set \"idempotency_key\"");
    }
  }
};

}  // namespace

std::string_view to_string(Warning warning) {
  return enum_word<Warning::Unused>(
      warning, {"no_budget", "no_backoff", "no_time_limit", "no_timeout", "repeat_always",
                "hedged_unsafe", "retried_status", "servers_ignored", "no_effect", "unused"});
}

void check_risks(const PolicyCheck& check) { RiskCheck(check).check(); }

}  // namespace httpretry::detail::policy_file
