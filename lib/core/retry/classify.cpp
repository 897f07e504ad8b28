#include <httpretry/retry/classify.hpp>

#include "error_codes.hpp"
#include "lib/core/base/text.hpp"

#include <algorithm>
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

// Returns whether a media type is XML. Not every type that contains "xml" is one, for example
// "application/vnd.openxmlformats-officedocument.wordprocessingml.document".
bool is_xml_type(std::string_view type) {
  const auto name = trimmed(type.substr(0, type.find(';')));
  return name == "application/xml" || name == "text/xml" || name.ends_with("+xml");
}

// Returns the class of a response and the rule that decided it, for example Throttle by "status
// 429". The rules for error codes and pending responses come first. If none matches, the status
// decides. For a failure, the result also has the wait that the server asks for, and says whether
// the server refused the request, so that even a POST may be sent again.
Classified classify_response(const RetryPolicy& policy, const Response& response,
                             const Observed& observed) {
  Classified result;
  result.status = response.status;
  result.rule.status = response.status;
  const ResponseHead head{response.status, response.headers, observed.wall_now};
  if (!classify_by_codes(policy.retry_on, head, observed.body, result)) {
    result.cls = by_status(policy.retry_on, response.status);
  }
  // The transport returns an incomplete response only for a redirect, which needs no body, or for
  // a failure. If a rule has made the failure a success, that needs its whole body.
  if (response.incomplete && result.cls == Class::Success && response.status >= 400) {
    result.rule.kind = Rule::Kind::Transport;
    result.rule.transport = TransportKind::Partial;
    const bool covered = policy.retry_on.covers(TransportKind::Partial);
    result.cls = covered ? Class::Transport : Class::Permanent;
  }
  // No retry follows, so the rest does not matter.
  if (result.cls == Class::Success || result.cls == Class::Permanent) return result;

  add_server_delay(policy, head, result);  // makes the class Permanent if the server wants no retry
  // A server that answers 503 and asks for a wait is overloaded.
  if (response.status == 503 && result.server_delay && result.cls == Class::Transient) {
    result.cls = Class::Throttle;
  }
  // A throttle by an error code or a 4xx means that the server refused the request without
  // executing it. A 5xx does not mean that, even if the policy lists the status as a throttle: the
  // server may have begun to work on the request. `refused_for_sure` means that the protocol itself
  // guarantees the refusal.
  const bool by_error_code = result.rule.kind == Rule::Kind::ErrorCode;
  const bool is_4xx = response.status >= 400 && response.status < 500;
  result.refused_for_sure = certainly_refused(response.status, result.server_delay.has_value());
  result.refused = result.refused_for_sure || response.status == 429 ||
                   (result.cls == Class::Throttle && (by_error_code || is_4xx));
  // 421: the connection leads to a server that does not serve this host. One retry on a new
  // connection may help; a second would not.
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

// Returns the class of an error and the rule that decided it. The rule is the status of a proxy
// that refused to connect, or otherwise what failed (`kind`, such as Tls or Timeout). Errors of the
// library itself, such as a cancellation, have no `kind`. These errors, and those that the policy
// does not retry, are Permanent. For other classes, the result also has the wait that the server
// asks for, and says whether the server refused the request, so that even a POST may be sent again.
Classified classify_error(const RetryPolicy& policy, const Error& error, WallTime wall_now) {
  Classified result;
  const auto kind = policy::transport_kind(error);
  const bool refused_by_proxy = error.from_proxy && error.status != 0;
  // If a proxy failed, the server behind it received nothing and has not responded.
  result.status = error.from_proxy ? 0 : error.status;
  result.sent = error.from_proxy ? Sent::Never : error.exchange.sent;
  result.rule.kind = refused_by_proxy ? Rule::Kind::Proxy : Rule::Kind::Error;
  if (!refused_by_proxy && kind) result.rule.kind = Rule::Kind::Transport;
  result.rule.transport = kind.value_or(TransportKind::Connect);  // no meaning without a kind
  result.rule.error = error.code;
  result.rule.status = error.status;
  result.timeout = error.code == Errc::Timeout;  // a budget may charge more for it
  result.stop = stop_reason(error.code);         // why the call ends, if the class stays Permanent
  result.cls = Class::Permanent;
  if (!kind || error.permanent || !policy.retry_on.covers(*kind)) return result;
  result.cls = refused_by_proxy ? class_of_proxy_status(error.status) : Class::Transport;
  if (result.cls == Class::Permanent) return result;

  // The headers of a 429 or 503 may ask for a wait (`server_delay`). A proxy that asks for one is
  // overloaded.
  const bool may_have_delay = error.status == 429 || error.status == 503;
  if (may_have_delay) add_server_delay(policy, {error.status, error.headers, wall_now}, result);
  const bool is_overloaded_proxy = refused_by_proxy && result.server_delay.has_value();
  if (is_overloaded_proxy && result.cls == Class::Transport) result.cls = Class::Throttle;
  // Refused: the server has not executed the request. "For sure" if the protocol guarantees that.
  result.refused_for_sure =
      error.exchange.refused || certainly_refused(result.status, result.server_delay.has_value());
  result.refused = result.refused_for_sure || result.status == 429;
  // A response that is not HTTP (Errc::Protocol) is worth only one retry, on a new connection.
  // Retries after a connection broke (Send or Receive) use a new connection as well.
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

// Returns whether the body of a response with this status and these headers must be read before the
// response counts as a success. It must be if a rule of the policy may find an error in the body,
// or that the operation is still pending.
bool policy::must_read_body(const RetryOn& retry_on, int status, const Headers& headers) {
  // The policy retries this status, which may even be a 2xx, so the response is not a success.
  if (retry_on.statuses.contains(status) || retry_on.throttle_statuses.contains(status))
    return true;
  // A body without a type may be JSON, or XML for a custom rule.
  const auto type = to_lower(headers.get("Content-Type").value_or(""));
  const bool json = type.empty() || type.find("json") != std::string::npos;
  const bool xml = is_xml_type(type);
  // A pending response is no success either. The status alone means pending if the rule names no
  // value in the JSON. Otherwise that value decides.
  const auto& pending = retry_on.pending;
  if (pending && pending->statuses.contains(status) && (pending->json.empty() || json)) return true;
  return std::ranges::any_of(retry_on.error_codes, [&](const ErrorRule& rule) {
    // S3 reports some failures as a 200 with XML.
    if (rule.family == ErrorRule::Family::Aws) return status == 200 && xml;
    // GraphQL at GitHub reports a throttle as a 200, when the quota is used up.
    if (rule.family == ErrorRule::Family::Github) {
      return status == 200 && json && headers.get("x-ratelimit-remaining") == "0";
    }
    // The other families apply only to statuses from 400 on, which are no success anyway.
    if (rule.family != ErrorRule::Family::Custom) return false;
    // A custom rule reads a header, or a value in a JSON or XML body.
    if (rule.status && !rule.status->contains(status)) return false;
    if (rule.source == ErrorRule::Source::Header) return headers.contains(rule.selector);
    return rule.source == ErrorRule::Source::Json ? json : xml || type.empty();
  });
}

// Returns the text that histories and reports show for the rule that decided the class of an
// outcome: "status 503", "error_codes: aws SlowDown" or "transport: connect".
std::string to_string(const Rule& rule) {
  switch (rule.kind) {
    case Rule::Kind::Status: return "status " + std::to_string(rule.status);
    case Rule::Kind::ErrorCode: {
      // A custom rule has no family, but a selector: "error_codes: /error/reason quotaBurst".
      const auto custom = rule.family == ErrorRule::Family::Custom;
      const auto name = custom ? rule.selector : std::string(to_string(rule.family));
      return "error_codes: " + name + (rule.code.empty() ? "" : " ") + rule.code;
    }
    case Rule::Kind::Pending: return "pending" + (rule.code.empty() ? "" : " " + rule.code);
    case Rule::Kind::Transport: return "transport: " + std::string(to_string(rule.transport));
    case Rule::Kind::Error: return "error: " + std::string(to_string(rule.error));
    case Rule::Kind::Proxy: return "proxy: status " + std::to_string(rule.status);
    // In this header the server asked the client not to retry.
    case Rule::Kind::ServerSays: return "grpc-retry-pushback-ms";
    case Rule::Kind::Requested: return "retry_if";
  }
  return "?";  // not reached
}

Observed::Observed(const Outcome& result, WallTime now)
    : Observed(result, result.has_value() ? std::string_view(result->body) : std::string_view(),
               now) {}
Observed::Observed(const Outcome& result, std::string_view body_start, WallTime now)
    : outcome(&result), body(body_start.substr(0, kClassifiedBody)), wall_now(now) {}

Classified classify(const RetryPolicy& policy, const Observed& observed) {
  const auto& outcome = *observed.outcome;
  auto result = outcome ? classify_response(policy, *outcome, observed)
                        : classify_error(policy, outcome.error(), observed.wall_now);
  // An outcome that is retried anyway keeps its class, which may be more precise.
  const bool is_final = result.cls == Class::Success || result.cls == Class::Permanent;
  if (exchange_of(outcome).retry_requested && is_final) {
    result.cls = Class::Transient;
    result.rule.kind = Rule::Kind::Requested;
  }
  return result;
}

// Returns why a call ends if its last attempt had this error. Returns NotRetryable if there is no
// more precise reason.
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
