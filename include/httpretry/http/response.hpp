#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace httpretry {

// A scalar of a JSON document, in standard types.
using JsonValue =
    std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string>;

// A cookie that a response sets.
struct HTTPRETRY_API SetCookie {
  SetCookie() = default;

  std::string name;
  std::string value;
  // The attributes in their order. The names ignore case; "Secure" and "HttpOnly" have no value.
  Headers attributes;  // "Path: /", "Max-Age: 3600"
};

// Response is a server's response, with the history of the call.
struct HTTPRETRY_API Response {
  Response() = default;
  explicit Response(int code, std::string text = {});

  int status = 0;
  std::string reason;                // the text after the status; empty for HTTP/2
  std::string http_version = "1.1";  // "1.0", "1.1", "2"
  Headers headers;                   // of the final response, without trailers
  std::string body;                  // decoded if RequestOptions::compressed is set
  // `body` is only a part, because the rest was not received or could not be decoded. Set only for
  // a failure or a redirect, because their status and headers suffice. A success without its
  // whole body is an error.
  bool incomplete = false;
  // The middleware `fallback` made this response after the call had failed. `history` tells how.
  bool from_fallback = false;
  std::uint64_t delivered = 0;  // bytes passed to a sink; if nonzero, `body` is not the body
  std::string url;              // the URL after redirects, without user and password
  Exchange exchange;
  History history;

  // Considers the status alone. `succeeded` applies the policy.
  [[nodiscard]] bool is_2xx() const { return status >= 200 && status < 300; }

  // Returns the scalar at a JSON pointer of RFC 6901 ("/items/0/name"; "" is the whole body).
  // Returns Errc::Protocol if the body is not JSON or has no scalar at the pointer. Returns
  // Errc::InvalidRequest if `pointer` is not a JSON pointer, or if the body went to a sink.
  [[nodiscard]] Result<JsonValue> json_at(std::string_view pointer) const;
  // Returns the string at a JSON pointer, or an empty one if there is no string:
  //
  //   std::cerr << response.json_text("/error/message");
  [[nodiscard]] std::string json_text(std::string_view pointer) const;

  // Resolves a reference in the response ("next?page=2", "/items", an absolute URL) against its
  // URL.
  [[nodiscard]] Result<std::string> resolve(std::string_view reference) const;
  // Returns the absolute URL of the first link with this relation ("next") in the Link headers
  // (RFC 8288), or nullopt if there is no such link.
  [[nodiscard]] std::optional<std::string> link(std::string_view relation) const;
  // Returns the cookies that the response sets. Those without a name are left out, as browsers do.
  [[nodiscard]] std::vector<SetCookie> cookies() const;
};

// The result of all send functions, middlewares and transports.
using Outcome = Result<Response>;

// Returns whether the call succeeded according to its policy: there is a response, and it is
// neither a failure nor still pending. Without the middleware retry, and for a response of
// `fallback`, a status below 400 is a success.
[[nodiscard]] HTTPRETRY_API bool succeeded(const Outcome& outcome);
// Returns whether a time limit ended the call (time.hpp lists them): an attempt took too long, or
// there was no time for a retry. Such a call may have a response, that of its last attempt. Returns
// false for a call that ended because the server asked for too long a wait; see
// Reason::ServerDelayTooLong.
[[nodiscard]] HTTPRETRY_API bool timed_out(const Outcome& outcome);
// Returns the response of a successful call. Otherwise throws Failure, with Errc::Status if there
// is a response.
HTTPRETRY_API Response require_success(Outcome outcome);

// Return the members that Response and Error have in common.
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
