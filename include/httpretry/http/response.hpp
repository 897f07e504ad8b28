// Response: the response of a server, and the history of the call.
#pragma once

#include <httpretry/http/result.hpp>

#include <cstdint>
#include <string>
#include <variant>

namespace httpretry {

// A scalar of a JSON document, in standard types.
using JsonValue =
    std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string>;

struct HTTPRETRY_API Response {
  Response() = default;
  explicit Response(int code, std::string text = {});

  int status = 0;
  std::string reason;                // the text after the status; HTTP/2 has none
  std::string http_version = "1.1";  // "1.0", "1.1", "2"
  Headers headers;                   // of the final response; without trailers
  std::string body;                  // decoded, if RequestOptions::compressed is set
  std::uint64_t delivered = 0;       // bytes that a sink has; if not 0, `body` is not the body
  std::string url;                   // after redirects; without user and password
  Exchange exchange;
  History history;

  // The status alone; `succeeded` asks the policy.
  [[nodiscard]] bool is_2xx() const { return status >= 200 && status < 300; }

  // The scalar at a JSON pointer of RFC 6901 ("/items/0/name"; "" is the whole body).
  // Errc::Protocol if the body is not JSON, or there is no scalar at the pointer;
  // Errc::InvalidRequest if `pointer` is not a JSON pointer, or if the body went to a sink.
  [[nodiscard]] Result<JsonValue> json_at(std::string_view pointer) const;
};

// What all send functions of a Client, all middlewares and all transports return.
using Outcome = Result<Response>;

// Whether the call was a success, as the policy judges it: there is a response, and it is neither a
// failure nor still pending. Without the middleware retry: a response below 400.
[[nodiscard]] HTTPRETRY_API bool succeeded(const Outcome& outcome);
// Whether a limit of time ended the call (time.hpp lists them): an attempt took too long, or there
// was no time for a retry. It may have a response, that of the last attempt. A call that ended
// because the server asks for too long a wait is not one of these: Reason::ServerDelayTooLong.
[[nodiscard]] HTTPRETRY_API bool timed_out(const Outcome& outcome);
// The response of a call that was a success. Throws Failure for all others; Errc::Status where
// there is a response.
HTTPRETRY_API Response require_success(Outcome outcome);

// A Response and an Error have these in common.
[[nodiscard]] inline const History& history_of(const Outcome& outcome) {
  return outcome ? outcome->history : outcome.error().history;
}
[[nodiscard]] inline const Exchange& exchange_of(const Outcome& outcome) {
  return outcome ? outcome->exchange : outcome.error().exchange;
}
[[nodiscard]] inline Exchange& exchange_of(Outcome& outcome) {
  return outcome ? outcome->exchange : outcome.error().exchange;
}

}  // namespace httpretry
