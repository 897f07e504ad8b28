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
    key<&Backoff::kind>("kind", kKind, "How waits grow.").needed(),
    key<&Backoff::initial>("interval", kDuration, "Every wait.").of(mask(Kind::Constant)).needed(),
    key<&Backoff::initial>("initial", kDuration, "The first wait.")
        .of(mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated))
        .needed(),
    key<&Backoff::increment>("increment", kDuration, "Added for each further wait.")
        .of(mask(Kind::Linear))
        .needed(),
    key<&Backoff::multiplier>("multiplier", kMultiplier,
                              "Each wait is the one before times this (2; 3 for decorrelated).")
        .of(mask(Kind::Exponential, Kind::Decorrelated)),
    key<&Backoff::max_interval>(
        "max_interval", kLimit,
        "No wait is longer (none; for truncated_binary the last step's ceiling).")
        .of(mask(Kind::Linear, Kind::Exponential, Kind::Decorrelated)),
    key<&Backoff::max_interval>("max_interval", kDuration).of(mask(Kind::TruncatedBinary)).needed(),
    key<&Backoff::cap_after_jitter>(
        "cap", kCap, "Whether max_interval bounds the wait before jitter or after it (before).")
        .of(kExponential),
    key<&Backoff::jitter>("jitter", kJitter, "What chance makes of a wait (full).")
        .of(kExponential),
    key<&Backoff::randomization>("randomization", kShare, "For jitter proportional (0.5).")
        .of(kExponential, mask(Jitter::Proportional)),
    key<&Backoff::low>("low", kFactor, "For jitter range: the least factor.")
        .of(kExponential, mask(Jitter::Range))
        .needed(),
    key<&Backoff::high>("high", kFactor, "For jitter range: the most.")
        .of(kExponential, mask(Jitter::Range))
        .needed(),
    key<&Backoff::add>("add", kDuration, "For jitter additive: at most this is added.")
        .of(kExponential, mask(Jitter::Additive))
        .needed(),
    key<&Backoff::steps>("steps", kSteps, "After how many waits the ceiling is max_interval.")
        .of(mask(Kind::TruncatedBinary))
        .needed(),
    key<&Backoff::initial>("slot", kDuration, "A slot's length.").of(mask(Kind::Slots)).needed(),
    key<&Backoff::steps>("truncate", kDoublings,
                         "After how many failures the number of slots grows no more (10).")
        .of(mask(Kind::Slots)),
    key<&Backoff::abort>("abort", kFailures, "After how many failures there is no retry (16).")
        .of(mask(Kind::Slots)),
};

constexpr auto kOfTokens = mask(BudgetKind::Tokens);
constexpr auto kOfRatio = mask(BudgetKind::Ratio);
constexpr auto kOfGrpc = mask(BudgetKind::Grpc);
constexpr auto kOfConcurrent = mask(BudgetKind::Concurrent);

constexpr Key kBudgetKeys[] = {
    key<&BudgetPolicy::kind>("kind", kBudgetKind, "How retries are counted.").needed(),
    key<&BudgetPolicy::capacity>("capacity", kTokens, "Tokens (500).").of(kOfTokens),
    key<&BudgetPolicy::retry_cost>("retry_cost", kTokens, "What a retry costs (14).").of(kOfTokens),
    key<&BudgetPolicy::throttle_cost>("throttle_cost", kTokens,
                                      "What it costs when throttled (retry_cost).")
        .of(kOfTokens)
        .else_like("retry_cost"),
    key<&BudgetPolicy::timeout_cost>("timeout_cost", kTokens,
                                     "What it costs after a timeout (retry_cost).")
        .of(kOfTokens)
        .else_like("retry_cost"),
    key<&BudgetPolicy::refill>("refill_on_success", kTokens,
                               "What a call gives that succeeds at once (1).")
        .of(kOfTokens),
    key<&BudgetPolicy::ratio>("ratio", kRatio, "Retries for each request (0.2).").of(kOfRatio),
    key<&BudgetPolicy::window>("window", kDurationOverZero,
                               "The time over which they are counted (10s).")
        .of(kOfRatio),
    key<&BudgetPolicy::min_per_second>("min_per_second", kRate,
                                       "Retries that are always allowed (10).")
        .of(kOfRatio),
    key<&BudgetPolicy::capacity>("max_tokens", kTokens,
                                 "Tokens; retries are allowed while more than half are left.")
        .of(kOfGrpc)
        .needed(),
    key<&BudgetPolicy::refill>("token_ratio", kTokens, "What a success gives; a failure takes 1.")
        .of(kOfGrpc)
        .needed(),
    key<&BudgetPolicy::ratio>("ratio", kPartOfCalls,
                              "Retries and hedges under way, for each call under way (0.2).")
        .of(kOfConcurrent),
    key<&BudgetPolicy::min>("min", kExtras, "So many may always be under way (3).")
        .of(kOfConcurrent),
    key<&BudgetPolicy::scope>("scope", kScope, "Who shares one (host)."),
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
