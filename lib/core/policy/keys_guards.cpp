// The keys of the guards (pause, rate, concurrency and breaker), and of `hedge`.
#include "lib/core/base/text.hpp"
#include "policy_set_data.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace httpretry::detail::policy_file {
namespace {

using JsonType = JsonNode::Type;
using Strings = std::vector<std::string>;
using Resume = PausePolicy::Resume;
using Kind = BreakerPolicy::Kind;
using Limiter = ConcurrencyPolicy::Kind;

// The words are in the order of their enum.
constexpr std::string_view kScopes[] = {"host", "endpoint", "policy", "credentials"};
constexpr std::string_view kRateCounts[] = {"requests", "cost"};
constexpr std::string_view kPlainScopes[] = {"host", "endpoint", "policy", ""};
constexpr std::string_view kResumes[] = {"ramp", "all"};
constexpr std::string_view kQuotas[] = {"react"};
constexpr std::string_view kOtherQuotas[] = {"pace"};
constexpr std::string_view kLimiters[] = {"fixed", "aimd"};
constexpr std::string_view kOtherLimiters[] = {"gradient", "vegas"};
constexpr std::string_view kOrders[] = {"fifo", "lifo"};
constexpr std::string_view kOtherOrders[] = {"adaptive"};
constexpr std::string_view kBreakers[] = {"ratio", "consecutive", "share"};
constexpr std::string_view kThrottles[] = {"neutral", "failure"};
constexpr std::string_view kAppliesTo[] = {"all", "retries"};
constexpr std::string_view kWhenOpen[] = {"fail", "wait"};
constexpr std::string_view kPresetNames[] = {"hystrix", "polly"};
constexpr std::string_view kAllMethods = "all";
constexpr std::string_view kOtherPresets[] = {"resilience4j", "gobreaker", "envoy", "linkerd"};

// Returns a preset with the numbers of another breaker, taken from its documentation.
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

constexpr Key kLimitKeys[] = {
    key_of<policy::kRequests, &RatePolicy::requests>("requests").needed().not_null(),
    key<&RatePolicy::per>("per", kDurationOverZero).needed().not_null(),
};
constexpr Shape kLimitShape{.name = "limit", .keys = kLimitKeys};

constexpr const char* kRateText = R"(a rate such as "10/s", or {"requests": 600, "per": "1m"})";

// Reads a rate such as "10/s" or "600/m" into `rate`: a number of requests and the period for
// which it holds. Returns false and reports a problem if the text is not a rate, or if its number
// is out of range.
bool parse_rate(const JsonNode& json, RatePolicy& rate, Problems& problems) {
  const auto slash = json.text.find('/');
  const auto number = to_number<std::int64_t>(json.text.substr(0, slash));
  // Without a slash, the unit is empty. No period has this name, so the text is refused.
  const auto unit = slash == std::string_view::npos ? "" : json.text.substr(slash + 1);
  const auto* const period = std::ranges::find(kPeriods, unit, &Period::name);
  if (!number || period == std::end(kPeriods)) {
    return refuse(json, problems,
                  described(json) + " is not " + kRateText + "; the units are s, m, h, d");
  }
  constexpr auto kMost = static_cast<std::int64_t>(policy::kRequests.most);
  if (*number < 1 || *number > kMost) {
    return refuse(
        json, problems,
        described(json) + " is out of range: 1 to " + std::to_string(kMost) + " requests");
  }
  rate.requests = *number;
  rate.per = period->length;
  return true;
}

// Reads the limit of a rate: a text such as "10/s", or an object. The default burst of a rate that
// counts costs is its limit; the key "counts" is read before.
bool read_rate(const JsonNode& json, RatePolicy& rate, Problems& problems) {
  const bool is_valid = json.is(JsonType::String)
                            ? parse_rate(json, rate, problems)
                            : read_object(json, kLimitShape, &rate, kRateText, problems);
  if (rate.counts == RatePolicy::Counts::Cost) rate.burst = rate.requests;
  if (!is_valid || rate.per.count() >= rate.requests) return is_valid;
  return refuse(json, problems, "more than one per nanosecond");
}

OrderedJson write_rate(const RatePolicy& rate) {
  for (const auto& period : kPeriods) {
    if (period.length != rate.per) continue;
    return std::to_string(rate.requests) + "/" + std::string(period.name);
  }
  return write_object(kLimitShape, &rate);
}

constexpr Number<double> kPartOfSends(policy::kPartsOfSends);
constexpr Custom<RatePolicy> kRateLimit(read_rate, write_rate);
constexpr Word<GuardScope> kPlainScope{Words(kPlainScopes)};  // without credentials
constexpr Word<bool> kQuota{Words(kQuotas, kOtherQuotas)};
constexpr Word<Limiter> kLimiter{Words(kLimiters, kOtherLimiters)};
constexpr Word<ConcurrencyPolicy::Order> kOrder{Words(kOrders, kOtherOrders)};
constexpr Word<bool> kPreset{Words(kPresetNames, kOtherPresets)};

constexpr Key kPauseKeys[] = {
    key<&PausePolicy::max>("max", kLimitOverZero),
    key_of<kResumes, &PausePolicy::resume>("resume"),
    key<&PausePolicy::scope>("scope", kMaybe<kPlainScope>),
    loader_key("quota", kQuota),
};

// `counts` precedes `limit`, and `limit` precedes `burst`: they are read in this order.
constexpr Key kRateKeys[] = {
    key_of<kRateCounts, &RatePolicy::counts>("counts"),
    whole_key("limit", kRateLimit).needed(),
    key_of<policy::kRequests, &RatePolicy::burst>("burst"),
    key_of<kScopes, &RatePolicy::scope>("scope"),
    key<&RatePolicy::max_wait>("max_wait", kLimit),
};
constexpr Shape kRate{
    .name = "rate", .keys = kRateKeys, .whole = true, .example = R"({"limit": "10/s"})"};

constexpr Key kQueueKeys[] = {
    key_of<policy::kQueues, &ConcurrencyPolicy::Queue::max>("max"),
    key<&ConcurrencyPolicy::Queue::timeout>("timeout", kLimitOverZero),
    key<&ConcurrencyPolicy::Queue::order>("order", kOrder),
};
constexpr Shape kQueue{.name = "queue", .keys = kQueueKeys};

constexpr auto kOfAimd = mask(Limiter::Aimd);

constexpr Key kConcurrencyKeys[] = {
    key<&ConcurrencyPolicy::kind>("kind", kLimiter),
    key_of<policy::kCounts, &ConcurrencyPolicy::max>("max"),
    key_of<policy::kCounts, &ConcurrencyPolicy::initial>("initial").of(kOfAimd),
    key_of<policy::kCounts, &ConcurrencyPolicy::min>("min").of(kOfAimd),
    key_of<policy::kPartsOfSends, &ConcurrencyPolicy::backoff_ratio>("backoff_ratio").of(kOfAimd),
    key_of<kScopes, &ConcurrencyPolicy::scope>("scope"),
    key_of<kQueue, &ConcurrencyPolicy::queue>("queue"),
};

constexpr auto kOfRatio = mask(Kind::Ratio);
constexpr auto kOfShare = mask(Kind::Share);
constexpr auto kOfStates = mask(Kind::Ratio, Kind::Consecutive);

constexpr Key kBreakerKeys[] = {
    loader_key("preset", kPreset),
    key_of<kBreakers, &BreakerPolicy::kind>("kind"),
    key_of<policy::kPartsOfSends, &BreakerPolicy::failure_ratio>("failure_ratio").of(kOfRatio),
    key_of<policy::kCounts, &BreakerPolicy::min_requests>("min_requests").of(kOfRatio),
    key<&BreakerPolicy::window>("window", kDurationOverZero).of(kOfStates),
    key_of<policy::kQueues, &BreakerPolicy::failures>("failures").of(kOfRatio),
    key_of<policy::kCounts, &BreakerPolicy::failures>("failures")
        .of(mask(Kind::Consecutive))
        .needed(),
    key<&BreakerPolicy::slow_after>("slow_after", kLimitOverZero).of(kOfRatio),
    key_of<policy::kPartsOfSends, &BreakerPolicy::slow_ratio>("slow_ratio").of(kOfRatio),
    key_of<policy::kShareFactors, &BreakerPolicy::k>("k").of(kOfShare),
    key<&BreakerPolicy::share_window>("share_window", kDurationOverZero).of(kOfShare),
    key_of<kBackoff, &BreakerPolicy::open_for>("open_for").of(kOfStates),
    key_of<policy::kProbes, &BreakerPolicy::probes>("probes").of(kOfStates),
    key<&BreakerPolicy::probe_timeout>("probe_timeout", kDurationOverZero).of(kOfStates),
    key_of<kThrottles, &BreakerPolicy::throttle_fails>("throttle"),
    key_of<kAppliesTo, &BreakerPolicy::applies_to>("applies_to"),
    key_of<kWhenOpen, &BreakerPolicy::when_open>("when_open").of(kOfStates),
    key_of<kScopes, &BreakerPolicy::scope>("scope"),
    key<&BreakerPolicy::dry_run>("dry_run", kFlag),
};

constexpr const char* kAfterText = R"(a time such as "200ms", or a quantile such as "p95")";

// Returns the percentage in a text such as "99.9", or nullopt if it is not a number with at most
// three decimals.
std::optional<double> percent_in(std::string_view text) {
  const auto fraction = text.substr(std::min(text.find('.'), text.size()));  // with its point
  const bool is_plain = text.find_first_not_of("0123456789.") == text.npos;
  if (!is_plain || fraction.size() > std::string_view(".999").size()) return std::nullopt;
  double percent = 0;
  const auto* const end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, percent);
  return failure == std::errc() && stopped == end ? std::optional(percent) : std::nullopt;
}

// Reads a time such as "200ms" or a quantile such as "p95" into `hedge`. Returns false and reports
// a problem if it is neither.
bool read_after(const JsonNode& json, HedgePolicy& hedge, Problems& problems) {
  if (!expect(json, JsonType::String, kAfterText, problems)) return false;
  if (json.text.ends_with('%')) {  // "95%" instead of "p95"
    const auto percent = json.text.substr(0, json.text.size() - 1);
    return refuse(json, problems,
                  described(json) + " is not " + kAfterText + "; write " +
                      quoted_text("p" + std::string(percent)));
  }
  if (!json.text.starts_with('p')) {
    hedge.quantile = 0;  // `after` is a time
    return kDuration.read(json, &hedge.after, problems);
  }
  const auto percent = percent_in(std::string_view(json.text).substr(1));
  if (!percent || *percent < 50 || *percent > 99.9) {
    return refuse(json, problems,
                  described(json) + " is not " + kAfterText + "; quantiles are p50 to p99.9");
  }
  hedge.quantile = *percent / 100;
  return true;
}

OrderedJson write_after(const HedgePolicy& hedge) {
  return hedge.quantile == 0 ? kDuration.write(&hedge.after)
                             : OrderedJson(policy::quantile_text(hedge.quantile));
}

constexpr Custom<Strings> kHedgedMethods(
    [](const JsonNode& json, Strings& methods, Problems& problems) {
      methods.clear();
      const bool all = json.is(JsonType::String) && json.text == kAllMethods;
      return all || kMethods.read(json, &methods, problems);
    },
    [](const Strings& methods) -> OrderedJson {
      return methods.empty() ? OrderedJson(kAllMethods) : kMethods.write(&methods);
    });

constexpr Custom<HedgePolicy> kAfter(read_after, write_after);
constexpr Optional kInitial(kDuration, "none");
constexpr Optional kHedgeBudget(kPartOfSends, "none");

constexpr Key kHedgeKeys[] = {
    whole_key("after", kAfter).needed(),
    key<&HedgePolicy::initial>("initial", kInitial),
    key_of<policy::kCounts, &HedgePolicy::min_samples>("min_samples"),
    key<&HedgePolicy::min>("min", kDurationOverZero),
    key<&HedgePolicy::max>("max", kDurationOverZero),
    key_of<policy::kHedges, &HedgePolicy::max_hedges>("max_hedges"),
    key<&HedgePolicy::methods>("methods", kHedgedMethods),
    key<&HedgePolicy::budget>("budget", kHedgeBudget),
    key<&HedgePolicy::scope>("scope", kPlainScope),
};

}  // namespace

constinit const Shape kPause{.name = "pause", .keys = kPauseKeys};
constinit const RateType kRates{kRate};

// Reads the value of "rate": one rate, "none", or a list of rates, which all apply. The first rate
// of a list stores the others in its member `further`. If `field` is kCheckOnly (nullptr), only
// checks the value. Returns false and reports problems if the value is wrong.
bool RateType::read(const JsonNode& json, void* field, Problems& problems) const {
  if (!json.is(JsonType::Array)) return Object::read(json, field, problems);
  std::vector<RatePolicy> rates;
  const auto read_one = [&](const JsonNode& item) {
    if (!read_object(item, kRate, kCheckOnly, R"(an object such as {"limit": "10/s"})", problems)) {
      return false;
    }
    // The members are valid. Reads them again in the order of kRateKeys, because "limit" sets the
    // default of "burst". Members that are left out or null keep their defaults.
    auto& rate = rates.emplace_back();
    for (const auto& key : kRate.keys) {
      const auto* const member = item.member(key.name);
      if (member != nullptr && !member->is(JsonType::Null)) {
        key.type->read(*member, key.field(&rate), problems);
      }
    }
    return rate.scope == rates.front().scope ||
           refuse(item, problems, "the rates of a list must have the same \"scope\"");
  };
  if (!read_items(json, "a list", problems, read_one)) {
    json.has_error = true;  // so far only its items have it; merge_layer leaves out the list
    return false;
  }
  if (rates.empty()) return refuse(json, problems, R"(an empty list has no rate; write "none")");
  if (field == kCheckOnly) return true;
  // `reset` puts a default RatePolicy into the optional field, and returns it.
  auto& first = *static_cast<RatePolicy*>(reset(field, Initial::Defaults));
  first = rates.front();
  first.further.assign(rates.begin() + 1, rates.end());
  return true;
}

OrderedJson RateType::write(const void* field) const {
  const auto& first = *static_cast<const Field*>(field);
  if (!first || first->further.empty()) return Object::write(field);
  auto list = OrderedJson::array({write_object(kRate, &*first)});
  for (const auto& rate : first->further) list.push_back(write_object(kRate, &rate));
  return list;
}
constinit const Shape kConcurrency{.name = "concurrency",
                                   .keys = kConcurrencyKeys,
                                   .kinds = Words(kLimiters),
                                   .base = []() -> const JsonNode& {
                                     static const auto* const tree = tree_of({{"kind", "fixed"}});
                                     return *tree->root;
                                   },
                                   .example = R"({"max": 8})"};
constinit const Shape kBreaker{
    .name = "breaker",
    .keys = kBreakerKeys,
    .kinds = Words(kBreakers),
    .base = []() -> const JsonNode& {
      static const BreakerPolicy policy;
      static const auto* const tree =
          tree_of({{"kind", "ratio"}, {"open_for", write_object(kBackoff, &policy.open_for)}});
      return *tree->root;
    },
    .preset = breaker_preset,
    .example = R"({"kind": "consecutive", "failures": 5})"};
constinit const Shape kHedge{
    .name = "hedge", .keys = kHedgeKeys, .whole = true, .example = R"({"after": "200ms"})"};

}  // namespace httpretry::detail::policy_file
