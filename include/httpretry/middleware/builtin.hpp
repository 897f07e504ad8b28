// The built-in middlewares, except `retry`, `hedge` and `guards`. They use only the public
// interface of Middleware, so your own can do the same.
//
// A typical chain, outermost first. `timeout` comes last, so that it limits each send and does not
// count the waits of `guards`:
//
//   Client client({log(), redirect(), retry(), hedge(), guards(), timeout(2s)});
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>
#include <httpretry/log/log.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// Returns a random UUID (RFC 9562, version 4) from the system's random numbers. `retry` sends one
// as the idempotency key that a policy requires.
[[nodiscard]] HTTPRETRY_API std::string new_idempotency_key();

// The options of `redirect`.
struct HTTPRETRY_API RedirectOptions {
  RedirectOptions() = default;
  // More redirects end the call with Errc::Protocol and libcurl's code 47 in curl_code.
  int limit = 10;
  // Allows redirects from https to http.
  bool allow_downgrade = false;
  // Allows the body of a 307 or 308 to be sent to another origin.
  bool allow_body_to_other_origin = false;
  // Additional request headers that may be sent to another origin. By default only harmless headers
  // are sent there: Accept, Accept-Encoding, Accept-Language, Cache-Control, Content-Type, Range,
  // User-Agent and conditions. All others are removed, because an unknown header may be a secret.
  std::vector<std::string> headers_to_other_origins;
  // Sends everything to other origins: credentials, the name and password in the URL, bodies, and
  // all headers except Host.
  bool trust_other_origins = false;
  // The statuses after which a POST stays a POST with its body: 301, 302 or 303.
  std::vector<int> keep_post_after;
};
// Returns a middleware that follows redirects: 301, 302, 303, 307 and 308 with a Location. Methods
// change as in RFC 9110 §15.4 and in browsers: after 303, all methods except HEAD become GET; after
// 301 and 302, POST becomes GET; 307 and 308 keep the method. Put it above `retry`, so that each
// hop is retried separately.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr redirect(RedirectOptions options = RedirectOptions());

// Returns a middleware that sets a time limit for everything below it: for each attempt if it is
// below `retry`, and for the whole call if it is above. At the limit the outcome is Errc::Timeout.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr timeout(Duration limit);

// Returns a middleware that has an attempt retried if `should_retry` returns true for its outcome,
// although the policy does not retry it. Put it below `retry`:
//
//   options.attempt_middlewares = {retry_if([](const Outcome& outcome) {
//     return outcome && outcome->status == 200 && outcome->body.empty();
//   })};
//
// All limits of the policy apply, and a request that the server may have executed is still retried
// only if that is safe. Several threads call `should_retry` at once. It is not called if the call
// was canceled or its request is invalid, nor for a response whose body went to a sink. To retry
// further statuses, no function is needed: policy.retry_on.statuses.add(409).
[[nodiscard]] HTTPRETRY_API MiddlewarePtr
retry_if(std::function<bool(const Outcome& outcome)> should_retry);

// Makes a response after a call has failed, or returns nullopt to let it fail. `failure` is the
// outcome of the call, with its history.
using Fallback = std::function<std::optional<Response>(const Request& request,
                                                       const Outcome& failure, Call& call)>;

// Returns a middleware that calls `make` when a call has failed for good, and uses the response
// that it makes: the last good one, for example, or a default. Put it above `retry`:
//
//   options.call_middlewares = {fallback([](const Request&, const Outcome&, Call&) {
//     return std::optional(Response(200, R"({"items":[]})"));
//   })};
//
// The response has Response::from_fallback set, so `succeeded` is true if its status is below 400.
// Its history is that of the failed call, and so are the reports, traces and metrics; they mark or
// count it as a fallback. `make` is not called if the call was canceled or its request is invalid.
// Several threads call it at once.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr fallback(Fallback make);

// Returns a middleware that adds the headers that a request lacks. It adds them only to requests to
// the origin of the call: they may be secrets, so they do not follow a redirect to another origin.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr default_headers(Headers headers);

// Returns a middleware that adds "Authorization: Bearer TOKEN" to requests that have no
// Authorization. It adds it only to requests to the origin of the call.
//
// `origins` are the origins that may receive the token, such as "https://api.example.com". Empty:
// the origin of each call, so a call to another host sends the token there. Throws
// std::invalid_argument if the token is not a header value or if an entry is not an origin.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr bearer(std::string token,
                                                 std::vector<std::string> origins = {});

// A token, and how long it is valid.
struct HTTPRETRY_API BearerToken {
  BearerToken() = default;
  explicit BearerToken(std::string token, Duration lasts = kForever);

  std::string text;
  // The token is renewed early: by a tenth of this time, but at most by 30 s.
  Duration valid_for = kForever;
};
// Fetches a token from a server, usually through a separate client: a request that needs the token
// itself would wait for its own fetch, without an end. For the client credentials of OAuth 2.0, use
// oauth2/oauth2.hpp instead. The function should end at call.deadline() and when call.stop() is
// requested. It is kept as long as the middleware, so the captures of a lambda stay valid.
//
// Below `retry` (the usual position), an error of the fetch is classified like an error of the
// request, and retried if it may be temporary. The separate client should therefore send only once
// (Client::bare()), or the attempts multiply. For a rejected login, return an Error with
// `permanent` set, which prevents a retry.
using TokenSource = std::function<Task<Result<BearerToken>>(Call& call)>;
// The same for a token that is fetched when it is first needed and when it expires. After a 401 the
// token is fetched again, and the request is sent once more. Only one fetch runs at a time, and all
// calls that need the token wait for it. If the fetch fails or throws, all of them end with its
// error. If the fetching call ends early (at its deadline, or because it is canceled), another
// waiting call fetches.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr bearer(TokenSource fetch,
                                                 std::vector<std::string> origins = {});

// The options of `log`.
struct HTTPRETRY_API LogOptions {
  LogOptions() = default;
  // The destination of the lines. If empty, the lines go where all log lines go (log_to), by
  // default to standard error.
  LogFunction to;
  // Also logs the headers of request and response in the form of `shown_value`, without secrets and
  // without the queries of URLs.
  bool headers = false;
};
// Returns a middleware that logs a line for each call: method, URL without query and userinfo,
// status or error, attempts, and time. The level is info, or warning for a failure. Below `retry`
// it logs a line for each attempt.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr log(LogOptions options = LogOptions());

}  // namespace httpretry
