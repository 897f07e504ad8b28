// The middlewares that come with the library. Each is an ordinary Middleware: what they do, yours
// can do.
//
// A usual chain, outermost first:
//
//   Client client({log(), redirect(), retry(), timeout(std::chrono::seconds(2))});
#pragma once

#include <httpretry/flow/middleware.hpp>

#include <functional>
#include <string>
#include <vector>

namespace httpretry {

// A random UUID (RFC 9562, version 4), from the numbers of the system: what `retry` sends where a
// policy names an idempotency_key.
[[nodiscard]] HTTPRETRY_API std::string new_idempotency_key();

// Follows redirects: 301, 302, 303, 307 and 308 with a Location, as RFC 9110 §15.4 has it: 303
// makes a GET of everything but HEAD; 301 and 302 make a GET of a POST, as everyone does; 307 and
// 308 change nothing. Stands above `retry`, so that each hop is retried by itself.
struct HTTPRETRY_API RedirectOptions {
  RedirectOptions() = default;
  // More hops end the call with Errc::Protocol and libcurl's number for too many redirects, 47.
  int limit = 10;
  // Follow from https to http.
  bool allow_downgrade = false;
  // Send the body of a 307 or 308 on to another origin.
  bool allow_body_to_other_origin = false;
  // Request headers that follow to another origin, beside the harmless ones (Accept,
  // Accept-Encoding, Accept-Language, Cache-Control, Content-Type, Range, User-Agent and
  // conditions). Everything else stays behind: a header of your own may be a secret.
  std::vector<std::string> headers_to_other_origins;
};
[[nodiscard]] HTTPRETRY_API MiddlewarePtr redirect(RedirectOptions options = RedirectOptions());

// Bounds what is below it: an attempt where it stands below `retry`, the whole call above.
// Errc::Timeout when it is over.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr timeout(Duration limit);

// Adds the headers that a request lacks, to requests of the origin that the call was addressed to:
// they may be keys, so they do not follow a redirect elsewhere.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr default_headers(Headers headers);

// Sends "Authorization: Bearer TOKEN" with requests of the origin that the call was addressed to,
// where they have no Authorization of their own.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr bearer(std::string token);

struct HTTPRETRY_API BearerToken {
  BearerToken() = default;
  explicit BearerToken(std::string token, Duration lasts = kForever);

  std::string text;
  Duration valid_for = kForever;  // it is renewed a tenth of that, or 30 s, before the end
};
// Fetches a token, for example from an OAuth server by a client of its own. It should give up at
// call.deadline() and when call.stop() is requested.
using TokenSource = std::function<Task<Result<BearerToken>>(Call& call)>;
// The same with a token that is fetched when it is first needed, when it runs out, and when a
// server answers 401: then the request is sent once more. One fetch at a time, however many calls
// wait for it; what it fails with is the outcome of each of them, unless it is the end of the call
// that fetches (its deadline, a cancel): then another of them fetches.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr bearer(TokenSource fetch);

// Writes a line for each call that passes, through spdlog: method, URL without query and userinfo,
// status or error, attempts, time; at level info, or warn where it failed. Where it stands below
// `retry`, a line for each attempt.
struct HTTPRETRY_API LogOptions {
  LogOptions() = default;
  // The spdlog logger of that name; spdlog's default logger where it is empty or there is none.
  std::string logger;
  // With the headers of request and answer. The values of Authorization, Cookie, Set-Cookie and of
  // every header whose name speaks of a key, a token or a secret are left out.
  bool headers = false;
};
[[nodiscard]] HTTPRETRY_API MiddlewarePtr log(LogOptions options = LogOptions());

}  // namespace httpretry
