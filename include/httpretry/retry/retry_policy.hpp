// RetryPolicy: how the requests to one endpoint are retried. Data only, as in a policy file.
//
// The default-constructed policy is the preset `standard`.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/retry/backoff.hpp>
#include <httpretry/retry/guard_policy.hpp>
#include <httpretry/retry/hedge_policy.hpp>

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// A set of HTTP statuses, 100 to 599.
class HTTPRETRY_API StatusSet {
 public:
  StatusSet() = default;
  // {500, 503}
  StatusSet(std::initializer_list<int> statuses);
  // Statuses outside 100 to 599 are ignored.
  void add(int first, int last);
  void add(int status) { add(status, status); }
  void remove(int first, int last);
  [[nodiscard]] bool contains(int status) const {
    return status >= 100 && status <= 599 && bits_[static_cast<std::size_t>(status - 100)];
  }
  [[nodiscard]] bool empty() const { return bits_.none(); }
  friend bool operator==(const StatusSet&, const StatusSet&) = default;

 private:
  std::bitset<500> bits_;
};

// Kinds of transport errors, as in retry_on.transport.
enum class TransportKind : std::uint8_t {
  Resolve,
  Connect,
  Tls,
  Timeout,
  Send,
  Receive,
  Protocol,
  Partial
};

// One entry of retry_on.error_codes.
struct HTTPRETRY_API ErrorRule {
  enum class Family : std::uint8_t { Custom, Aws, Google, Github, Openai, Stripe };
  enum class Source : std::uint8_t { Json, Header, Xml };

  ErrorRule() = default;
  explicit ErrorRule(Family rules);
  friend bool operator==(const ErrorRule&, const ErrorRule&) = default;

  Family family = Family::Custom;
  // The rest is for Custom.
  std::optional<StatusSet> status;  // empty: any
  Source source = Source::Json;
  std::string selector;         // a JSON pointer ("*" is any array index), a header, an element
  std::vector<std::string> in;  // empty: presence is enough
  Class as = Class::Transient;
};

struct HTTPRETRY_API PendingRule {
  PendingRule();
  friend bool operator==(const PendingRule&, const PendingRule&) = default;

  StatusSet statuses;
  std::string json;             // a pointer; empty: the status is enough
  std::vector<std::string> in;  // empty: presence is enough
  std::optional<int> max;       // polls; empty: no limit
  Backoff backoff;              // constant 1 s
  // The headers of a pending response that may hold the URL to poll, in order of preference. Empty,
  // or if the response has none of them: the request is sent again.
  std::vector<std::string> url_from;
  // The origins that this URL may have besides the request's own: "https://status.example.com", or
  // "https://*.example.com" for one label or more before the suffix.
  std::vector<std::string> origins;
};

struct HTTPRETRY_API RetryOn {
  RetryOn();
  friend bool operator==(const RetryOn&, const RetryOn&) = default;

  StatusSet statuses;
  StatusSet throttle_statuses;
  std::vector<ErrorRule> error_codes;
  std::uint8_t transport = 0xFF;  // a bit for each TransportKind
  std::optional<PendingRule> pending;
  [[nodiscard]] bool covers(TransportKind kind) const {
    return ((transport >> static_cast<unsigned>(kind)) & 1U) != 0;
  }
};

// Where a server delay comes from.
enum class ServerDelaySource : std::uint8_t {
  RetryAfterMs,       // retry-after-ms
  XMsRetryAfterMs,    // x-ms-retry-after-ms
  XAmzRetryAfter,     // x-amz-retry-after
  RetryAfter,         // retry-after
  XRateLimitReset,    // x-ratelimit-reset
  RateLimitReset,     // ratelimit-reset
  RateLimit,          // ratelimit
  GrpcRetryPushback,  // grpc-retry-pushback-ms
  RetryInfo,          // google.rpc.RetryInfo in a body; not for ServerDelayPolicy::headers
  SecondaryLimit,     // GitHub's message in a body; not for ServerDelayPolicy::headers
  Function,           // the function of retry_call; not for ServerDelayPolicy::headers
};

// The words of a policy file: "connect", "aws" (Custom is "custom"), "retry-after".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(TransportKind kind);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(ErrorRule::Family family);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(ServerDelaySource source);

struct HTTPRETRY_API ServerDelayPolicy {
  // Which wait is used: the longer one, the server's, or ours. Grow: the longer one; after the
  // second throttle in a row both together, so that the wait grows even if the server always asks
  // for the same. A limiter that counts refused requests would else never let us through.
  enum class Combine : std::uint8_t { Max, Server, Own, Grow };
  enum class OverMax : std::uint8_t { Stop, Clamp };

  ServerDelayPolicy();
  friend bool operator==(const ServerDelayPolicy&, const ServerDelayPolicy&) = default;

  std::vector<ServerDelaySource> headers;  // in this order; the first valid one counts
  Combine combine = Combine::Grow;
  Duration max;
  OverMax over_max = OverMax::Stop;
  Duration max_over_own = kForever;  // a server delay counts up to our own wait plus this
  double spread = 0;                 // a random extra of up to this share of the server delay
};

// Amounts are in thousandths of a token.
struct HTTPRETRY_API BudgetPolicy {
  BudgetPolicy() = default;
  enum class Kind : std::uint8_t { None, Tokens, Ratio, Grpc, Concurrent };
  enum class Scope : std::uint8_t { Host, Endpoint, Policy };

  Kind kind = Kind::None;
  Scope scope = Scope::Host;
  // Tokens; Grpc uses capacity (max_tokens) and refill (token_ratio).
  std::int64_t capacity = 500'000;
  std::int64_t retry_cost = 14'000;
  std::int64_t throttle_cost = 14'000;
  std::int64_t timeout_cost = 14'000;
  std::int64_t refill = 1'000;
  // Ratio.
  std::int64_t ratio = 200;
  Duration window = std::chrono::seconds(10);
  std::int64_t min_per_second = 10'000;
  // Concurrent uses ratio, of 1 at most, and:
  int min = 3;  // retries and hedges, not thousandths

  friend bool operator==(const BudgetPolicy&, const BudgetPolicy&) = default;
};

// A budget whose numbers a policy file has changed, while its kind and scope are the same.
struct HTTPRETRY_API ChangedBudget {
  ChangedBudget() = default;
  ChangedBudget(const BudgetPolicy& old, const BudgetPolicy& changed)
      : before(old), after(changed) {}
  friend bool operator==(const ChangedBudget&, const ChangedBudget&) = default;

  BudgetPolicy before;
  BudgetPolicy after;
};

enum class ElapsedRule : std::uint8_t { IncludeWait, BeforeWait, ClipWait };
// Which requests may be sent again: decide.hpp has the table.
enum class Repeat : std::uint8_t { Safe, Always, Never, Refused };

// What is often changed of the policy `standard`.
struct StandardPolicy {
  int max_attempts = 5;
  Duration max_elapsed_time = std::chrono::seconds(60);
  Duration attempt_timeout = kForever;
  Duration response_timeout = kForever;
  Repeat repeat = Repeat::Safe;
};

struct HTTPRETRY_API RetryPolicy {
  RetryPolicy();  // the preset `standard`
  // RetryPolicy::standard({.max_attempts = 3})
  static RetryPolicy standard(const StandardPolicy& changes);
  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;

  std::optional<int> max_attempts;  // including the first; empty: no limit but max_elapsed_time
  Duration max_elapsed_time;
  ElapsedRule elapsed_rule = ElapsedRule::IncludeWait;
  Duration attempt_timeout = kForever;
  Duration response_timeout = kForever;  // for the headers of a response, in each attempt
  Duration connect_timeout;
  Duration stall_timeout;
  Backoff backoff;
  std::optional<Backoff> throttle_backoff;  // empty: `backoff`
  RetryOn retry_on;
  Repeat repeat = Repeat::Safe;
  std::string idempotency_key;  // a header name; empty: no key is made
  ServerDelayPolicy server_delay;
  BudgetPolicy budget;
  bool adaptive = false;  // the client-side send-rate limiter
  GuardPolicy guards;     // what holds sends back, retries or not
  std::optional<HedgePolicy> hedge;
};

// Throws std::invalid_argument, with the error, for a policy that makes no sense: no attempt at
// all, a time below zero or over 365 days, a number outside of its limits, a backoff that begins
// above its end, unlimited attempts without a max_elapsed_time, an attempt_timeout above it. Each
// value has the limits that it has in a policy file.
HTTPRETRY_API void check(const RetryPolicy& policy);
HTTPRETRY_API void check(const BudgetPolicy& budget);

}  // namespace httpretry
