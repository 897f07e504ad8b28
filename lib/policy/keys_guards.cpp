// The keys of what holds sends back: pause, rate, concurrency, breaker.
#include "lib/http/text.hpp"
#include "lib/policy/policy_set_data.hpp"

#include <algorithm>
#include <array>

namespace httpretry::policy_file {
namespace {

using JsonType = JsonNode::Type;
using Resume = PausePolicy::Resume;
using Kind = BreakerPolicy::Kind;
using Limiter = ConcurrencyPolicy::Kind;

// Words are in the order of the enum that they name.
constexpr std::string_view kScopes[] = {"host", "endpoint", "policy", "credentials"};
constexpr std::string_view kPauseScopes[] = {"host", "endpoint", "policy"};
constexpr std::string_view kResumes[] = {"ramp", "all"};
constexpr std::string_view kQuotas[] = {"react"};
constexpr std::string_view kOtherQuotas[] = {"pace"};
constexpr std::string_view kPriorities[] = {"high", "normal", "low"};
constexpr std::string_view kLimiters[] = {"fixed", "aimd"};
constexpr std::string_view kOtherLimiters[] = {"gradient", "vegas"};
constexpr std::string_view kOrders[] = {"fifo", "lifo"};
constexpr std::string_view kOtherOrders[] = {"adaptive"};
constexpr std::string_view kBreakers[] = {"ratio", "consecutive", "share"};
constexpr std::string_view kThrottles[] = {"neutral", "failure"};
constexpr std::string_view kAppliesTo[] = {"all", "retries"};
constexpr std::string_view kWhenOpen[] = {"fail", "wait"};
constexpr std::string_view kPresetNames[] = {"hystrix", "polly"};
constexpr std::string_view kOtherPresets[] = {"resilience4j", "gobreaker", "envoy", "linkerd"};

// The numbers of other breakers, each as its own documentation has them.
const LoadedPreset& breaker_preset(std::string_view name) {
  static const auto* const all = new std::array{
      load_preset("hystrix", R"({"kind": "ratio", "failure_ratio": 0.5, "min_requests": 20,
          "window": "10s", "failures": 0, "open_for": {"kind": "constant", "interval": "5s"},
          "probes": 1})"),
      load_preset("polly", R"({"kind": "ratio", "failure_ratio": 0.1, "min_requests": 100,
          "window": "30s", "failures": 0, "open_for": {"kind": "constant", "interval": "5s"},
          "probes": 1})")};
  return all->at(Words(kPresetNames).find(name));
}

struct Period {
  std::string_view name;
  Duration length;
};
constexpr Period kPeriods[] = {{"s", std::chrono::seconds(1)},
                               {"m", std::chrono::minutes(1)},
                               {"h", std::chrono::hours(1)},
                               {"d", std::chrono::hours(24)}};

constexpr DurationType kDurationOverZero(false, DurationType::Zero::Refused);
constexpr DurationType kLimit(true);
constexpr DurationType kLimitOverZero(true, DurationType::Zero::Refused);
constexpr Number<std::int64_t> kRequests(policy::kRequests);

constexpr Key kLimitKeys[] = {
    key<&RatePolicy::requests>("requests", kRequests).needed().not_null(),
    key<&RatePolicy::per>("per", kDurationOverZero).needed().not_null(),
};
constexpr Shape kLimitShape{.name = "limit", .keys = kLimitKeys};

// "10/s", or an object.
class RateLimitType final : public Type {
 public:
  using Field = RatePolicy;
  constexpr RateLimitType() = default;
  bool read(const JsonNode& json, void* field, Problems& problems) const override {
    RatePolicy read;
    auto& policy = field == nullptr ? read : *static_cast<RatePolicy*>(field);
    const auto good = json.is(JsonType::String)
                          ? parse(json, policy, problems)
                          : read_object(json, kLimitShape, &policy, kWhat, problems);
    if (good && policy.per.count() < policy.requests) {
      problems.error(json, "more than one in a nanosecond");
      return false;
    }
    return good;
  }
  [[nodiscard]] OrderedJson write(const void* field) const override {
    const auto& policy = *static_cast<const RatePolicy*>(field);
    for (const auto& period : kPeriods) {
      if (period.length != policy.per) continue;
      return std::to_string(policy.requests) + "/" + std::string(period.name);
    }
    return write_object(kLimitShape, field);
  }

 private:
  static constexpr std::string_view kWhat =
      R"(a rate such as "10/s", or {"requests": 600, "per": "1m"})";

  static bool parse(const JsonNode& json, RatePolicy& policy, Problems& problems) {
    const auto slash = json.text.find('/');
    const auto number = to_number<std::int64_t>(json.text.substr(0, slash));
    const auto unit = slash == std::string_view::npos ? "" : json.text.substr(slash + 1);
    const auto* const period = std::find_if(std::begin(kPeriods), std::end(kPeriods),
                                            [&](const Period& one) { return one.name == unit; });
    if (!number || period == std::end(kPeriods)) {
      problems.error(
          json, described(json) + " is not " + std::string(kWhat) + "; the units are s, m, h, d");
      return false;
    }
    if (*number < 1 || static_cast<double>(*number) > policy::kRequests.most) {
      problems.error(json, described(json) + " is out of range: 1 to 1000000000 requests");
      return false;
    }
    policy.requests = *number;
    policy.per = period->length;
    return true;
  }
};

constexpr Number<int> kCount(policy::kCounts);
constexpr Number<int> kCountOrNone(policy::kQueues);
constexpr Number<int> kProbes(policy::kProbes);
constexpr Number<std::int64_t> kBurst(policy::kRequests);
constexpr Number<double> kPartOfSends(policy::kPartsOfSends);
constexpr Number<double> kShareFactor(policy::kShareFactors);
constexpr RateLimitType kRateLimit;
constexpr Word<GuardScope> kScope{Words(kScopes)};
constexpr Word<GuardScope> kPauseScopeWord{Words(kPauseScopes)};
constexpr Optional kPauseScope(kPauseScopeWord);
constexpr Word<Resume> kResume{Words(kResumes)};
constexpr Word<bool> kQuota{Words(kQuotas, kOtherQuotas)};
constexpr Word<Limiter> kLimiter{Words(kLimiters, kOtherLimiters)};
constexpr Word<ConcurrencyPolicy::Order> kOrder{Words(kOrders, kOtherOrders)};
constexpr Word<Kind> kBreakerKind{Words(kBreakers)};
constexpr Word<bool> kThrottle{Words(kThrottles)};
constexpr Word<BreakerPolicy::AppliesTo> kApplies{Words(kAppliesTo)};
constexpr Word<BreakerPolicy::WhenOpen> kOpenRule{Words(kWhenOpen)};
constexpr Word<bool> kPreset{Words(kPresetNames, kOtherPresets)};
constexpr Object<Backoff> kBackoffObject(kBackoff);

constexpr Key kPauseKeys[] = {
    key<&PausePolicy::max>("max", kLimitOverZero),
    key<&PausePolicy::resume>("resume", kResume),
    key<&PausePolicy::scope>("scope", kPauseScope),
    loader_key("quota", kQuota),
};

constexpr Key kRateKeys[] = {
    whole_key("limit", kRateLimit).needed(),
    key<&RatePolicy::burst>("burst", kBurst),
    key<&RatePolicy::scope>("scope", kScope),
    key<&RatePolicy::max_wait>("max_wait", kLimit),
};

constexpr Key kQueueKeys[] = {
    key<&ConcurrencyPolicy::Queue::max>("max", kCountOrNone),
    key<&ConcurrencyPolicy::Queue::timeout>("timeout", kLimitOverZero),
    key<&ConcurrencyPolicy::Queue::order>("order", kOrder),
};
constexpr Shape kQueue{.name = "queue", .keys = kQueueKeys};
constexpr Object<ConcurrencyPolicy::Queue> kQueueObject(kQueue);

constexpr auto kOfAimd = mask(Limiter::Aimd);

constexpr Key kConcurrencyKeys[] = {
    key<&ConcurrencyPolicy::kind>("kind", kLimiter),
    key<&ConcurrencyPolicy::max>("max", kCount),
    key<&ConcurrencyPolicy::initial>("initial", kCount).of(kOfAimd),
    key<&ConcurrencyPolicy::min>("min", kCount).of(kOfAimd),
    key<&ConcurrencyPolicy::backoff_ratio>("backoff_ratio", kPartOfSends).of(kOfAimd),
    key<&ConcurrencyPolicy::scope>("scope", kScope),
    key<&ConcurrencyPolicy::queue>("queue", kQueueObject),
};

constexpr auto kOfRatio = mask(Kind::Ratio);
constexpr auto kOfShare = mask(Kind::Share);
constexpr auto kOfStates = mask(Kind::Ratio, Kind::Consecutive);

constexpr Key kBreakerKeys[] = {
    loader_key("preset", kPreset),
    key<&BreakerPolicy::kind>("kind", kBreakerKind),
    key<&BreakerPolicy::failure_ratio>("failure_ratio", kPartOfSends).of(kOfRatio),
    key<&BreakerPolicy::min_requests>("min_requests", kCount).of(kOfRatio),
    key<&BreakerPolicy::window>("window", kDurationOverZero).of(kOfStates),
    key<&BreakerPolicy::failures>("failures", kCountOrNone).of(kOfRatio),
    key<&BreakerPolicy::failures>("failures", kCount).of(mask(Kind::Consecutive)).needed(),
    key<&BreakerPolicy::slow_after>("slow_after", kLimitOverZero).of(kOfRatio),
    key<&BreakerPolicy::slow_ratio>("slow_ratio", kPartOfSends).of(kOfRatio),
    key<&BreakerPolicy::k>("k", kShareFactor).of(kOfShare),
    key<&BreakerPolicy::share_window>("share_window", kDurationOverZero).of(kOfShare),
    key<&BreakerPolicy::open_for>("open_for", kBackoffObject).of(kOfStates),
    key<&BreakerPolicy::probes>("probes", kProbes).of(kOfStates),
    key<&BreakerPolicy::probe_timeout>("probe_timeout", kDurationOverZero).of(kOfStates),
    key<&BreakerPolicy::throttle_fails>("throttle", kThrottle),
    key<&BreakerPolicy::applies_to>("applies_to", kApplies),
    key<&BreakerPolicy::when_open>("when_open", kOpenRule).of(kOfStates),
    key<&BreakerPolicy::scope>("scope", kScope),
    key<&BreakerPolicy::dry_run>("dry_run", kFlag),
};

}  // namespace

constinit const Word<Priority> kPriority{Words(kPriorities)};

constinit const Shape kPause{.name = "pause", .keys = kPauseKeys};
constinit const Shape kRate{.name = "rate", .keys = kRateKeys, .whole = true};
constinit const Shape kConcurrency{.name = "concurrency",
                                   .keys = kConcurrencyKeys,
                                   .kinds = Words(kLimiters),
                                   .base = []() -> const JsonNode& {
                                     static const auto* const tree = tree_of({{"kind", "fixed"}});
                                     return *tree->root;
                                   }};
constinit const Shape kBreaker{
    .name = "breaker",
    .keys = kBreakerKeys,
    .kinds = Words(kBreakers),
    .base = []() -> const JsonNode& {
      static const auto* const tree = [] {
        const BreakerPolicy policy;
        auto open_for = write_object(policy_file::kBackoff, &policy.open_for);
        return tree_of({{"kind", "ratio"}, {"open_for", std::move(open_for)}});
      }();
      return *tree->root;
    },
    .preset = breaker_preset};

}  // namespace httpretry::policy_file
