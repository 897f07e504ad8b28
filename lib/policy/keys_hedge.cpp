// The keys of `hedge`.
#include "lib/policy/policy_set_data.hpp"

#include <algorithm>
#include <charconv>

namespace httpretry::policy_file {
namespace {

using JsonType = JsonNode::Type;
using Strings = std::vector<std::string>;

constexpr std::string_view kScopes[] = {"host", "endpoint", "policy"};
constexpr std::string_view kAllMethods = "all";

constexpr DurationType kDuration(false);
constexpr DurationType kDurationOverZero(false, DurationType::Zero::Refused);

// A time, or a quantile: "200ms", "p95".
class AfterType final : public Type {
 public:
  using Field = HedgePolicy;
  constexpr AfterType() = default;
  bool read(const JsonNode& json, void* field, Problems& problems) const override {
    HedgePolicy read;
    auto& policy = field == nullptr ? read : *static_cast<HedgePolicy*>(field);
    if (!expect(json, JsonType::String, kWhat, problems)) return false;
    if (json.text.starts_with('p')) return read_quantile(json, policy, problems);
    policy.quantile = 0;
    return kDuration.read(json, &policy.after, problems);
  }
  [[nodiscard]] OrderedJson write(const void* field) const override {
    const auto& policy = *static_cast<const HedgePolicy*>(field);
    return policy.quantile == 0 ? kDuration.write(&policy.after)
                                : OrderedJson(policy::quantile_text(policy.quantile));
  }

 private:
  static constexpr std::string_view kWhat =
      R"(a time such as "200ms", or a quantile such as "p95")";

  static std::optional<double> percent_in(std::string_view text) {
    const auto after_point = text.size() - std::min(text.find('.'), text.size());
    if (text.find_first_not_of("0123456789.") != std::string_view::npos || after_point > 4) {
      return std::nullopt;
    }
    double percent = 0;
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, percent);
    return read.ec == std::errc() && read.ptr == end ? std::optional(percent) : std::nullopt;
  }

  static bool read_quantile(const JsonNode& json, HedgePolicy& policy, Problems& problems) {
    const auto percent = percent_in(std::string_view(json.text).substr(1));
    if (!percent || *percent < 50 || *percent > 99.9) {
      problems.error(
          json, described(json) + " is not " + std::string(kWhat) + "; quantiles are p50 to p99.9");
      return false;
    }
    policy.quantile = *percent / 100;
    return true;
  }
};

constexpr Custom<Strings> kHedgedMethods(
    [](const JsonNode& json, Problems& problems) -> std::optional<Strings> {
      if (json.is(JsonType::String) && json.text == kAllMethods) return Strings();
      Strings methods;
      if (!kMethods.read(json, &methods, problems)) return std::nullopt;
      return methods;
    },
    [](const Strings& methods) -> OrderedJson {
      return methods.empty() ? OrderedJson(kAllMethods) : kMethods.write(&methods);
    });

constexpr AfterType kAfter;
constexpr Optional kInitial(kDuration, "none");
constexpr Number<int> kCount(policy::kCounts);
constexpr Number<int> kHedges(policy::kHedges);
constexpr Number<double> kPartOfCalls(policy::kPartsOfSends);
constexpr Optional kHedgeBudget(kPartOfCalls, "none");
constexpr Word<GuardScope> kScope{Words(kScopes)};

constexpr Key kHedgeKeys[] = {
    whole_key("after", kAfter).needed(),
    key<&HedgePolicy::initial>("initial", kInitial),
    key<&HedgePolicy::min_samples>("min_samples", kCount),
    key<&HedgePolicy::min>("min", kDurationOverZero),
    key<&HedgePolicy::max>("max", kDurationOverZero),
    key<&HedgePolicy::max_hedges>("max_hedges", kHedges),
    key<&HedgePolicy::methods>("methods", kHedgedMethods),
    key<&HedgePolicy::budget>("budget", kHedgeBudget),
    key<&HedgePolicy::scope>("scope", kScope),
};

}  // namespace

constinit const Shape kHedge{.name = "hedge", .keys = kHedgeKeys, .whole = true};

}  // namespace httpretry::policy_file
