// The keys of a policy.
#include "lib/policy/keys.hpp"

#include <httpretry/http/headers.hpp>

namespace httpretry::policy_file {
namespace {

// Words are in the order of the enum that they name.
constexpr std::string_view kElapsedRules[] = {"include_wait", "before_wait", "clip_wait"};
constexpr std::string_view kRepeats[] = {"safe", "always", "never"};
constexpr std::string_view kCombines[] = {"max", "server", "own"};
constexpr std::string_view kOverMax[] = {"stop", "clamp"};

bool is_pointer(std::string_view text) {
  if (!text.starts_with('/')) return false;
  for (auto tilde = text.find('~'); tilde != text.npos; tilde = text.find('~', tilde + 1)) {
    const auto next = text.substr(tilde + 1, 1);
    if (next != "0" && next != "1") return false;
  }
  return true;
}

// "Code", or from the root "/Error/Code".
bool is_element(std::string_view text) {
  if (text.starts_with('/')) text.remove_prefix(1);
  if (text.empty() || text.back() == '/' || text.find("//") != text.npos) return false;
  return text.find_first_of(" \t\r\n<>&\"'=?!") == text.npos && text.front() != '/';
}

constexpr DurationType kLimit(true);
constexpr DurationType kLimitOverZero(true, DurationType::Zero::Refused);
constexpr Attempts kAttempts("the first send counts");
constexpr Attempts kPolls("");
constexpr Number<double> kShare(0, 1);
constexpr Flag kFlag;
constexpr Statuses kStatuses;
constexpr Optional kAnyStatuses(kStatuses);
constexpr ErrorCodes kErrorCodes;
constexpr Transports kTransports;
constexpr DelayHeaders kHeaders;
constexpr Strings kValues(Strings::Of::Values);
constexpr Text kPolicyName("a name", [](std::string_view text) { return !text.empty(); });
constexpr Text kHeader("a header's name", valid_header_name, "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$");
constexpr Text kPointer("a JSON pointer such as \"/error/reason\"", is_pointer, "^/([^~]|~[01])*$");
constexpr Text kElement("an XML element's name", is_element,
                        "^/?[^\\s<>&\"'=?!/]+(/[^\\s<>&\"'=?!/]+)*$");
constexpr Selector kInJson(ErrorRule::Source::Json, kPointer);
constexpr Selector kInHeader(ErrorRule::Source::Header, kHeader);
constexpr Selector kInXml(ErrorRule::Source::Xml, kElement);
constexpr Word<ElapsedRule> kElapsedRule{Words(kElapsedRules)};
constexpr Word<Repeat> kRepeat{Words(kRepeats)};
constexpr Word<ServerDelayPolicy::Combine> kCombine{Words(kCombines)};
constexpr Word<ServerDelayPolicy::OverMax> kOver{Words(kOverMax)};
// A response cannot be made a failure of the transport.
constexpr Word<Class> kClass(Words::up_to(Class::Permanent, std::optional(Class::Transport)));

constexpr Object<Backoff> kBackoffObject(kBackoff);
constexpr Object<std::optional<Backoff>> kBackoffOrNone(kBackoff);
constexpr Object<BudgetPolicy> kBudgetOrNone(kBudget);

constexpr Key kRuleKeys[] = {
    key<&ErrorRule::status>("status", kAnyStatuses, "Only for these statuses.").not_null(),
    whole_key("json", kInJson, "Where it is in the body; \"*\" is any index of an array.")
        .not_null(),
    whole_key("header", kInHeader, "The header it is in.").not_null(),
    whole_key("xml", kInXml, "The element of the body it is in.").not_null(),
    key<&ErrorRule::in>("in", kValues, "The values; left out, being there is enough.").not_null(),
    key<&ErrorRule::as>("as", kClass, "What the response then counts as.").needed().not_null(),
};
constexpr Shape kRule{.name = "rule", .keys = kRuleKeys, .whole = true};

constexpr Key kPendingKeys[] = {
    key<&PendingRule::statuses>("statuses", kStatuses,
                                "The statuses of a response that means \"not yet\".")
        .needed(),
    key<&PendingRule::json>("json", kPointer,
                            "What says so in the body; \"*\" is any index of an array."),
    key<&PendingRule::in>("in", kValues, "The values there; left out, being there is enough."),
    key<&PendingRule::max>("max", kPolls, "After so many such responses it gives up."),
    key<&PendingRule::backoff>("backoff", kBackoffObject, "The waits in between (a second)."),
};
constexpr Shape kPending{
    .name = "pending", .keys = kPendingKeys, .whole = true, .base = []() -> OrderedJson {
      const PendingRule rule;
      return {{"backoff", write_object(kBackoff, &rule.backoff)}};
    }};
constexpr Object<std::optional<PendingRule>> kPendingOrNone(kPending);

constexpr Key kRetryOnKeys[] = {
    key<&RetryOn::statuses>(
        "statuses", kStatuses,
        "Failures that pass: 408, \"5xx\", \"500-504\", \"!501\"; later items win."),
    key<&RetryOn::throttle_statuses>("throttle_statuses", kStatuses,
                                     "The server asks for fewer requests."),
    key<&RetryOn::error_codes>(
        "error_codes", kErrorCodes,
        "What responses say besides their status; the first rule that fits decides."),
    key<&RetryOn::transport>("transport", kTransports, "No response came."),
    key<&RetryOn::pending>("pending", kPendingOrNone, "Responses that mean \"not yet\"."),
};
constexpr Shape kRetryOn{.name = "retry_on", .keys = kRetryOnKeys};
constexpr Object<RetryOn> kRetryOnObject(kRetryOn);

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
const Shape& rule_shape() { return kRule; }

}  // namespace httpretry::policy_file
