// Response: what a server answered, and how the call went.
#pragma once

#include <httpretry/http/headers.hpp>
#include <httpretry/http/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace httpretry {

// A scalar of a JSON document, in standard types.
using JsonValue =
    std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string>;

struct HTTPRETRY_API Response {
  Response() = default;
  explicit Response(int code, std::string text = {});

  int status = 0;
  std::string reason;                // the words after the status, as sent; HTTP/2 has none
  std::string http_version = "1.1";  // "1.0", "1.1", "2"
  Headers headers;                   // of the final answer; 1xx answers and trailers are not kept
  std::string body;                  // decoded, where compression was asked for
  std::uint64_t delivered = 0;       // bytes of it that are with the request's sink
  std::string url;                   // the URL that answered, after redirects
  Exchange exchange;
  History history;

  // 200 to 299.
  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }

  // The scalar at a JSON pointer of RFC 6901 ("/items/0/name"; "" is the whole body).
  // Errc::Protocol where the body is no JSON, where nothing stands at the pointer, and where it is
  // an array or an object; Errc::InvalidRequest where `pointer` is no JSON pointer.
  [[nodiscard]] Result<JsonValue> json_at(std::string_view pointer) const;
};

// What every door of a Client, every middleware and every transport answers with.
using Outcome = Result<Response>;

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
