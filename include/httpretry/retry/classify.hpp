// classify determines what an outcome means for a retry. It is a pure function.
//
// The first of these that applies decides:
//
//   1. a transport error, by its kind: there is no response
//   2. retry_on.error_codes, rule by rule: a code in the body takes precedence over the status
//   3. retry_on.pending
//   4. retry_on.throttle_statuses, then retry_on.statuses
//   5. a status below 400 is a success, any other is permanent
//
// A 503 with a server delay is a throttle. A 421 is retried once, on a new connection.
//
// Only the first 64 KiB of a body are read, and only if a rule needs them. A malformed body is not
// an error: the part before the malformed position is used.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/request.hpp>
#include <httpretry/http/response.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/retry_policy.hpp>
#include <httpretry/retry/server_delay.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

// The outcome of one attempt. The outcome and the body must outlive this object.
struct HTTPRETRY_API Observed {
  // Uses the body of the response.
  Observed(const Outcome& result, WallTime now);
  // For a body that went to a sink. `body_start` is its beginning.
  Observed(const Outcome& result, std::string_view body_start, WallTime now);

  const Outcome* outcome;
  std::string_view body;
  WallTime wall_now;  // when the outcome arrived; for dates in headers
};

// How much of a body is read.
inline constexpr std::size_t kClassifiedBody = std::size_t{64} * 1024;

// The rule that determined the class. `to_string` returns its text for reports.
struct HTTPRETRY_API Rule {
  // The kinds of rules, each with an example of its text.
  enum class Kind : std::uint8_t {
    Status,      // "status 503"
    ErrorCode,   // "error_codes: aws SlowDown", "error_codes: /error/reason quotaBurst"
    Pending,     // "pending", "pending RUNNING"
    Transport,   // "transport: connect"
    Error,       // "error: canceled"; a retry cannot help
    Proxy,       // "proxy: status 503"
    ServerSays,  // "grpc-retry-pushback-ms"; the server asks the client not to retry
    Requested,   // "retry_if"
  };

  Rule() = default;

  Kind kind = Kind::Status;
  ErrorRule::Family family = ErrorRule::Family::Custom;
  TransportKind transport = TransportKind::Connect;
  Errc error{};
  int status = 0;
  std::string selector;  // of a custom ErrorRule
  // The value from the server that matched: printable ASCII only, at most 64 bytes.
  std::string code;
};

// Returns the text for reports and histories: "status 503".
[[nodiscard]] HTTPRETRY_API std::string to_string(const Rule& rule);

// The result of `classify`.
struct HTTPRETRY_API Classified {
  Classified() = default;

  Class cls = Class::Success;  // what the outcome means for a retry
  Rule rule;
  int status = 0;                      // 0 if there was no final status
  Reason stop = Reason::NotRetryable;  // why a Permanent outcome ends the call
  Sent sent = Sent::Answered;          // whether the server may have received the request
  bool timeout = false;                // budgets may charge more for a timeout
  // The server indicates that it did not execute the request (429, 425, 421, a 503 with a server
  // delay, a throttling code, a refused HTTP/2 stream). Any method may then be retried.
  bool refused = false;
  // The protocol itself guarantees this: a refused HTTP/2 stream, one above a GOAWAY, 421, 425, and
  // 429 or 503 with a server delay.
  bool refused_for_sure = false;
  bool once = false;  // worth only one retry in a call: 421, a response that is not HTTP
  bool fresh_connection = false;  // the retry should not use a pooled connection
  // Empty for a success.
  std::optional<ServerDelay> server_delay;
};

// Returns what an outcome means for a retry, under a policy. Error codes in the body and pending
// responses take precedence over the status.
[[nodiscard]] HTTPRETRY_API Classified classify(const RetryPolicy& policy,
                                                const Observed& observed);

// Returns why a call ends with an error that no retry can help.
[[nodiscard]] HTTPRETRY_API Reason stop_reason(Errc code);

}  // namespace httpretry
