#include <httpretry/retry/classify.hpp>

#include "error_codes.hpp"

#include <utility>

namespace httpretry {
namespace {

using namespace std::chrono_literals;
using policy::ResponseHead;

Class by_status(const RetryOn& retry_on, int status) {
  if (retry_on.throttle_statuses.contains(status)) return Class::Throttle;
  if (retry_on.statuses.contains(status)) return Class::Transient;
  return status < 400 ? Class::Success : Class::Permanent;
}

// Sets the server delay of `result` from the headers. A delay in a header takes precedence over one
// in the body, which `result` already has. If the server asks for no retry, the class becomes
// Permanent.
void add_server_delay(const RetryPolicy& policy, const ResponseHead& head, Classified& result) {
  const auto throttled = result.cls == Class::Throttle;
  auto delay = server_delay(head.headers, policy.server_delay.headers, throttled, head.wall_now);
  if (delay) result.server_delay = std::move(delay);
  if (!result.server_delay) return;
  if (result.server_delay->do_not_retry) {
    result.cls = Class::Permanent;
    result.rule.kind = Rule::Kind::ServerSays;
  }
  // GitHub's reset is the last second of the limit, so we wait one second longer.
  if (result.rule.family == ErrorRule::Family::Github &&
      result.server_delay->source == ServerDelaySource::XRateLimitReset) {
    result.server_delay->delay = later(Time(result.server_delay->delay), 1s).time_since_epoch();
  }
}

// Returns whether the status guarantees that the server has not executed the request.
bool certainly_refused(int status, bool has_delay) {
  return status == 425 || status == 421 || ((status == 429 || status == 503) && has_delay);
}

// Classifies a response: by the rules for error codes in its body and headers, or if none matches,
// by its status. Then adds the server delay, and whether the request may be repeated.
Classified classify_response(const RetryPolicy& policy, const Response& response,
                             const Observed& observed) {
  Classified result;
  result.status = response.status;
  result.rule.status = response.status;
  const ResponseHead head{response.status, response.headers, observed.wall_now};
  if (!classify_by_codes(policy.retry_on, head, observed.body, result)) {
    result.cls = by_status(policy.retry_on, response.status);
  }
  if (result.cls == Class::Success || result.cls == Class::Permanent) return result;

  add_server_delay(policy, head, result);
  if (response.status == 503 && result.server_delay && result.cls == Class::Transient) {
    result.cls = Class::Throttle;
  }
  // A throttle means that the request was refused, if the server says so in an error code or a 4xx.
  // The server may have worked on a request that it answers with a 5xx, even if the policy lists
  // that status as a throttle.
  const bool by_error_code = result.rule.kind == Rule::Kind::ErrorCode;
  const bool is_4xx = response.status >= 400 && response.status < 500;
  result.refused_for_sure = certainly_refused(response.status, result.server_delay.has_value());
  result.refused = result.refused_for_sure || response.status == 429 ||
                   (result.cls == Class::Throttle && (by_error_code || is_4xx));
  result.once = response.status == 421;
  result.fresh_connection = result.once;
  return result;
}

// Returns the class of the status with which a proxy refused to connect. Gateway errors may be
// temporary, other statuses are not.
Class class_of_proxy_status(int status) {
  if (status == 429) return Class::Throttle;
  return status == 502 || status == 503 || status == 504 ? Class::Transport : Class::Permanent;
}

// Classifies an error by what failed (`kind`), or by the status of a proxy that refused to connect.
// The class is Permanent if the policy retries no such error.
Classified classify_error(const RetryPolicy& policy, const Error& error, WallTime wall_now) {
  Classified result;
  const auto kind = policy::transport_kind(error);
  const auto by_proxy = error.from_proxy && error.status != 0;
  result.status = error.from_proxy ? 0 : error.status;
  result.sent = error.from_proxy ? Sent::Never : error.exchange.sent;
  result.rule.kind = by_proxy ? Rule::Kind::Proxy : Rule::Kind::Error;
  if (!by_proxy && kind) result.rule.kind = Rule::Kind::Transport;
  result.rule.transport = kind.value_or(TransportKind::Connect);
  result.rule.error = error.code;
  result.rule.status = error.status;
  result.timeout = error.code == Errc::Timeout;
  result.stop = stop_reason(error.code);
  result.cls = Class::Permanent;
  if (!kind || error.permanent || !policy.retry_on.covers(*kind)) return result;
  result.cls = by_proxy ? class_of_proxy_status(error.status) : Class::Transport;
  if (result.cls == Class::Permanent) return result;

  const bool may_have_delay = error.status == 429 || error.status == 503;
  if (may_have_delay) add_server_delay(policy, {error.status, error.headers, wall_now}, result);
  if (by_proxy && result.server_delay && result.cls == Class::Transport)
    result.cls = Class::Throttle;
  result.refused_for_sure =
      error.exchange.refused || certainly_refused(result.status, result.server_delay.has_value());
  result.refused = result.refused_for_sure || result.status == 429;
  result.once = error.code == Errc::Protocol;
  result.fresh_connection = result.once || error.code == Errc::Send || error.code == Errc::Receive;
  return result;
}

}  // namespace

std::optional<TransportKind> policy::transport_kind(const Error& error) {
  switch (error.code) {
    case Errc::Resolve: return TransportKind::Resolve;
    case Errc::Connect: return TransportKind::Connect;
    case Errc::Tls: return TransportKind::Tls;
    case Errc::Timeout: return TransportKind::Timeout;
    case Errc::Send: return TransportKind::Send;
    case Errc::Receive: return error.partial ? TransportKind::Partial : TransportKind::Receive;
    case Errc::Protocol: return TransportKind::Protocol;
    default: return std::nullopt;
  }
}

Observed::Observed(const Outcome& result, WallTime now)
    : Observed(result, result.has_value() ? std::string_view(result->body) : std::string_view(),
               now) {}
Observed::Observed(const Outcome& result, std::string_view body_start, WallTime now)
    : outcome(&result), body(body_start.substr(0, kClassifiedBody)), wall_now(now) {}

// Returns the text that histories and reports show, for example "status 503" or "error_codes: aws
// SlowDown".
std::string to_string(const Rule& rule) {
  const auto word = [](std::string_view text) { return std::string(text); };
  switch (rule.kind) {
    case Rule::Kind::Status: return "status " + std::to_string(rule.status);
    case Rule::Kind::ErrorCode: {
      const auto custom = rule.family == ErrorRule::Family::Custom;
      const auto name = custom ? rule.selector : word(to_string(rule.family));
      return "error_codes: " + name + (rule.code.empty() ? "" : " ") + rule.code;
    }
    case Rule::Kind::Pending: return "pending" + (rule.code.empty() ? "" : " " + rule.code);
    case Rule::Kind::Transport: return "transport: " + word(to_string(rule.transport));
    case Rule::Kind::Error: return "error: " + word(to_string(rule.error));
    case Rule::Kind::Proxy: return "proxy: status " + std::to_string(rule.status);
    case Rule::Kind::ServerSays: return word(to_string(ServerDelaySource::GrpcRetryPushback));
  }
  return "?";
}

Classified classify(const RetryPolicy& policy, const Observed& observed) {
  const auto& outcome = *observed.outcome;
  return outcome ? classify_response(policy, *outcome, observed)
                 : classify_error(policy, outcome.error(), observed.wall_now);
}

// Returns why a call ends that ends with this error. NotRetryable: no reason of its own.
Reason stop_reason(Errc code) {
  switch (code) {
    case Errc::Canceled: return Reason::Canceled;
    case Errc::Paused: return Reason::ServerDelayTooLong;
    case Errc::CircuitOpen: return Reason::CircuitOpen;
    case Errc::RateLimited: return Reason::RateLimited;
    case Errc::QueueFull: return Reason::QueueFull;
    case Errc::LocalShortage: return Reason::LocalShortage;
    default: return Reason::NotRetryable;
  }
}

}  // namespace httpretry
