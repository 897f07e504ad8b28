// The keys of a policy.
#include "lib/policy/keys.hpp"

#include "lib/http/text.hpp"

#include <httpretry/http/headers.hpp>

namespace httpretry::policy_file {
namespace {

// Words are in the order of the enum that they name.
constexpr std::string_view kElapsedRules[] = {"include_wait", "before_wait", "clip_wait"};
constexpr std::string_view kRepeats[] = {"safe", "always", "never"};
constexpr std::string_view kCombines[] = {"max", "server", "own"};
constexpr std::string_view kOverMax[] = {"stop", "clamp"};

class Flag final : public TypeOf<bool> {
 public:
  [[nodiscard]] OrderedJson schema() const override { return {{"type", "boolean"}}; }

 protected:
  std::optional<bool> parse(const JsonNode& json, Problems& problems) const override {
    if (!expect(json, JsonNode::Type::Boolean, "true or false", problems)) return std::nullopt;
    return json.boolean;
  }
  [[nodiscard]] OrderedJson print(const bool& value) const override { return value; }
};

class DelayHeaders final : public TypeOf<std::vector<ServerDelaySource>> {
 public:
  [[nodiscard]] OrderedJson schema() const override {
    std::string names;
    for (const auto word : kNames.all()) {
      if (!names.empty()) names += "|";
      for (const auto c : word) {
        names += is_letter(c) ? std::string{'[', static_cast<char>(c - 'a' + 'A'), c, ']'}
                              : std::string(1, c);
      }
    }
    return schema_items(schema_either(kNames.schema(), schema_pattern("^(" + names + ")$")));
  }

 protected:
  std::optional<Field> parse(const JsonNode& json, Problems& problems) const override {
    Field headers;
    const auto good = read_items(json, "an array", problems, [&](const JsonNode& item) {
      const auto name = kNames.parse(item, problems);
      if (name) headers.push_back(static_cast<ServerDelaySource>(*name));
      return name.has_value();
    });
    return good ? std::optional(std::move(headers)) : std::nullopt;
  }
  [[nodiscard]] OrderedJson print(const Field& value) const override {
    auto list = OrderedJson::array();
    for (const auto source : value) list.push_back(to_string(source));
    return list;
  }

 private:
  static constexpr auto kNames =
      Words::up_to<ServerDelaySource>(ServerDelaySource::GrpcRetryPushback, {}, true);
};

constexpr DurationType kLimit(true);
constexpr DurationType kLimitOverZero(true, DurationType::Zero::Refused);
constexpr Attempts kAttempts("the first send counts");
constexpr Number<double> kShare(0, 1);
constexpr Flag kFlag;
constexpr DelayHeaders kHeaders;
constexpr Text kPolicyName("a name", [](std::string_view text) { return !text.empty(); });
constexpr Word<ElapsedRule> kElapsedRule{Words(kElapsedRules)};
constexpr Word<Repeat> kRepeat{Words(kRepeats)};
constexpr Word<ServerDelayPolicy::Combine> kCombine{Words(kCombines)};
constexpr Word<ServerDelayPolicy::OverMax> kOver{Words(kOverMax)};
constexpr Object<RetryOn> kRetryOnObject(kRetryOn);
constexpr Object<Backoff> kBackoffObject(kBackoff);
constexpr Object<std::optional<Backoff>> kBackoffOrNone(kBackoff);
constexpr Object<BudgetPolicy> kBudgetOrNone(kBudget);

constexpr Key kServerDelayKeys[] = {
    key<&ServerDelayPolicy::headers>(
        "headers", kHeaders, "Where a server says when to come back; the first valid one counts."),
    key<&ServerDelayPolicy::combine>("combine", kCombine,
                                     "Which wait counts: the larger one, the server's, ours."),
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
        "What may be sent again: what does no harm, everything, what was not sent.")
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
};
constexpr Shape kPolicy{.name = "policy", .keys = kPolicyKeys};

}  // namespace

const Shape& policy_shape() { return kPolicy; }

}  // namespace httpretry::policy_file
