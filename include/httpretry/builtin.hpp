// The middlewares that come with the library. Each is an ordinary Middleware: what they do, yours
// can do.
//
// A usual chain, outermost first:
//
//   Client client({log(), redirect(), retry(), timeout(std::chrono::seconds(2))});
#pragma once

#include <httpretry/middleware.hpp>
#include <httpretry/policy_source.hpp>
#include <httpretry/retry.hpp>
#include <httpretry/retry_policy.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// A budget of your own for retries; see budget.hpp for what budgets are for. Asked by calls on
// several threads at once.
class HTTPRETRY_API RetryBudget {
 public:
  virtual ~RetryBudget();
  // A retry of the request is decided; false forbids it.
  virtual bool take(const Request& request, const Classified& classified, Time now) = 0;
  // The retry that the last `take` allowed is not made after all: the call was canceled in its
  // wait.
  virtual void give_back(const Request& request, Time now) = 0;
  // The call is over, once.
  virtual void settle(const Request& request, bool success, Time now) = 0;
};

struct HTTPRETRY_API RetryOptions {
  RetryOptions();
  ~RetryOptions();
  RetryOptions(const RetryOptions&);
  RetryOptions(RetryOptions&&) noexcept;
  RetryOptions& operator=(const RetryOptions&);
  RetryOptions& operator=(RetryOptions&&) noexcept;

  // Each request gets the policy of its endpoint. Left out: the client's
  // (ClientOptions::policies), or the preset `standard`.
  std::optional<PolicySource> policies;
  // Each replaces one part of the stage where it is set, and leaves the rest as it is. They are
  // called on several threads at once.
  std::function<Classified(const RetryPolicy&, const Request&, const Observed&)> classify;
  // Our own wait, before the server is heard; the last argument is uniform in [0, 1).
  std::function<Duration(const RetryPolicy&, const Classified&, const AttemptFacts&, double)>
      backoff;
  std::shared_ptr<RetryBudget> budget;
};

// Sends again what failed and may succeed, by a policy. It looks at each outcome (classify),
// decides (decide), asks the budget and waits; it holds no thread, no connection and no handle of
// libcurl's meanwhile. A request's own policy (RequestOptions::policy) and RequestOptions::retry go
// first.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryOptions options = RetryOptions());
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(PolicySource policies);
// Throws std::invalid_argument for a policy that `check` refuses.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr retry(RetryPolicy policy);

// A random UUID (RFC 9562, version 4), from the numbers of the system: what `retry` sends where a
// policy names an idempotency_key.
[[nodiscard]] HTTPRETRY_API std::string new_idempotency_key();

// Follows redirects: 301, 302, 303, 307 and 308 with a Location, as RFC 9110 §15.4 has it: 303
// makes a GET of everything but HEAD; 301 and 302 make a GET of a POST, as everyone does; 307 and
// 308 change nothing. Stands above `retry`, so that each hop is retried by itself.
struct HTTPRETRY_API RedirectOptions {
  RedirectOptions();
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
  BearerToken();
  explicit BearerToken(std::string token, Duration lasts = kForever);
  ~BearerToken();
  BearerToken(const BearerToken&);
  BearerToken(BearerToken&&) noexcept;
  BearerToken& operator=(const BearerToken&);
  BearerToken& operator=(BearerToken&&) noexcept;

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
  LogOptions();
  ~LogOptions();
  LogOptions(const LogOptions&);
  LogOptions(LogOptions&&) noexcept;
  LogOptions& operator=(const LogOptions&);
  LogOptions& operator=(LogOptions&&) noexcept;
  // The spdlog logger of that name; spdlog's default logger where it is empty or there is none.
  std::string logger;
  // With the headers of request and answer. The values of Authorization, Cookie, Set-Cookie and of
  // every header whose name speaks of a key, a token or a secret are left out.
  bool headers = false;
};
[[nodiscard]] HTTPRETRY_API MiddlewarePtr log(LogOptions options = LogOptions());

}  // namespace httpretry
