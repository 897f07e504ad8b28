// The keys of backoffs and budgets, which depend on the kind.
#include "lib/policy/keys.hpp"

namespace httpretry::policy_file {
namespace {

using Kind = Backoff::Kind;
using Jitter = Backoff::Jitter;
using BudgetKind = BudgetPolicy::Kind;

// Words are in the order of the enum that they name.
constexpr std::string_view kKinds[] = {"none",         "constant",         "linear", "exponential",
                                       "decorrelated", "truncated_binary", "slots"};
constexpr std::string_view kJitters[] = {"none",         "full",  "equal",
                                         "proportional", "range", "additive"};
constexpr std::string_view kCaps[] = {"before", "after"};  // of cap_after_jitter
constexpr std::string_view kBudgetKinds[] = {"", "tokens", "ratio", "grpc", "concurrent"};
constexpr std::string_view kScopes[] = {"host", "endpoint", "policy"};

constexpr DurationType kDuration(false);
constexpr DurationType kDurationOverZero(false, DurationType::Zero::Refused);
constexpr DurationType kLimit(true);
constexpr Number<double> kFactor(policy::kFactors);
constexpr Number<double> kMultiplier(policy::kMultipliers);
constexpr Number<double> kShare(policy::kShares);
constexpr Number<int> kSteps(policy::kSteps);
constexpr Number<int> kDoublings(policy::kDoublings);
constexpr Number<int> kFailures(policy::kCounts);
constexpr Number<std::int64_t> kTokens(policy::kTokens);
constexpr Number<std::int64_t> kRatio(policy::kRatios);
constexpr Number<std::int64_t> kRate(policy::kRates);
constexpr Number<std::int64_t> kPartOfCalls(policy::kPartsOfCalls);
constexpr Number<int> kExtras(policy::kExtras);
constexpr Word<Kind> kKind{Words(kKinds)};
constexpr Word<Jitter> kJitter{Words(kJitters)};
constexpr Word<bool> kCap{Words(kCaps)};
constexpr Word<BudgetKind> kBudgetKind{Words(kBudgetKinds)};
constexpr Word<BudgetPolicy::Scope> kScope{Words(kScopes)};

constexpr auto kExponential = mask(Kind::Exponential);

constexpr Key kBackoffKeys[] = {
    key<&Backoff::kind>("kind", kKind).needed(),
    key<&Backoff::initial>("interval", kDuration).of(mask(Kind::Constant)).needed(),
    key<&Backoff::initial>("initial", kDuration)
        .of(mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated))
        .needed(),
    key<&Backoff::increment>("increment", kDuration).of(mask(Kind::Linear)).needed(),
    key<&Backoff::multiplier>("multiplier", kMultiplier)
        .of(mask(Kind::Exponential, Kind::Decorrelated)),
    key<&Backoff::max_interval>("max_interval", kLimit)
        .of(mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated)),
    key<&Backoff::max_interval>("max_interval", kDuration).of(mask(Kind::TruncatedBinary)).needed(),
    key<&Backoff::cap_after_jitter>("cap", kCap).of(kExponential),
    key<&Backoff::jitter>("jitter", kJitter).of(kExponential),
    key<&Backoff::randomization>("randomization", kShare)
        .of(kExponential, mask(Jitter::Proportional)),
    key<&Backoff::low>("low", kFactor).of(kExponential, mask(Jitter::Range)).needed(),
    key<&Backoff::high>("high", kFactor).of(kExponential, mask(Jitter::Range)).needed(),
    key<&Backoff::add>("add", kDuration).of(kExponential, mask(Jitter::Additive)).needed(),
    key<&Backoff::steps>("steps", kSteps).of(mask(Kind::TruncatedBinary)).needed(),
    key<&Backoff::initial>("slot", kDuration).of(mask(Kind::Slots)).needed(),
    key<&Backoff::steps>("truncate", kDoublings).of(mask(Kind::Slots)),
    key<&Backoff::abort>("abort", kFailures).of(mask(Kind::Slots)),
};

constexpr auto kOfTokens = mask(BudgetKind::Tokens);
constexpr auto kOfRatio = mask(BudgetKind::Ratio);
constexpr auto kOfGrpc = mask(BudgetKind::Grpc);
constexpr auto kOfConcurrent = mask(BudgetKind::Concurrent);

constexpr Key kBudgetKeys[] = {
    key<&BudgetPolicy::kind>("kind", kBudgetKind).needed(),
    key<&BudgetPolicy::capacity>("capacity", kTokens).of(kOfTokens),
    key<&BudgetPolicy::retry_cost>("retry_cost", kTokens).of(kOfTokens),
    key<&BudgetPolicy::throttle_cost>("throttle_cost", kTokens)
        .of(kOfTokens)
        .else_like("retry_cost"),
    key<&BudgetPolicy::timeout_cost>("timeout_cost", kTokens).of(kOfTokens).else_like("retry_cost"),
    key<&BudgetPolicy::refill>("refill_on_success", kTokens).of(kOfTokens),
    key<&BudgetPolicy::ratio>("ratio", kRatio).of(kOfRatio),
    key<&BudgetPolicy::window>("window", kDurationOverZero).of(kOfRatio),
    key<&BudgetPolicy::min_per_second>("min_per_second", kRate).of(kOfRatio),
    key<&BudgetPolicy::capacity>("max_tokens", kTokens).of(kOfGrpc).needed(),
    key<&BudgetPolicy::refill>("token_ratio", kTokens).of(kOfGrpc).needed(),
    key<&BudgetPolicy::ratio>("ratio", kPartOfCalls).of(kOfConcurrent),
    key<&BudgetPolicy::min>("min", kExtras).of(kOfConcurrent),
    key<&BudgetPolicy::scope>("scope", kScope),
};

}  // namespace

constinit const Shape kBackoff{.name = "backoff",
                               .keys = kBackoffKeys,
                               .kinds = Words(kKinds),
                               .jitters = Words(kJitters),
                               .whole = true,
                               .prepare = [](void* object) {
                                 auto& backoff = *static_cast<Backoff*>(object);
                                 if (backoff.kind == Kind::Decorrelated) backoff.multiplier = 3;
                               }};

constinit const Shape kBudget{
    .name = "budget", .keys = kBudgetKeys, .kinds = Words(kBudgetKinds), .whole = true};

}  // namespace httpretry::policy_file
