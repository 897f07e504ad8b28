// The keys of a file, of its endpoints and of a policy.
#include "lib/policy/keys.hpp"

namespace httpretry::policy_file {
namespace {

// Words are in the order of the enum that they name.
constexpr std::string_view kElapsedRules[] = {"include_wait", "before_wait", "clip_wait"};
constexpr std::string_view kRepeats[] = {"safe", "always", "never", "refused"};
constexpr std::string_view kCombines[] = {"max", "server", "own", "grow"};
constexpr std::string_view kOverMax[] = {"stop", "clamp"};

constexpr Word<ServerDelaySource> kSource{
    Words::up_to<ServerDelaySource>(ServerDelaySource::GrpcRetryPushback, {}, true)};
constexpr List kHeaders(kSource, "an array");
constexpr DurationType kLimit(true);
constexpr DurationType kLimitOverZero(true, DurationType::Zero::Refused);
constexpr Number<int> kSends(unlimited_range("the first send counts"));
constexpr Optional kAttempts(kSends, "unlimited");
constexpr Number<double> kShare(policy::kShares);
constexpr Text kPolicyName("a name", [](std::string_view text) { return !text.empty(); });
constexpr Word<ElapsedRule> kElapsedRule{Words(kElapsedRules)};
constexpr Word<Repeat> kRepeat{Words(kRepeats)};
constexpr Word<ServerDelayPolicy::Combine> kCombine{Words(kCombines)};
constexpr Word<ServerDelayPolicy::OverMax> kOver{Words(kOverMax)};
constexpr Object<RetryOn> kRetryOnObject(kRetryOn);
constexpr Object<Backoff> kBackoffObject(kBackoff);
constexpr Object<std::optional<Backoff>> kBackoffOrNone(kBackoff);
constexpr Object<BudgetPolicy> kBudgetOrNone(kBudget);
constexpr Object<PausePolicy> kPauseOrNone(kPause);
constexpr Object<std::optional<RatePolicy>> kRateOrNone(kRate);
constexpr Object<std::optional<ConcurrencyPolicy>> kConcurrencyOrNone(kConcurrency);
constexpr Object<std::optional<BreakerPolicy>> kBreakerOrNone(kBreaker);
constexpr Object<std::optional<HedgePolicy>> kHedgeOrNone(kHedge);

constexpr Key kServerDelayKeys[] = {
    key<&ServerDelayPolicy::headers>(
        "headers", kHeaders, "Where a server says when to come back; the first valid one counts."),
    key<&ServerDelayPolicy::combine>(
        "combine", kCombine,
        "Which wait counts: the longer one, the server's, ours, or the "
        "longer one and both together after the second throttle."),
    key<&ServerDelayPolicy::max>("max", kLimit, "The longest wait that a server may ask for."),
    key<&ServerDelayPolicy::over_max>("over_max", kOver, "What happens if it asks for more."),
    key<&ServerDelayPolicy::max_over_own>(
        "max_over_own", kLimit, "It counts for at most this much more than our own wait."),
    key<&ServerDelayPolicy::spread>(
        "spread", kShare, "A random extra of up to this share of what the server asks for."),
};
constexpr Shape kServerDelay{.name = "server_delay", .keys = kServerDelayKeys};
constexpr Object<ServerDelayPolicy> kServerDelayObject(kServerDelay);

// What a file can say of a RetryPolicy. All but `extends` and `preset` are values.
constexpr Key kPolicyKeys[] = {
    loader_key("extends", kPolicyName, "The policy below this one."),
    loader_key("preset", kPolicyName, "A built-in policy to begin with."),
    key<&RetryPolicy::max_attempts>(
        "max_attempts", kAttempts,
        "How often a request is sent, the first time included: 1 is no retry.")
        .in_presets(),
    key<&RetryPolicy::max_elapsed_time>("max_elapsed_time", kLimitOverZero,
                                        "Covers sends and waits, from the first send.")
        .in_presets(),
    key<&RetryPolicy::elapsed_rule>("elapsed_rule", kElapsedRule,
                                    "What happens to a wait that would end past max_elapsed_time.")
        .in_presets(),
    key<&RetryPolicy::attempt_timeout>("attempt_timeout", kLimitOverZero, "For each attempt."),
    key<&RetryPolicy::response_timeout>("response_timeout", kLimitOverZero,
                                        "For the headers of a response, in each attempt."),
    key<&RetryPolicy::connect_timeout>("connect_timeout", kLimitOverZero,
                                       "For a connection, TLS included."),
    key<&RetryPolicy::stall_timeout>("stall_timeout", kLimitOverZero,
                                     "For a transfer without a byte."),
    key<&RetryPolicy::backoff>("backoff", kBackoffObject, "The waits between attempts.")
        .in_presets(),
    key<&RetryPolicy::throttle_backoff>(
        "throttle_backoff", kBackoffOrNone,
        "The waits where the server asks for fewer requests; \"none\": as backoff.")
        .in_presets(),
    key<&RetryPolicy::retry_on>("retry_on", kRetryOnObject, "What is retried.").in_presets(),
    key<&RetryPolicy::repeat>(
        "repeat", kRepeat,
        "What may be sent again: what does no harm, everything, what was not sent, what was not "
        "sent or was refused.")
        .in_presets(),
    key<&RetryPolicy::idempotency_key>(
        "idempotency_key", kHeader,
        "The header whose generated value makes a POST or PATCH repeatable."),
    key<&RetryPolicy::server_delay>("server_delay", kServerDelayObject,
                                    "What counts of the delay that a server asks for."),
    key<&RetryPolicy::budget>("budget", kBudgetOrNone, "How many retries a client may make in all.")
        .in_presets(),
    key<&RetryPolicy::adaptive>(
        "adaptive", kFlag,
        "Limit the rate of sends once throttled, as the AWS SDKs' adaptive mode does.")
        .in_presets(),
    key<&RetryPolicy::guards, &GuardPolicy::pause>(
        "pause", kPauseOrNone, "A server that asks one call to wait asks all calls."),
    key<&RetryPolicy::guards, &GuardPolicy::rate>("rate", kRateOrNone,
                                                  "How many sends go out in a time."),
    key<&RetryPolicy::guards, &GuardPolicy::concurrency>("concurrency", kConcurrencyOrNone,
                                                         "How many sends run at once."),
    key<&RetryPolicy::guards, &GuardPolicy::breaker>(
        "breaker", kBreakerOrNone, "Nothing is sent for a while where too many sends fail."),
    key<&RetryPolicy::guards, &GuardPolicy::priority>("priority", kPriority,
                                                      "Which of the sends that wait go first."),
    key<&RetryPolicy::hedge>("hedge", kHedgeOrNone,
                             "The same request again beside a send that is slow."),
};
// For keys that the loader in file.cpp reads itself: the table only has their schemas.
std::optional<bool> leave(const JsonNode& /*json*/, Problems& /*problems*/) { return true; }

constexpr Custom<bool> kName(leave, nullptr, schema_name);
constexpr Custom<bool> kVersion(leave, nullptr, []() -> OrderedJson { return {{"const", 1}}; });
constexpr Custom<bool> kMatchType(leave, nullptr, [] { return schema_reference(kMatch.name); });
constexpr Custom<bool> kNameOrPolicy(leave, nullptr, [] {
  return schema_either(schema_name(), schema_reference(kPolicy.name));
});
constexpr Custom<bool> kPolicies(leave, nullptr, []() -> OrderedJson {
  return {{"type", "object"},
          {"propertyNames", {{"minLength", 1}}},
          {"additionalProperties", schema_reference(kPolicy.name)}};
});
constexpr Custom<bool> kEndpoints(leave, nullptr,
                                  [] { return schema_items(schema_reference("endpoint")); });
constexpr Custom<bool> kTests(leave, nullptr,
                              [] { return schema_items(schema_reference("test")); });

constexpr Key kEndpointKeys[] = {
    loader_key("name", kName, "For reports.").not_null(),
    loader_key("match", kMatchType,
               "Which requests; the most specific entry wins, whatever their order.")
        .needed()
        .not_null(),
    loader_key("policy", kNameOrPolicy, "The name of a policy, or one.").needed().not_null(),
};
constexpr Key kFileKeys[] = {
    loader_key("$schema", kAnyText, "For editors.").not_null(),
    loader_key("version", kVersion, "Of this format: 1.").needed().not_null(),
    loader_key("default", kNameOrPolicy,
               "For requests that no entry matches: a policy's name, or a policy (standard)."),
    loader_key("policies", kPolicies, "Policies by name.").not_null(),
    loader_key("endpoints", kEndpoints, "Which requests get which policy.").not_null(),
    loader_key("tests", kTests, "What the policies should do; httpretry policy check runs them.")
        .not_null(),
};

}  // namespace

constinit const Shape kFile{.name = "file", .keys = kFileKeys};
constinit const Shape kEndpoint{.name = "endpoint", .keys = kEndpointKeys};
constinit const Shape kPolicy{.name = "policy", .keys = kPolicyKeys};

}  // namespace httpretry::policy_file
