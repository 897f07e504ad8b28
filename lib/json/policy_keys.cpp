#include "lib/json/policy_keys.hpp"

#include <httpretry/endpoint.hpp>

#include <algorithm>
#include <limits>

namespace httpretry::policy_file {
namespace {

template <class Class, class Value>
Class class_of(Value Class::*);

template <auto Member>
void* at(void* object) {
  return &(static_cast<decltype(class_of(Member))*>(object)->*Member);
}
template <auto Member>
void* renewed(void* object) {
  auto& member = static_cast<decltype(class_of(Member))*>(object)->*Member;
  member = {};
  return &member;
}
template <auto Member>
void* emplaced(void* object) {
  return &(static_cast<decltype(class_of(Member))*>(object)->*Member).emplace();
}
template <auto Member>
void* if_any(void* object) {
  auto& member = static_cast<decltype(class_of(Member))*>(object)->*Member;
  return member ? &*member : nullptr;
}
void* budget_if_any(void* object) {
  auto& budget = static_cast<RetryPolicy*>(object)->budget;
  return budget.kind == BudgetPolicy::Kind::None ? nullptr : &budget;
}

template <class Enum>
constexpr Mask mask(Enum one) {
  return Mask{1} << static_cast<unsigned>(one);
}
template <class Enum, class... Enums>
constexpr Mask mask(Enum one, Enums... more) {
  return mask(one) | mask(more...);
}

constexpr double kInts = std::numeric_limits<int>::max();
constexpr double kTokens = 1e12;
constexpr double kFactors = 1e6;

// In the order of Backoff::Kind, Backoff::Jitter, BudgetPolicy::Kind, and so on.
constexpr std::string_view kKinds[] = {"none",         "constant",         "linear", "exponential",
                                       "decorrelated", "truncated_binary", "slots"};
constexpr std::string_view kJitters[] = {"none",         "full",  "equal",
                                         "proportional", "range", "additive"};
constexpr std::string_view kCaps[] = {"before", "after"};
constexpr std::string_view kBudgets[] = {"", "tokens", "ratio", "grpc"};
constexpr std::string_view kScopes[] = {"host", "endpoint", "policy"};
constexpr std::string_view kElapsedRules[] = {"include_wait", "before_wait", "clip_wait"};
constexpr std::string_view kRepeats[] = {"safe", "always", "never"};
constexpr std::string_view kCombines[] = {"max", "server", "own"};
constexpr std::string_view kOverMax[] = {"stop", "clamp"};
constexpr std::string_view kFamilies[] = {"", "aws", "google", "github", "openai", "stripe"};
constexpr std::string_view kTransports[] = {"resolve", "connect", "tls",      "timeout",
                                            "send",    "receive", "protocol", "partial"};
constexpr std::string_view kHints[] = {
    "retry-after-ms",    "x-ms-retry-after-ms", "x-amz-retry-after", "retry-after",
    "x-ratelimit-reset", "ratelimit-reset",     "ratelimit",         "grpc-retry-pushback-ms"};
constexpr std::string_view kClasses[] = {"success",   "pending", "throttle",
                                         "transient", "",        "permanent"};
constexpr std::string_view kSchemes[] = {"http", "https"};

using Kind = Backoff::Kind;
using Jitter = Backoff::Jitter;
using Purse = BudgetPolicy::Kind;

constexpr Key kBackoffKeys[] = {
    {.name = "kind",
     .form = Form::Word,
     .field = at<&Backoff::kind>,
     .words = kKinds,
     .required = kAll,
     .about = "How waits grow."},
    {.name = "interval",
     .form = Form::Duration,
     .field = at<&Backoff::initial>,
     .kinds = mask(Kind::Constant),
     .required = mask(Kind::Constant),
     .about = "Every wait."},
    {.name = "initial",
     .form = Form::Duration,
     .field = at<&Backoff::initial>,
     .kinds = mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated),
     .required = mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated),
     .about = "The first wait."},
    {.name = "increment",
     .form = Form::Duration,
     .field = at<&Backoff::increment>,
     .kinds = mask(Kind::Linear),
     .required = mask(Kind::Linear),
     .about = "Added for each further wait."},
    {.name = "multiplier",
     .form = Form::Number,
     .field = at<&Backoff::multiplier>,
     .fallback = "2",
     .least = 1,
     .most = kFactors,
     .kinds = mask(Kind::Exponential),
     .about = "Each wait is the one before times this (2; 3 for decorrelated)."},
    {.name = "multiplier",
     .form = Form::Number,
     .field = at<&Backoff::multiplier>,
     .fallback = "3",
     .least = 1,
     .most = kFactors,
     .kinds = mask(Kind::Decorrelated)},
    {.name = "max_interval",
     .form = Form::Limit,
     .field = at<&Backoff::max_interval>,
     .fallback = "\"none\"",
     .kinds = mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated),
     .about = "No wait is longer (none; for truncated_binary the last step's ceiling)."},
    {.name = "max_interval",
     .form = Form::Duration,
     .field = at<&Backoff::max_interval>,
     .kinds = mask(Kind::TruncatedBinary),
     .required = mask(Kind::TruncatedBinary)},
    {.name = "cap",
     .form = Form::Word,
     .field = at<&Backoff::cap_after_jitter>,
     .fallback = "\"before\"",
     .words = kCaps,
     .kinds = mask(Kind::Exponential),
     .about = "Whether max_interval bounds the wait before jitter or after it (before)."},
    {.name = "jitter",
     .form = Form::Word,
     .field = at<&Backoff::jitter>,
     .fallback = "\"full\"",
     .words = kJitters,
     .kinds = mask(Kind::Exponential),
     .about = "What chance makes of a wait (full)."},
    {.name = "randomization",
     .form = Form::Number,
     .field = at<&Backoff::randomization>,
     .fallback = "0.5",
     .least = 0,
     .most = 1,
     .kinds = mask(Kind::Exponential),
     .jitters = mask(Jitter::Proportional),
     .about = "For jitter proportional (0.5)."},
    {.name = "low",
     .form = Form::Number,
     .field = at<&Backoff::low>,
     .least = 0,
     .most = kFactors,
     .kinds = mask(Kind::Exponential),
     .jitters = mask(Jitter::Range),
     .required = mask(Kind::Exponential),
     .about = "For jitter range: the least factor."},
    {.name = "high",
     .form = Form::Number,
     .field = at<&Backoff::high>,
     .least = 0,
     .most = kFactors,
     .kinds = mask(Kind::Exponential),
     .jitters = mask(Jitter::Range),
     .required = mask(Kind::Exponential),
     .about = "For jitter range: the most."},
    {.name = "add",
     .form = Form::Duration,
     .field = at<&Backoff::add>,
     .kinds = mask(Kind::Exponential),
     .jitters = mask(Jitter::Additive),
     .required = mask(Kind::Exponential),
     .about = "For jitter additive: at most this is added."},
    {.name = "steps",
     .form = Form::Count,
     .field = at<&Backoff::steps>,
     .least = 1,
     .most = 1000,
     .kinds = mask(Kind::TruncatedBinary),
     .required = mask(Kind::TruncatedBinary),
     .about = "After how many waits the ceiling is max_interval."},
    {.name = "slot",
     .form = Form::Duration,
     .field = at<&Backoff::initial>,
     .kinds = mask(Kind::Slots),
     .required = mask(Kind::Slots),
     .about = "A slot's length."},
    {.name = "truncate",
     .form = Form::Count,
     .field = at<&Backoff::steps>,
     .fallback = "10",
     .least = 0,
     .most = 52,
     .kinds = mask(Kind::Slots),
     .about = "After how many failures the number of slots grows no more (10)."},
    {.name = "abort",
     .form = Form::Count,
     .field = at<&Backoff::abort>,
     .fallback = "16",
     .least = 1,
     .most = kInts,
     .kinds = mask(Kind::Slots),
     .about = "After how many failures there is no retry (16)."},
};
constexpr Shape kBackoff{
    .name = "backoff", .keys = kBackoffKeys, .kinds = kKinds, .jitters = kJitters, .whole = true};

constexpr Key kPendingKeys[] = {
    {.name = "statuses",
     .form = Form::Statuses,
     .field = at<&PendingRule::statuses>,
     .required = kAll,
     .about = "The statuses of an answer that means \"not yet\"."},
    {.name = "json",
     .form = Form::Pointer,
     .field = at<&PendingRule::json>,
     .about = "What says so in the body; \"*\" is any index of an array."},
    {.name = "in",
     .form = Form::Values,
     .field = at<&PendingRule::in>,
     .about = "The values there; left out, being there is enough."},
    {.name = "max",
     .form = Form::Attempts,
     .field = at<&PendingRule::max>,
     .fallback = "\"unlimited\"",
     .least = 1,
     .most = kInts,
     .about = "How often to ask again."},
    {.name = "backoff",
     .form = Form::Object,
     .field = renewed<&PendingRule::backoff>,
     .existing = at<&PendingRule::backoff>,
     .shape = &kBackoff,
     .about = "The waits in between (a second)."},
};
constexpr Shape kPending{.name = "pending",
                         .keys = kPendingKeys,
                         .whole = true,
                         .base = R"({"backoff": {"kind": "constant", "interval": "1s"}})"};

constexpr Key kRetryOnKeys[] = {
    {.name = "statuses",
     .form = Form::Statuses,
     .field = at<&RetryOn::statuses>,
     .about = "Failures that pass: 408, \"5xx\", \"500-504\", \"!501\"; later items win."},
    {.name = "throttle_statuses",
     .form = Form::Statuses,
     .field = at<&RetryOn::throttle_statuses>,
     .about = "The server asks for less."},
    {.name = "error_codes",
     .form = Form::ErrorCodes,
     .field = at<&RetryOn::error_codes>,
     .about = "What answers say besides their status; the first rule that fits decides."},
    {.name = "transport",
     .form = Form::Transports,
     .field = at<&RetryOn::transport>,
     .words = kTransports,
     .about = "No answer came."},
    {.name = "pending",
     .form = Form::ObjectOrNone,
     .field = emplaced<&RetryOn::pending>,
     .existing = if_any<&RetryOn::pending>,
     .fallback = "\"none\"",
     .shape = &kPending,
     .about = "Answers that mean \"not yet\"."},
};
constexpr Shape kRetryOn{.name = "retry_on", .keys = kRetryOnKeys};

constexpr Key kServerDelayKeys[] = {
    {.name = "headers",
     .form = Form::Hints,
     .field = at<&ServerDelayPolicy::headers>,
     .words = kHints,
     .about = "Where a server says when to come back; the first valid counts."},
    {.name = "combine",
     .form = Form::Word,
     .field = at<&ServerDelayPolicy::combine>,
     .fallback = "\"max\"",
     .words = kCombines,
     .about = "Which wait counts: the larger one, the server's, ours."},
    {.name = "max",
     .form = Form::Limit,
     .field = at<&ServerDelayPolicy::max>,
     .fallback = "\"none\"",
     .about = "What we wait at most because a server asks."},
    {.name = "over_max",
     .form = Form::Word,
     .field = at<&ServerDelayPolicy::over_max>,
     .fallback = "\"stop\"",
     .words = kOverMax,
     .about = "What if it asks for more."},
    {.name = "max_over_own",
     .form = Form::Limit,
     .field = at<&ServerDelayPolicy::max_over_own>,
     .fallback = "\"none\"",
     .about = "It counts for at most this much more than our own wait."},
    {.name = "spread",
     .form = Form::Number,
     .field = at<&ServerDelayPolicy::spread>,
     .fallback = "0",
     .least = 0,
     .most = 1,
     .about = "A random extra of up to this share of what it asks for."},
};
constexpr Shape kServerDelay{.name = "server_delay", .keys = kServerDelayKeys};

constexpr Key kBudgetKeys[] = {
    {.name = "kind",
     .form = Form::Word,
     .field = at<&BudgetPolicy::kind>,
     .words = kBudgets,
     .required = kAll,
     .about = "How retries are counted."},
    {.name = "capacity",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::capacity>,
     .fallback = "500",
     .most = kTokens,
     .kinds = mask(Purse::Tokens),
     .about = "Tokens (500)."},
    {.name = "retry_cost",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::retry_cost>,
     .fallback = "14",
     .most = kTokens,
     .kinds = mask(Purse::Tokens),
     .about = "What a retry costs (14)."},
    {.name = "throttle_cost",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::throttle_cost>,
     .fallback = "retry_cost",
     .most = kTokens,
     .kinds = mask(Purse::Tokens),
     .about = "What it costs when throttled (retry_cost)."},
    {.name = "timeout_cost",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::timeout_cost>,
     .fallback = "retry_cost",
     .most = kTokens,
     .kinds = mask(Purse::Tokens),
     .about = "What it costs after a timeout (retry_cost)."},
    {.name = "refill_on_success",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::refill>,
     .fallback = "1",
     .most = kTokens,
     .kinds = mask(Purse::Tokens),
     .about = "What a call gives that succeeds at once (1)."},
    {.name = "ratio",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::ratio>,
     .fallback = "0.2",
     .most = 1000,
     .kinds = mask(Purse::Ratio),
     .about = "Retries for each request (0.2)."},
    {.name = "window",
     .form = Form::Duration,
     .field = at<&BudgetPolicy::window>,
     .fallback = "\"10s\"",
     .least = 1,
     .kinds = mask(Purse::Ratio),
     .about = "The time over which they are counted (10s)."},
    {.name = "min_per_second",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::min_per_second>,
     .fallback = "10",
     .most = 1e9,
     .kinds = mask(Purse::Ratio),
     .about = "Retries that are always allowed (10)."},
    {.name = "max_tokens",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::capacity>,
     .most = kTokens,
     .kinds = mask(Purse::Grpc),
     .required = mask(Purse::Grpc),
     .about = "Tokens; retries are allowed while more than half are left."},
    {.name = "token_ratio",
     .form = Form::Thousandths,
     .field = at<&BudgetPolicy::refill>,
     .most = kTokens,
     .kinds = mask(Purse::Grpc),
     .required = mask(Purse::Grpc),
     .about = "What a success gives; a failure takes 1."},
    {.name = "scope",
     .form = Form::Word,
     .field = at<&BudgetPolicy::scope>,
     .fallback = "\"host\"",
     .words = kScopes,
     .about = "Who shares one (host)."},
};
constexpr Shape kBudget{.name = "budget", .keys = kBudgetKeys, .kinds = kBudgets, .whole = true};

// What of retry_policy.hpp a file can say; each of them but `extends` and `preset` is a value.
constexpr Key kPolicyKeys[] = {
    {.name = "extends", .form = Form::Name, .about = "The policy below this one."},
    {.name = "preset", .form = Form::Name, .about = "A built-in policy to begin with."},
    {.name = "max_attempts",
     .form = Form::Attempts,
     .field = at<&RetryPolicy::max_attempts>,
     .least = 1,
     .most = kInts,
     .block = true,
     .about = "How often a request is sent, the first time included: 1 is no retry."},
    {.name = "max_elapsed_time",
     .form = Form::Limit,
     .field = at<&RetryPolicy::max_elapsed_time>,
     .least = 1,
     .block = true,
     .about = "Covers sends and waits, from the first send."},
    {.name = "elapsed_rule",
     .form = Form::Word,
     .field = at<&RetryPolicy::elapsed_rule>,
     .fallback = "\"include_wait\"",
     .words = kElapsedRules,
     .block = true,
     .about = "What of a wait that would end past max_elapsed_time."},
    {.name = "attempt_timeout",
     .form = Form::Limit,
     .field = at<&RetryPolicy::attempt_timeout>,
     .fallback = "\"none\"",
     .least = 1,
     .about = "For each attempt."},
    {.name = "connect_timeout",
     .form = Form::Limit,
     .field = at<&RetryPolicy::connect_timeout>,
     .fallback = "\"10s\"",
     .least = 1,
     .about = "For a connection, TLS included."},
    {.name = "stall_timeout",
     .form = Form::Limit,
     .field = at<&RetryPolicy::stall_timeout>,
     .fallback = "\"30s\"",
     .least = 1,
     .about = "For a transfer without a byte."},
    {.name = "backoff",
     .form = Form::Object,
     .field = renewed<&RetryPolicy::backoff>,
     .existing = at<&RetryPolicy::backoff>,
     .shape = &kBackoff,
     .block = true,
     .about = "The waits between attempts."},
    {.name = "throttle_backoff",
     .form = Form::ObjectOrNone,
     .field = emplaced<&RetryPolicy::throttle_backoff>,
     .existing = if_any<&RetryPolicy::throttle_backoff>,
     .fallback = "\"none\"",
     .shape = &kBackoff,
     .block = true,
     .about = "The waits where the server asks for less; \"none\": as backoff."},
    {.name = "retry_on",
     .form = Form::Object,
     .field = renewed<&RetryPolicy::retry_on>,
     .existing = at<&RetryPolicy::retry_on>,
     .shape = &kRetryOn,
     .block = true,
     .about = "What is retried."},
    {.name = "repeat",
     .form = Form::Word,
     .field = at<&RetryPolicy::repeat>,
     .fallback = "\"safe\"",
     .words = kRepeats,
     .block = true,
     .about = "What may be sent again: what does no harm, everything, what was not sent."},
    {.name = "idempotency_key",
     .form = Form::Header,
     .field = at<&RetryPolicy::idempotency_key>,
     .about = "The header whose generated value makes a POST or PATCH repeatable."},
    {.name = "server_delay",
     .form = Form::Object,
     .field = renewed<&RetryPolicy::server_delay>,
     .existing = at<&RetryPolicy::server_delay>,
     .shape = &kServerDelay,
     .about = "What of a server's own word on when to come back."},
    {.name = "budget",
     .form = Form::ObjectOrNone,
     .field = renewed<&RetryPolicy::budget>,
     .existing = budget_if_any,
     .fallback = "\"none\"",
     .shape = &kBudget,
     .block = true,
     .about = "How many retries a client may make in all."},
    {.name = "adaptive",
     .form = Form::Flag,
     .field = at<&RetryPolicy::adaptive>,
     .fallback = "false",
     .block = true,
     .about = "Limit the rate of sends once throttled, as the AWS SDKs' adaptive mode does."},
};
constexpr Shape kPolicy{.name = "policy", .keys = kPolicyKeys};

constexpr Key kRuleKeys[] = {
    {.name = "status",
     .form = Form::Statuses,
     .nullable = false,
     .about = "Only for these statuses."},
    {.name = "json",
     .form = Form::Pointer,
     .field = at<&ErrorRule::selector>,
     .nullable = false,
     .about = "Where it stands in the body; \"*\" is any index of an array."},
    {.name = "header",
     .form = Form::Header,
     .field = at<&ErrorRule::selector>,
     .nullable = false,
     .about = "The header it stands in."},
    {.name = "xml",
     .form = Form::Element,
     .field = at<&ErrorRule::selector>,
     .nullable = false,
     .about = "The element of the body it stands in."},
    {.name = "in",
     .form = Form::Values,
     .field = at<&ErrorRule::in>,
     .nullable = false,
     .about = "The values; left out, being there is enough."},
    {.name = "as",
     .form = Form::Word,
     .field = at<&ErrorRule::as>,
     .words = kClasses,
     .required = kAll,
     .nullable = false,
     .about = "What the answer then is."},
};
constexpr Shape kRule{.name = "rule", .keys = kRuleKeys, .whole = true};

constexpr Key kMatchKeys[] = {
    {.name = "scheme",
     .form = Form::Text,
     .field = at<&EndpointPattern::scheme>,
     .words = kSchemes,
     .nullable = false},
    {.name = "host",
     .form = Form::Text,
     .field = at<&EndpointPattern::host>,
     .nullable = false,
     .about = "A name, \"*.suffix\" for one or more labels, \"[IPv6]\", or \"*\"."},
    {.name = "port",
     .form = Form::Port,
     .field = at<&EndpointPattern::port>,
     .least = 1,
     .most = 65535,
     .nullable = false},
    {.name = "path",
     .form = Form::Text,
     .field = at<&EndpointPattern::path>,
     .nullable = false,
     .about = "Segments: literal, \"*\" or \"{name}\" for any one, a final \"**\" for the rest."},
    {.name = "methods",
     .form = Form::Methods,
     .field = at<&EndpointPattern::methods>,
     .nullable = false},
};
constexpr Shape kMatch{.name = "match", .keys = kMatchKeys};

constexpr Key kEndpointKeys[] = {
    {.name = "name", .form = Form::Name, .nullable = false, .about = "For reports."},
    {.name = "match",
     .form = Form::Match,
     .required = kAll,
     .nullable = false,
     .about = "Which requests; the most specific entry wins, whatever their order."},
    {.name = "policy",
     .form = Form::PolicyRef,
     .required = kAll,
     .nullable = false,
     .about = "The name of a policy, or one."},
};
constexpr Shape kEndpoint{.name = "endpoint", .keys = kEndpointKeys};

constexpr Key kFileKeys[] = {
    {.name = "$schema", .form = Form::Name, .nullable = false, .about = "For editors."},
    {.name = "version",
     .form = Form::Version,
     .required = kAll,
     .nullable = false,
     .about = "Of this format: 1."},
    {.name = "default",
     .form = Form::PolicyRef,
     .about = "For requests that no entry matches: a policy's name, or a policy (standard)."},
    {.name = "policies", .form = Form::Policies, .nullable = false, .about = "Policies by name."},
    {.name = "endpoints",
     .form = Form::Endpoints,
     .nullable = false,
     .about = "Which requests get which policy."},
};
constexpr Shape kFile{.name = "file", .keys = kFileKeys};

}  // namespace

const Key* Shape::find(std::string_view wanted) const {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == wanted; });
  return found == keys.end() ? nullptr : &*found;
}

const Shape& file_shape() { return kFile; }
const Shape& endpoint_shape() { return kEndpoint; }
const Shape& match_shape() { return kMatch; }
const Shape& policy_shape() { return kPolicy; }
const Shape& rule_shape() { return kRule; }

Words family_words() { return kFamilies; }
Words transport_words() { return kTransports; }
Words hint_words() { return kHints; }
Words class_words() { return kClasses; }

}  // namespace httpretry::policy_file
