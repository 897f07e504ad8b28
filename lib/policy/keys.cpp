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
    key<&ServerDelayPolicy::headers>("headers", kHeaders),
    key<&ServerDelayPolicy::combine>("combine", kCombine),
    key<&ServerDelayPolicy::max>("max", kLimit),
    key<&ServerDelayPolicy::over_max>("over_max", kOver),
    key<&ServerDelayPolicy::max_over_own>("max_over_own", kLimit),
    key<&ServerDelayPolicy::spread>("spread", kShare),
};
constexpr Shape kServerDelay{.name = "server_delay", .keys = kServerDelayKeys};
constexpr Object<ServerDelayPolicy> kServerDelayObject(kServerDelay);

// What a file can say of a RetryPolicy. All but `extends` and `preset` are values.
constexpr Key kPolicyKeys[] = {
    loader_key("extends", kPolicyName),
    loader_key("preset", kPolicyName),
    key<&RetryPolicy::max_attempts>("max_attempts", kAttempts).in_presets(),
    key<&RetryPolicy::max_elapsed_time>("max_elapsed_time", kLimitOverZero).in_presets(),
    key<&RetryPolicy::elapsed_rule>("elapsed_rule", kElapsedRule).in_presets(),
    key<&RetryPolicy::attempt_timeout>("attempt_timeout", kLimitOverZero),
    key<&RetryPolicy::response_timeout>("response_timeout", kLimitOverZero),
    key<&RetryPolicy::connect_timeout>("connect_timeout", kLimitOverZero),
    key<&RetryPolicy::stall_timeout>("stall_timeout", kLimitOverZero),
    key<&RetryPolicy::backoff>("backoff", kBackoffObject).in_presets(),
    key<&RetryPolicy::throttle_backoff>("throttle_backoff", kBackoffOrNone).in_presets(),
    key<&RetryPolicy::retry_on>("retry_on", kRetryOnObject).in_presets(),
    key<&RetryPolicy::repeat>("repeat", kRepeat).in_presets(),
    key<&RetryPolicy::idempotency_key>("idempotency_key", kHeader),
    key<&RetryPolicy::server_delay>("server_delay", kServerDelayObject),
    key<&RetryPolicy::budget>("budget", kBudgetOrNone).in_presets(),
    key<&RetryPolicy::adaptive>("adaptive", kFlag).in_presets(),
    key<&RetryPolicy::guards, &GuardPolicy::pause>("pause", kPauseOrNone),
    key<&RetryPolicy::guards, &GuardPolicy::rate>("rate", kRateOrNone),
    key<&RetryPolicy::guards, &GuardPolicy::concurrency>("concurrency", kConcurrencyOrNone),
    key<&RetryPolicy::guards, &GuardPolicy::breaker>("breaker", kBreakerOrNone),
    key<&RetryPolicy::guards, &GuardPolicy::priority>("priority", kPriority),
    key<&RetryPolicy::hedge>("hedge", kHedgeOrNone),
};
constexpr Key kEndpointKeys[] = {
    loader_key("name").not_null(),
    loader_key("match").needed().not_null(),
    loader_key("policy").needed().not_null(),
};
constexpr Key kFileKeys[] = {
    loader_key("$schema", kAnyText).not_null(),
    loader_key("version").needed().not_null(),
    loader_key("default"),
    loader_key("policies").not_null(),
    loader_key("endpoints").not_null(),
    loader_key("tests").not_null(),
};

}  // namespace

constinit const Shape kFile{.name = "file", .keys = kFileKeys};
constinit const Shape kEndpoint{.name = "endpoint", .keys = kEndpointKeys};
constinit const Shape kPolicy{.name = "policy", .keys = kPolicyKeys};

}  // namespace httpretry::policy_file
