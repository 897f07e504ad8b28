// classify: what an outcome means for a retry. Pure.
//
// Asked in this order; the first that knows decides:
//
//   1. the transport's error, by its kind: there is no answer to look at
//   2. retry_on.error_codes, rule by rule: a reason in the body beats the status
//   3. retry_on.pending
//   4. retry_on.throttle_statuses, then retry_on.statuses
//   5. a status under 400 is a success, any other permanent
//
// A 503 that says when to come back is a throttle. A 421 is worth one more try, on a connection of
// its own.
//
// Of a body the first 64 KiB are looked at, and only where a rule needs it. A body that is not what
// it claims to be is no error: what was readable counts, the rest is not there.
#pragma once

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

// What one attempt came to. Views: valid while what they point at is.
struct HTTPRETRY_API Observed {
  // Takes the body from the response.
  Observed(const Outcome& result, WallTime now);
  // The body went elsewhere and `body_start` was kept of it.
  Observed(const Outcome& result, std::string_view body_start, WallTime now);

  const Outcome* outcome;
  std::string_view body;
  WallTime wall_now;
};

inline constexpr std::size_t kClassifiedBody = std::size_t{64} * 1024;

// What decided the class; `to_string` gives it as reports print it.
struct HTTPRETRY_API Rule {
  enum class Kind : std::uint8_t {
    Status,      // "status 503"
    ErrorCode,   // "error_codes: aws SlowDown", "error_codes: /error/reason quotaBurst"
    Pending,     // "pending", "pending RUNNING"
    Transport,   // "transport: connect"
    Error,       // "error: canceled": no retry can help
    Proxy,       // "proxy: status 503"
    ServerSays,  // "grpc-retry-pushback-ms": the server asks for no retry
  };

  Rule() = default;

  Kind kind = Kind::Status;
  ErrorRule::Family family = ErrorRule::Family::Custom;
  TransportKind transport = TransportKind::Connect;
  Errc error{};
  int status = 0;
  std::string selector;  // of a custom error rule
  // The value that matched. It came from outside: printable ASCII is left of it, 64 bytes at most.
  std::string code;
};

[[nodiscard]] HTTPRETRY_API std::string to_string(const Rule& rule);

struct HTTPRETRY_API Classified {
  Classified() = default;

  Class cls = Class::Success;
  Rule rule;
  int status = 0;                      // 0: no final status
  Reason stop = Reason::NotRetryable;  // why a Permanent outcome ends the call
  Sent sent = Sent::Answered;          // could the origin have seen the request?
  bool timeout = false;                // budgets may charge more for one
  // The server says that it did nothing with the request (429, 425, 421, a 503 that says when to
  // come back, a throttling code, a refused HTTP/2 stream): any method may be sent again.
  bool refused = false;
  bool once = false;              // worth a single retry in a call: 421, an answer that is no HTTP
  bool fresh_connection = false;  // the retry should not use a pooled connection
  // What the server asks for; empty for a success.
  std::optional<ServerDelay> hint;
};

[[nodiscard]] HTTPRETRY_API Classified classify(const RetryPolicy& policy,
                                                const Observed& observed);

}  // namespace httpretry
