// The middlewares that come with the library, besides `retry`. They use nothing but the public
// interface of Middleware, so yours can do the same.
//
// A usual chain, outermost first. `timeout` is the last, so that it limits each send and does not
// count the waits of `guards`:
//
//   Client client({log(), redirect(), retry(), hedge(), guards(), timeout(2s)});
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/log/log.hpp>

#include <concepts>
#include <functional>
#include <string>
#include <vector>

namespace httpretry {

// A random UUID (RFC 9562, version 4), from the random numbers of the system. `retry` sends one as
// the idempotency key that a policy asks for.
[[nodiscard]] HTTPRETRY_API std::string new_idempotency_key();

// Follows redirects: 301, 302, 303, 307 and 308 with a Location, by RFC 9110 §15.4: after 303 all
// methods but HEAD become GET; after 301 and 302 POST becomes GET, as in browsers; 307 and 308
// change nothing. Put it above `retry`, so that each hop is retried by itself.
struct HTTPRETRY_API RedirectOptions {
  RedirectOptions() = default;
  // More redirects end the call with Errc::Protocol, and 47 in curl_code as libcurl does.
  int limit = 10;
  // Follow from https to http.
  bool allow_downgrade = false;
  // Send the body of a 307 or 308 on to another origin.
  bool allow_body_to_other_origin = false;
  // Request headers that are sent on to another origin, besides the harmless ones (Accept,
  // Accept-Encoding, Accept-Language, Cache-Control, Content-Type, Range, User-Agent and
  // conditions). All others are removed: a header of your own may be a secret.
  std::vector<std::string> headers_to_other_origins;
};
[[nodiscard]] HTTPRETRY_API MiddlewarePtr redirect(RedirectOptions options = RedirectOptions());

// A time limit for what is below it: for each attempt where it is below `retry`, for the whole call
// above. Ends with Errc::Timeout.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr timeout(Duration limit);
// timeout(0.5s)
template <std::floating_point Seconds, class Period>
[[nodiscard]] MiddlewarePtr timeout(std::chrono::duration<Seconds, Period> limit) {
  return timeout(std::chrono::duration_cast<Duration>(limit));
}

// Adds the headers that a request does not have. Only to requests to the origin of the call: they
// may be secrets, so they do not follow a redirect to another origin.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr default_headers(Headers headers);

// Adds "Authorization: Bearer TOKEN" to requests to the origin of the call that have no
// Authorization.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr bearer(std::string token);

struct HTTPRETRY_API BearerToken {
  BearerToken() = default;
  explicit BearerToken(std::string token, Duration lasts = kForever);

  std::string text;
  // It is renewed before its end: a tenth of this before, at most 30 s.
  Duration valid_for = kForever;
};
// Fetches a token, for example from an OAuth server with a client of its own. It should end at
// call.deadline() and when call.stop() is requested. It is kept as long as the middleware, so a
// lambda's captures are safe to use in it.
//
// Below `retry` (the usual place) an error of it is judged as one of the request: what may pass is
// retried. So its own client should send once (Client::bare()), or the attempts multiply. For a
// refused login return an Error with `permanent` set: there is no retry.
using TokenSource = std::function<Task<Result<BearerToken>>(Call& call)>;
// The same with a token that is fetched when it is first needed and when it expires. After a 401
// it is fetched as well, and the request is sent once more. There is one fetch at a time, and all
// calls that need the token wait for it. If it fails, its error is the outcome of all of them; if
// the fetching call ends before (its deadline, a cancel), another one fetches.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr bearer(TokenSource fetch);

// Logs a line for each call: method, URL without query and userinfo, status or error, attempts,
// time; at level info, or warning for a failure. Below `retry` it logs a line for each attempt.
struct HTTPRETRY_API LogOptions {
  LogOptions() = default;
  // Where the lines go. If it is empty: where all lines go (log_to), which is standard error.
  LogFunction to;
  // Also log the headers of request and response, as `shown_value` shows them: without secrets and
  // without the queries of URLs.
  bool headers = false;
};
[[nodiscard]] HTTPRETRY_API MiddlewarePtr log(LogOptions options = LogOptions());

}  // namespace httpretry
