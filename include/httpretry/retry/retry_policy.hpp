#pragma once

#include <httpretry/export.hpp>

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
  // StatusSet{500, 503}
  StatusSet(std::initializer_list<int> statuses);
  // Adds the statuses from `first` to `last`. Ignores those outside 100 to 599.
  void add(int first, int last);
  void add(int status) { add(status, status); }
  void add(const StatusSet& others) { bits_ |= others.bits_; }
  // Removes the statuses from `first` to `last`.
  void remove(int first, int last);
  // Returns whether a status is in the set.
  [[nodiscard]] bool contains(int status) const {
    return status >= 100 && status <= 599 && bits_[static_cast<std::size_t>(status - 100)];
  }
  [[nodiscard]] bool empty() const { return bits_.none(); }
  friend bool operator==(const StatusSet&, const StatusSet&) = default;

 private:
  std::bitset<500> bits_;
};

// The kinds of transport errors in retry_on.transport.
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

// ErrorRule is one entry of `retry_on.error_codes`. It classifies a response by an error code in
// its body or headers.
struct HTTPRETRY_API ErrorRule {
  // The systems whose error codes are built in, and Custom for a rule of your own.
  enum class Family : std::uint8_t { Custom, Aws, Google, Github, Openai, Anthropic, Stripe };
  // The place of the error code: a value in JSON, a header, or an element of XML.
  enum class Source : std::uint8_t { Json, Header, Xml };

  ErrorRule() = default;
  explicit ErrorRule(Family rules);
  friend bool operator==(const ErrorRule&, const ErrorRule&) = default;

  Family family = Family::Custom;
  // The members below are only for Custom.
  std::optional<StatusSet> status;  // empty for any status
  Source source = Source::Json;
  std::string selector;         // a JSON pointer ("*" is any index), a header name, an XML element
  std::vector<std::string> in;  // the values that match; empty if presence is enough
  Class as = Class::Transient;  // the class of a response that matches
};

// PendingRule is `retry_on.pending`: the responses that mean "not yet", and how to poll.
struct HTTPRETRY_API PendingRule {
  PendingRule();
  friend bool operator==(const PendingRule&, const PendingRule&) = default;

  StatusSet statuses;           // of the responses that are pending
  std::string json;             // a JSON pointer; empty if the status is enough
  std::vector<std::string> in;  // the values that match; empty if presence is enough
  std::optional<int> max;       // the maximum number of polls; empty for no limit
  Backoff backoff;              // constant 1 s
  // The headers of a pending response that may contain the URL to poll, in order of preference. If
  // the list is empty, or the response has none of these headers, the request itself is sent again.
  std::vector<std::string> url_from;
  // The origins that this URL may have in addition to the request's own:
  // "https://status.example.com", or "https://*.example.com" for one or more labels before the
  // suffix.
  std::vector<std::string> origins;
};

// RetryOn is `retry_on`: the outcomes that are retried.
struct HTTPRETRY_API RetryOn {
  RetryOn();
  friend bool operator==(const RetryOn&, const RetryOn&) = default;

  StatusSet statuses;                  // temporary failures
  StatusSet throttle_statuses;         // of a server that asks for fewer requests
  std::vector<ErrorRule> error_codes;  // the first rule that matches decides
  std::uint8_t transport = 0xFF;       // one bit for each TransportKind
  std::optional<PendingRule> pending;  // empty: no response is pending
  // Returns whether errors of that kind are retried.
  [[nodiscard]] bool covers(TransportKind kind) const {
    return ((transport >> static_cast<unsigned>(kind)) & 1U) != 0;
  }
};

// The origin of a server delay.
enum class ServerDelaySource : std::uint8_t {
  RetryAfterMs,       // retry-after-ms
  XMsRetryAfterMs,    // x-ms-retry-after-ms
  XAmzRetryAfter,     // x-amz-retry-after
  RetryAfter,         // retry-after
  XRateLimitReset,    // x-ratelimit-reset
  XRateLimitResets,   // x-ratelimit-reset-*: with -requests and -tokens, or -after
  AnthropicResets,    // anthropic-ratelimit-*-reset
  RateLimitReset,     // ratelimit-reset
  RateLimit,          // ratelimit
  GrpcRetryPushback,  // grpc-retry-pushback-ms
  RetryInfo,          // google.rpc.RetryInfo in a body; not allowed in ServerDelayPolicy::headers
  SecondaryLimit,     // GitHub's message in a body; not allowed in ServerDelayPolicy::headers
  Function,           // the function of retry_call; not allowed in ServerDelayPolicy::headers
};

// Return the words of policy files: "connect"; "aws", with "custom" for Custom; "retry-after".
[[nodiscard]] HTTPRETRY_API std::string_view to_string(TransportKind kind);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(ErrorRule::Family family);
[[nodiscard]] HTTPRETRY_API std::string_view to_string(ServerDelaySource source);

// ServerDelayPolicy is `server_delay`: how far the client follows the wait that a server asks for.
struct HTTPRETRY_API ServerDelayPolicy {
  // Which wait is used: Max the longer one, Server the server's, Own the library's. Grow uses the
  // longer one, but after the second throttle in a row the sum of both, so that the wait grows even
  // if the server always asks for the same one. Otherwise a rate limiter that counts refused
  // requests would never admit the client.
  enum class Combine : std::uint8_t { Max, Server, Own, Grow };
  // Determines what happens if the server asks for more than `max`: the call ends, or it waits for
  // `max`.
  enum class OverMax : std::uint8_t { Stop, Clamp };

  ServerDelayPolicy();
  friend bool operator==(const ServerDelayPolicy&, const ServerDelayPolicy&) = default;

  std::vector<ServerDelaySource> headers;  // in order of preference; the first valid one is used
  Combine combine = Combine::Grow;
  Duration max;  // the longest wait that a server may ask for
  OverMax over_max = OverMax::Stop;
  Duration max_over_own = kForever;  // a server delay counts up to the backoff plus this
  double spread = 0;                 // adds a random wait of up to this share of the server delay
};

// BudgetPolicy is `budget`: how many retries the calls to one place may make; see budget.hpp.
// Amounts are in thousandths of a token.
struct HTTPRETRY_API BudgetPolicy {
  BudgetPolicy() = default;
  // The kinds of budgets; budget.hpp explains them.
  enum class Kind : std::uint8_t { None, Tokens, Ratio, Grpc, Concurrent };
  // The calls that share the budget: those to a host or an endpoint, or under a policy.
  enum class Scope : std::uint8_t { Host, Endpoint, Policy };

  Kind kind = Kind::None;
  Scope scope = Scope::Host;
  // For Tokens. Grpc uses capacity (max_tokens) and refill (token_ratio).
  std::int64_t capacity = 500'000;
  std::int64_t retry_cost = 14'000;     // for Tokens
  std::int64_t throttle_cost = 14'000;  // for Tokens: of a retry after a throttle
  std::int64_t timeout_cost = 14'000;   // for Tokens: of a retry after a timeout
  std::int64_t refill = 1'000;          // what a success gives back
  // For Ratio.
  std::int64_t ratio = 200;
  Duration window = std::chrono::seconds(10);  // the time over which requests are counted
  std::int64_t min_per_second = 10'000;        // retries that are always allowed
  // For Concurrent, which also uses `ratio`, of at most 1.
  int min = 3;  // retries and hedges, not thousandths

  friend bool operator==(const BudgetPolicy&, const BudgetPolicy&) = default;
};

// A budget whose numbers were changed in a policy file, while its kind and scope stayed the same.
struct HTTPRETRY_API ChangedBudget {
  ChangedBudget() = default;
  ChangedBudget(const BudgetPolicy& old, const BudgetPolicy& changed)
      : before(old), after(changed) {}
  friend bool operator==(const ChangedBudget&, const ChangedBudget&) = default;

  BudgetPolicy before;
  BudgetPolicy after;
};

// Determines what happens if a wait would end after max_elapsed_time. IncludeWait ends the call at
// once. BeforeWait counts only the time before the wait, so there is one more attempt. ClipWait
// shortens the backoff to the time that is left.
enum class ElapsedRule : std::uint8_t { IncludeWait, BeforeWait, ClipWait };
// Which requests may be sent again; decide.hpp has the table.
enum class Repeat : std::uint8_t { Safe, Always, Never, Refused };

// The members of the preset "standard" that are most often changed.
struct StandardPolicy {
  int max_attempts = 5;
  Duration max_elapsed_time = std::chrono::seconds(60);
  Duration attempt_timeout = kForever;
  Duration response_timeout = kForever;
  Repeat repeat = Repeat::Safe;
  StatusSet also_retry = {};  // statuses to retry in addition to those of the preset
};

// RetryPolicy says how the requests to one endpoint are retried. It is plain data with the members
// of a policy file; lib/core/policy/policy-file.md explains each of them.
//
// A default-constructed RetryPolicy is the preset "standard".
struct HTTPRETRY_API RetryPolicy {
  RetryPolicy();  // the preset "standard"
  // Returns the preset "standard" with changes:
  //   RetryPolicy::standard({.max_attempts = 3, .also_retry = {404, 409}})
  static RetryPolicy standard(const StandardPolicy& changes);
  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;

  // Including the first; empty if only the time is limited. Attempts that bring a download at least
  // 64 KiB further do not count, except with 1, which means no retry.
  std::optional<int> max_attempts;
  Duration max_elapsed_time;  // for all attempts and waits together
  ElapsedRule elapsed_rule = ElapsedRule::IncludeWait;
  Duration attempt_timeout = kForever;   // for one attempt with its whole response
  Duration response_timeout = kForever;  // for the headers of the response, in each attempt
  Duration connect_timeout;              // for connecting
  Duration stall_timeout;                // for a pause within the body of the response
  Backoff backoff;
  std::optional<Backoff> throttle_backoff;  // if empty, `backoff` is used
  RetryOn retry_on;
  Repeat repeat = Repeat::Safe;
  std::string idempotency_key;  // a header name; if empty, no key is created
  // The names of headers that tell the server which attempt a send is, counted from 0, and how much
  // time is left for it. Empty for none. policy-file.md has the forms of the values.
  std::string attempt_header;
  std::string deadline_header;
  ServerDelayPolicy server_delay;
  BudgetPolicy budget;
  bool adaptive = false;  // enables the client-side send-rate limiter
  GuardPolicy guards;     // what holds sends back, whether or not they are retries
  std::optional<HedgePolicy> hedge;
};

// Throws std::invalid_argument with the problem if the policy is invalid: no attempt at all, a time
// below zero or over 365 days, a number out of range, a backoff that begins above its end,
// unlimited attempts without max_elapsed_time, or an attempt_timeout above max_elapsed_time. The
// ranges are those of a policy file.
HTTPRETRY_API void check(const RetryPolicy& policy);
HTTPRETRY_API void check(const BudgetPolicy& budget);

}  // namespace httpretry
