// The keys of a file, of its endpoints and their `match`, and of policies. The keys of backoffs and
// budgets depend on the kind.
#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/http/headers.hpp>
#include <httpretry/policy/endpoint.hpp>

#include <algorithm>

namespace httpretry::detail::policy_file {
namespace {

using JsonType = JsonNode::Type;
using Kind = Backoff::Kind;
using Jitter = Backoff::Jitter;
using BudgetKind = BudgetPolicy::Kind;

// The words are in the order of their enum.
constexpr std::string_view kKinds[] = {"none",         "constant",         "linear", "exponential",
                                       "decorrelated", "truncated_binary", "slots"};
constexpr std::string_view kJitters[] = {"none",         "full",  "equal",
                                         "proportional", "range", "additive"};
constexpr std::string_view kCaps[] = {"before", "after"};  // for cap_after_jitter
constexpr std::string_view kBudgetKinds[] = {"", "tokens", "ratio", "grpc", "concurrent"};
constexpr std::string_view kScopes[] = {"host", "endpoint", "policy"};
constexpr std::string_view kElapsedRules[] = {"include_wait", "before_wait", "clip_wait"};
constexpr std::string_view kRepeats[] = {"safe", "always", "never", "refused"};
constexpr std::string_view kPriorities[] = {"high", "normal", "low"};
constexpr std::string_view kCombines[] = {"max", "server", "own", "grow"};
constexpr std::string_view kOverMax[] = {"stop", "clamp"};

constexpr Word<ServerDelaySource> kSource{
    Words::up_to<ServerDelaySource>(ServerDelaySource::GrpcRetryPushback, {}, /*any_case=*/true)};
constexpr List kHeaders(kSource, "an array");
constexpr Number<int> kSends(unlimited_range("the first send counts"));
constexpr Optional kAttempts(kSends, "unlimited");
constexpr Word<Warning> kWarning{Words::up_to(Warning::Unused)};
constexpr List kAllow(kWarning, "an array of warnings", "an empty list allows none; leave it out");

// Returns whether a policy may add a header of this name to its requests. The others say where a
// request goes and where its body ends.
bool can_be_added(std::string_view name) {
  constexpr std::string_view kReserved[] = {"Host", "Content-Length", "Transfer-Encoding"};
  return valid_header_name(name) && std::ranges::none_of(kReserved, [&](std::string_view reserved) {
           return equal_ignoring_case(name, reserved);
         });
}
constexpr Text kAddedHeader("a header name that a policy may use", can_be_added);
constexpr Text kPolicyName("a name", [](std::string_view text) { return !text.empty(); });

constexpr auto kExponential = mask(Kind::Exponential);

constexpr Key kBackoffKeys[] = {
    key_of<kKinds, &Backoff::kind>("kind").needed(),
    key<&Backoff::initial>("interval", kDuration).of(mask(Kind::Constant)).needed(),
    key<&Backoff::initial>("initial", kDuration)
        .of(mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated))
        .needed(),
    key<&Backoff::increment>("increment", kDuration).of(mask(Kind::Linear)).needed(),
    key_of<policy::kMultipliers, &Backoff::multiplier>("multiplier")
        .of(mask(Kind::Exponential, Kind::Decorrelated)),
    key<&Backoff::max_interval>("max_interval", kLimit)
        .of(mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated)),
    key<&Backoff::max_interval>("max_interval", kDuration).of(mask(Kind::TruncatedBinary)).needed(),
    key_of<kCaps, &Backoff::cap_after_jitter>("cap").of(kExponential),
    key_of<kJitters, &Backoff::jitter>("jitter").of(kExponential),
    key_of<policy::kShares, &Backoff::randomization>("randomization")
        .of(kExponential, mask(Jitter::Proportional)),
    key_of<policy::kFactors, &Backoff::low>("low").of(kExponential, mask(Jitter::Range)).needed(),
    key_of<policy::kFactors, &Backoff::high>("high").of(kExponential, mask(Jitter::Range)).needed(),
    key<&Backoff::add>("add", kDuration).of(kExponential, mask(Jitter::Additive)).needed(),
    key_of<policy::kSteps, &Backoff::steps>("steps").of(mask(Kind::TruncatedBinary)).needed(),
    key<&Backoff::initial>("slot", kDuration).of(mask(Kind::Slots)).needed(),
    key_of<policy::kDoublings, &Backoff::steps>("truncate").of(mask(Kind::Slots)),
    key_of<policy::kCounts, &Backoff::abort>("abort").of(mask(Kind::Slots)),
};

constexpr auto kOfTokens = mask(BudgetKind::Tokens);
constexpr auto kOfRatio = mask(BudgetKind::Ratio);
constexpr auto kOfGrpc = mask(BudgetKind::Grpc);
constexpr auto kOfConcurrent = mask(BudgetKind::Concurrent);

constexpr Key kBudgetKeys[] = {
    key_of<kBudgetKinds, &BudgetPolicy::kind>("kind").needed(),
    key_of<policy::kTokens, &BudgetPolicy::capacity>("capacity").of(kOfTokens),
    key_of<policy::kTokens, &BudgetPolicy::retry_cost>("retry_cost").of(kOfTokens),
    key_of<policy::kTokens, &BudgetPolicy::throttle_cost>("throttle_cost")
        .of(kOfTokens)
        .default_like("retry_cost"),
    key_of<policy::kTokens, &BudgetPolicy::timeout_cost>("timeout_cost")
        .of(kOfTokens)
        .default_like("retry_cost"),
    key_of<policy::kTokens, &BudgetPolicy::refill>("refill_on_success").of(kOfTokens),
    key_of<policy::kRatios, &BudgetPolicy::ratio>("ratio").of(kOfRatio),
    key<&BudgetPolicy::window>("window", kDurationOverZero).of(kOfRatio),
    key_of<policy::kRates, &BudgetPolicy::min_per_second>("min_per_second").of(kOfRatio),
    key_of<policy::kTokens, &BudgetPolicy::capacity>("max_tokens").of(kOfGrpc).needed(),
    key_of<policy::kTokens, &BudgetPolicy::refill>("token_ratio").of(kOfGrpc).needed(),
    key_of<policy::kPartsOfCalls, &BudgetPolicy::ratio>("ratio").of(kOfConcurrent),
    key_of<policy::kExtras, &BudgetPolicy::min>("min").of(kOfConcurrent),
    key_of<kScopes, &BudgetPolicy::scope>("scope"),
};

constexpr Shape kBudget{.name = "budget",
                        .keys = kBudgetKeys,
                        .kinds = Words(kBudgetKinds),
                        .whole = true,
                        .example = R"({"kind": "tokens", "capacity": 500})"};

constexpr Key kServerDelayKeys[] = {
    key<&ServerDelayPolicy::headers>("headers", kHeaders),
    key_of<kCombines, &ServerDelayPolicy::combine>("combine"),
    key<&ServerDelayPolicy::max>("max", kLimit),
    key_of<kOverMax, &ServerDelayPolicy::over_max>("over_max"),
    key<&ServerDelayPolicy::max_over_own>("max_over_own", kLimit),
    key_of<policy::kShares, &ServerDelayPolicy::spread>("spread"),
};
constexpr Shape kServerDelay{.name = "server_delay", .keys = kServerDelayKeys};

// The keys of a policy. All except `extends`, `preset` and `allow` are values of a RetryPolicy.
constexpr Key kPolicyKeys[] = {
    loader_key("extends", kPolicyName),
    loader_key("preset", kPolicyName),
    key<&RetryPolicy::max_attempts>("max_attempts", kAttempts).in_presets(),
    key<&RetryPolicy::max_elapsed_time>("max_elapsed_time", kLimitOverZero).in_presets(),
    key_of<kElapsedRules, &RetryPolicy::elapsed_rule>("elapsed_rule").in_presets(),
    key<&RetryPolicy::attempt_timeout>("attempt_timeout", kLimitOverZero),
    key<&RetryPolicy::response_timeout>("response_timeout", kLimitOverZero),
    key<&RetryPolicy::connect_timeout>("connect_timeout", kLimitOverZero),
    key<&RetryPolicy::stall_timeout>("stall_timeout", kLimitOverZero),
    key_of<kBackoff, &RetryPolicy::backoff>("backoff").in_presets(),
    key_of<kBackoff, &RetryPolicy::throttle_backoff>("throttle_backoff").in_presets(),
    key_of<kRetryOn, &RetryPolicy::retry_on>("retry_on").in_presets(),
    key_of<kRepeats, &RetryPolicy::repeat>("repeat").in_presets(),
    key<&RetryPolicy::idempotency_key>("idempotency_key", kAddedHeader),
    key<&RetryPolicy::attempt_header>("attempt_header", kAddedHeader),
    key<&RetryPolicy::deadline_header>("deadline_header", kAddedHeader),
    key_of<kServerDelay, &RetryPolicy::server_delay>("server_delay"),
    key_of<kBudget, &RetryPolicy::budget>("budget").in_presets(),
    key<&RetryPolicy::adaptive>("adaptive", kFlag).in_presets(),
    key_of<kPause, &RetryPolicy::guards, &GuardPolicy::pause>("pause"),
    key<&RetryPolicy::guards, &GuardPolicy::rate>("rate", kRates),
    key_of<kConcurrency, &RetryPolicy::guards, &GuardPolicy::concurrency>("concurrency"),
    key_of<kBreaker, &RetryPolicy::guards, &GuardPolicy::breaker>("breaker"),
    key_of<kPriorities, &RetryPolicy::guards, &GuardPolicy::priority>("priority"),
    key_of<kHedge, &RetryPolicy::hedge>("hedge"),
    loader_key("allow", kAllow).only_in_file(),
};

constexpr std::string_view kSchemeNames[] = {"http", "https"};
constexpr Words kSchemes(kSchemeNames);

constexpr Text kOneHost("a host");
constexpr List kHosts(kOneHost, "a string or an array of strings",
                      "an empty list matches nothing; leave it out to match every host", true);

bool parse_hosts(const JsonNode& json, EndpointPattern& pattern, Problems& problems) {
  std::vector<std::string> hosts;
  if (!kHosts.read(json, &hosts, problems)) return false;
  pattern.host = hosts.front();
  pattern.more_hosts.assign(hosts.begin() + 1, hosts.end());
  return true;
}

OrderedJson print_hosts(const EndpointPattern& pattern) {
  if (!pattern.host) return {};
  auto hosts = pattern.more_hosts;
  hosts.insert(hosts.begin(), *pattern.host);
  return kHosts.write(&hosts);
}

using Conditions = EndpointPattern::Conditions;

// Reads conditions on headers or on the query: an object with at least one member, all of them
// strings.
bool parse_conditions(const JsonNode& json, Conditions& conditions, Problems& problems) {
  if (!expect(json, JsonType::Object, "an object", problems)) return false;
  conditions.clear();
  auto is_valid = true;
  for (const auto* const member : json.children) {
    is_valid = expect(*member, JsonType::String, "a string", problems) && is_valid;
    conditions.emplace(member->key, member->text);
  }
  if (!json.children.empty()) return is_valid;
  return refuse(json, problems, "an empty object matches every request; leave it out");
}

OrderedJson print_conditions(const Conditions& conditions) {
  return conditions.empty() ? OrderedJson() : OrderedJson(conditions);
}

constexpr Custom<Conditions> kConditions(parse_conditions, print_conditions);
using Part = std::optional<std::string>;
constexpr Custom<Part> kScheme(
    [](const JsonNode& json, Part& value, Problems& problems) {
      value = json.text;
      return kSchemes.parse(json, problems).has_value();
    },
    [](const Part& value) { return kMaybe<kAnyText>.write(&value); });
constexpr Custom<EndpointPattern> kHost(parse_hosts, print_hosts);
constexpr Number<std::uint16_t> kPortNumber(1, 65535);

constexpr Key kMatchKeys[] = {
    key<&EndpointPattern::scheme>("scheme", kScheme).not_null(),
    whole_key("host", kHost).not_null(),
    key<&EndpointPattern::port>("port", kMaybe<kPortNumber>).not_null(),
    // Unlike Text, this type keeps an empty string, which problems_of reports.
    key<&EndpointPattern::path>("path", kMaybe<kAnyText>).not_null(),
    key<&EndpointPattern::methods>("methods", kMethods).not_null(),
    key<&EndpointPattern::headers>("headers", kConditions).not_null(),
    key<&EndpointPattern::query>("query", kConditions).not_null(),
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
constinit const Shape kMatch{.name = "match", .keys = kMatchKeys};
constinit const Shape kBackoff{.name = "backoff",
                               .keys = kBackoffKeys,
                               .kinds = Words(kKinds),
                               .jitters = Words(kJitters),
                               .whole = true,
                               .prepare =
                                   [](void* object) {
                                     auto& backoff = *static_cast<Backoff*>(object);
                                     if (backoff.kind == Kind::Decorrelated) backoff.multiplier = 3;
                                   },
                               .example = R"({"kind": "exponential", "initial": "300ms"})"};
constinit const Shape kPolicy{.name = "policy", .keys = kPolicyKeys};

}  // namespace httpretry::detail::policy_file
