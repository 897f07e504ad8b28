// Imports the retry settings (gRFC A6) of a gRPC service config:
// https://github.com/grpc/grpc/blob/master/doc/service_config.md
#include "lib/core/base/text.hpp"
#include "policy_set_data.hpp"

#include <httpretry/http/url.hpp>
#include <httpretry/policy/policy_builder.hpp>
#include <httpretry/policy/policy_import.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace httpretry {
namespace detail::policy_file {
namespace {

using namespace std::chrono_literals;

using JsonType = JsonNode::Type;

// A status code of gRPC with its equivalents in HTTP: statuses of servers and gateways (429 is a
// throttle), and failures of the transport.
struct Code {
  std::string_view name;
  std::array<int, 4> statuses;
  unsigned transport = 0;
};
constexpr auto kTimeout = 1U << static_cast<unsigned>(TransportKind::Timeout);
// In the order of their numbers, from 1.
constexpr Code kCodes[] = {{"CANCELLED", {499}},
                           {"UNKNOWN", {500}},
                           {"INVALID_ARGUMENT", {400}},
                           {"DEADLINE_EXCEEDED", {504}, kTimeout},
                           {"NOT_FOUND", {404}},
                           {"ALREADY_EXISTS", {409}},
                           {"PERMISSION_DENIED", {403}},
                           {"RESOURCE_EXHAUSTED", {429}},
                           {"FAILED_PRECONDITION", {400}},
                           {"ABORTED", {409}},
                           {"OUT_OF_RANGE", {400}},
                           {"UNIMPLEMENTED", {501}},
                           {"INTERNAL", {500}},
                           {"UNAVAILABLE", {502, 503, 504, 429}, ~kTimeout & 0xFFU},
                           {"DATA_LOSS", {500}},
                           {"UNAUTHENTICATED", {401}}};
constexpr int kMaxAttempts = 5;  // the limit of gRPC's clients, even if the config says more

class GrpcImport {
 public:
  explicit GrpcImport(Problems& problems) : problems_(problems) {}

  // Returns the policies that a service config means, or an error with a line for each problem.
  Result<ImportedPolicies> run(const JsonNode& root) {
    if (expect_object(&root, {"retryThrottling", "methodConfig"})) {
      read_throttling(root.find("retryThrottling"));
      const auto* const configs = root.find("methodConfig");
      if (configs == nullptr) {
        problems_.error(root, "missing key \"methodConfig\": there is nothing to import");
      } else if (has_type(configs, JsonType::Array, "an array")) {
        for (const auto* const config : configs->children) read_config(*config);
      }
    }
    if (!has_default_) builder_.fallback(PolicyBuilder().preset("none"));
    return finish_import(builder_, problems_);
  }

 private:
  // Returns whether there is a value of this type. Reports a problem if its type is wrong.
  bool has_type(const JsonNode* json, JsonType type, std::string_view what) {
    return json != nullptr && expect(*json, type, what, problems_);
  }
  // Returns the value of the key. Returns nullptr and reports a problem if there is no such key.
  const JsonNode* required(const JsonNode& object, std::string_view key) {
    const auto* const json = object.find(key);
    if (json == nullptr) problems_.error(object, "missing key " + quoted_text(key));
    return json;
  }
  // Returns whether there is an object. Reports another value, and warns of keys not in `known`.
  bool expect_object(const JsonNode* json, std::initializer_list<std::string_view> known) {
    if (!has_type(json, JsonType::Object, "an object")) return false;
    for (const auto* const child : json->children) {
      if (std::find(known.begin(), known.end(), child->key) != known.end()) continue;
      problems_.warn(*child, "is not imported");
    }
    return true;
  }
  // Returns a number over 0 and up to `most`. Otherwise reports a problem and returns nullopt.
  std::optional<double> number(const JsonNode* json, int most) {
    if (!has_type(json, JsonType::Number, "a number")) return {};
    const auto value = number_in(*json);
    if (value && *value > 0 && *value <= most) return value;
    problems_.error(*json, described(*json) + " is out of range: greater than 0, and at most " +
                               std::to_string(most));
    return {};
  }
  // Returns an empty string if the value is left out, and nullopt if it is not a string.
  std::optional<std::string> text(const JsonNode* json) {
    if (json == nullptr) return "";
    if (!has_type(json, JsonType::String, "a string")) return {};
    return std::string(json->text);
  }

  // Reads the budget of all methods, from "retryThrottling".
  void read_throttling(const JsonNode* json) {
    if (!expect_object(json, {"maxTokens", "tokenRatio"})) return;
    const auto max_tokens = number(required(*json, "maxTokens"), /*most=*/1000);
    const auto ratio = number(required(*json, "tokenRatio"), /*most=*/1000);
    if (!max_tokens || !ratio) return;
    budget_.kind = BudgetPolicy::Kind::Grpc;
    budget_.capacity = static_cast<std::int64_t>(*max_tokens * 1000);  // stored in thousandths
    // Like gRPC, this uses three decimal places.
    budget_.refill = static_cast<std::int64_t>(std::floor(*ratio * 1000 + 1e-9));
    if (std::abs(static_cast<double>(budget_.refill) - *ratio * 1000) > 1e-6) {
      problems_.warn(*json->find("tokenRatio"), "counts to three decimal places, as in gRPC");
    }
  }

  // Reads an element of "methodConfig": a policy, and the methods that it is for.
  void read_config(const JsonNode& json) {
    if (!expect_object(&json, {"retryPolicy", "hedgingPolicy", "timeout", "name"})) return;
    PolicyBuilder policy;
    const auto* const retrying = json.find("retryPolicy");
    const auto* const hedging = json.find("hedgingPolicy");
    if (retrying != nullptr && hedging != nullptr) {
      problems_.error(*hedging, "a method has a retryPolicy or a hedgingPolicy, not both");
    }
    // Without a retryPolicy, nothing is retried, unless read_hedging sets what to retry.
    policy.preset(retrying == nullptr ? "none" : "grpc");
    read_retry(retrying, policy);
    read_hedging(hedging, policy);
    if (const auto timeout = duration(json.find("timeout"))) policy.max_elapsed_time(*timeout);
    const auto* const names = json.find("name");
    if (names == nullptr) problems_.warn(json, "it has no \"name\", so it applies to no method");
    if (has_type(names, JsonType::Array, "an array")) read_names(*names, policy);
  }

  // Adds the policy to the builder if a valid name refers to it.
  void read_names(const JsonNode& names, const PolicyBuilder& policy) {
    const auto policy_name = "methodConfig-" + std::to_string(count_++);
    auto is_used = false;
    for (const auto* const name : names.children) is_used |= read_name(*name, policy_name);
    if (is_used) builder_.policy(policy_name, policy);
  }
  // Reads an element of "name", and adds an endpoint with this policy for it: for a method, or for
  // all methods of a service. A name without a service means all methods, and sets the default.
  // Returns whether the name is valid and new; otherwise reports a problem.
  bool read_name(const JsonNode& json, const std::string& policy) {
    if (!expect_object(&json, {"service", "method"})) return false;
    const auto service = text(json.find("service"));
    const auto method = text(json.find("method"));
    if (!service || !method) return false;
    if (service->empty() && !method->empty()) {
      return refuse(json, problems_, "a method without its service");
    }
    // The path of the method in gRPC, or "//*" for all methods. It is also the key in `names_`,
    // which finds a second equal name.
    EndpointPattern pattern;
    pattern.path =
        "/" + percent_encode(*service) + "/" + (method->empty() ? "*" : percent_encode(*method));
    if (const auto [first, is_new] = names_.try_emplace(*pattern.path, json.position); !is_new) {
      return refuse(json, problems_,
                    "it is also named on line " + std::to_string(first->second.line) + ", column " +
                        std::to_string(first->second.column));
    }
    if (service->empty()) {
      has_default_ = true;
      builder_.fallback(policy);
    } else {
      builder_.endpoint(pattern, policy, *service + (method->empty() ? "" : "/" + *method));
    }
    return true;
  }

  // Sets the policy's attempts, waits and failures to retry from a "retryPolicy". The keys that
  // gRPC requires are required here as well. Does nothing if there is no retryPolicy (nullptr).
  void read_retry(const JsonNode* json, PolicyBuilder& policy) {
    if (!expect_object(json, {"maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier",
                              "retryableStatusCodes", "perAttemptRecvTimeout"})) {
      return;
    }
    read_attempts(required(*json, "maxAttempts"), policy);
    const auto initial = duration(required(*json, "initialBackoff"));
    const auto max = duration(required(*json, "maxBackoff"));
    const auto multiplier = number(required(*json, "backoffMultiplier"), /*most=*/1'000'000);
    read_codes(required(*json, "retryableStatusCodes"), policy);
    if (const auto timeout = duration(json->find("perAttemptRecvTimeout"))) {
      policy.attempt_timeout(*timeout);
    }
    set_common_rules(policy);
    if (!initial || !max || !multiplier) return;  // missing or wrong, which was reported
    if (*multiplier < 1) {
      problems_.warn(*json->find("backoffMultiplier"), "waits cannot shrink here: 1 is used");
    }
    if (*initial > *max) {
      problems_.warn(*json->find("initialBackoff"),
                     "is greater than maxBackoff, so every wait is maxBackoff");
    }
    auto backoff = resolve_preset("grpc").value().policy->backoff;  // for its jitter
    backoff.initial = std::min(*initial, *max);
    backoff.max_interval = *max;
    backoff.multiplier = std::max(*multiplier, 1.0);
    policy.backoff(backoff);
  }

  // Sets what retries and hedges have in common: gRPC repeats every method, limits all of them by
  // one budget, and obeys the server's delay.
  void set_common_rules(PolicyBuilder& policy) {
    policy.repeat(Repeat::Always).budget(budget_);
    ServerDelayPolicy delay;
    delay.headers = {ServerDelaySource::GrpcRetryPushback};
    delay.combine = ServerDelayPolicy::Combine::Server;
    delay.max = kForever;
    policy.server_delay(delay);
  }

  // Sets the policy's hedges (further sends while one has no response) from a "hedgingPolicy". In
  // gRPC, the next send goes out at once after a non-fatal failure, and after hedgingDelay if there
  // is no response yet. Does nothing if `json` is nullptr (there is no hedgingPolicy).
  void read_hedging(const JsonNode* json, PolicyBuilder& policy) {
    if (!expect_object(json, {"maxAttempts", "hedgingDelay", "nonFatalStatusCodes"})) return;
    const auto attempts = read_attempts(required(*json, "maxAttempts"), policy);  // 2 if wrong
    const auto* const delay = json->find("hedgingDelay");
    // Non-fatal failures are retried. All others end the call.
    const auto* const codes = json->find("nonFatalStatusCodes");
    read_codes(codes, policy, /*may_be_empty=*/true);
    if (codes == nullptr) policy.retry_on(retry_on_nothing());
    policy.set("backoff", R"({"kind": "none"})");  // retries go out at once
    set_common_rules(policy);
    HedgePolicy hedge;
    hedge.after = Duration::zero();
    if (delay != nullptr) {  // a wrong delay is reported, and makes the import fail
      hedge.after = duration(delay, /*may_be_zero=*/true).value_or(hedge.after);
    }
    hedge.max_hedges = attempts - 1;  // the first send is not a hedge
    hedge.methods.clear();            // an empty list means all methods
    hedge.budget.reset();             // hedges are limited only by the budget for all retries
    policy.hedge(hedge);
  }

  static RetryOn retry_on_nothing() {
    RetryOn on;
    on.statuses = on.throttle_statuses = {};
    on.error_codes.clear();
    on.transport = 0;
    return on;
  }

  // Returns the number of attempts, or 2 if it is not valid.
  int read_attempts(const JsonNode* json, PolicyBuilder& policy) {
    if (!has_type(json, JsonType::Number, "a number")) return 2;
    const auto count = number_in(*json);
    if (!count || *count < 2 || *count != std::floor(*count)) {
      problems_.error(*json,
                      described(*json) + " is not a number of attempts; expected at least 2");
      return 2;
    }
    const auto most = std::to_string(kMaxAttempts);
    if (*count > kMaxAttempts) problems_.warn(*json, "gRPC makes " + most + " at most");
    const auto attempts = static_cast<int>(std::min<double>(*count, kMaxAttempts));
    policy.max_attempts(attempts);
    return attempts;
  }

  // Returns a duration of protobuf, which is in seconds: "1.5s". Returns nullopt and reports a
  // problem if it is not one, or is 0 and must not be.
  std::optional<Duration> duration(const JsonNode* json, bool may_be_zero = false) {
    if (!has_type(json, JsonType::String, "a duration such as \"1.5s\"")) return {};
    // Only digits and points precede the "s".
    const bool in_seconds = json->text.ends_with('s') &&
                            json->text.find_first_not_of("0123456789.") + 1 == json->text.size();
    const auto [value, problem] = duration_in(json->text);
    if (in_seconds && problem.empty() && (may_be_zero || value > 0s)) return value;
    problems_.error(*json,
                    described(*json) + " " +
                        (in_seconds && !problem.empty()
                             ? problem
                             : "is not a time in seconds, greater than 0, such as \"1.5s\""));
    return {};
  }

  // Sets which responses the policy retries, from a list of gRPC's status codes, such as
  // "UNAVAILABLE" or 14. A gRPC server sends the number of a code in the header grpc-status, and a
  // gateway sends its name in a JSON body. So each code is added to a rule for the header and to a
  // rule for the body. The equivalent HTTP statuses are retried as well. Does nothing if `json` is
  // nullptr (there is no list).
  void read_codes(const JsonNode* json, PolicyBuilder& policy, bool may_be_empty = false) {
    if (!has_type(json, JsonType::Array, "an array")) return;
    if (json->children.empty() && !may_be_empty) {
      problems_.error(*json, "an empty list retries nothing");
    }
    RetryOn on = retry_on_nothing();
    // Makes four rules. Rules 0 and 1 are for transient failures, in the header and in the body.
    // Rules 2 and 3 are the same for throttles, for which a policy may have longer waits.
    for (const auto as : {Class::Transient, Class::Throttle}) {
      auto& header = on.error_codes.emplace_back();
      header.source = ErrorRule::Source::Header;
      header.selector = "grpc-status";
      header.as = as;
      auto& body = on.error_codes.emplace_back();
      body.source = ErrorRule::Source::Json;
      body.selector = "/error/status";
      body.as = as;
      body.status.emplace().add(400, 599);
    }
    for (const auto* const item : json->children) {
      const auto* const code = code_in(*item);
      if (code == nullptr) continue;  // code_in has reported a problem
      // Unused places in `statuses` are 0, which `add` ignores.
      for (const auto status : code->statuses) {
        (status == 429 ? on.throttle_statuses : on.statuses).add(status);
      }
      on.transport |= static_cast<std::uint8_t>(code->transport);
      // Only RESOURCE_EXHAUSTED, whose main equivalent is 429, is a throttle.
      const bool is_throttle = code->statuses[0] == 429;
      auto& header_rule = on.error_codes[is_throttle ? 2 : 0];
      auto& body_rule = on.error_codes[is_throttle ? 3 : 1];
      const auto number = code - kCodes + 1;  // the first code has the number 1
      header_rule.in.push_back(std::to_string(number));
      body_rule.in.emplace_back(code->name);
    }
    // A rule without codes would apply to every code.
    std::erase_if(on.error_codes, [](const ErrorRule& rule) { return rule.in.empty(); });
    policy.retry_on(on);
  }
  // Returns the code with this name or number, or nullptr after reporting a problem.
  const Code* code_in(const JsonNode& json) {
    const auto number = json.is(JsonType::Number) ? number_in(json) : std::nullopt;
    const auto name = json.is(JsonType::String) ? to_lower(json.text) : std::string();
    for (const auto& code : kCodes) {
      if (number == &code - kCodes + 1 || name == to_lower(code.name)) return &code;
    }
    problems_.error(json, described(json) +
                              " is not a status code that can be retried; expected a name such as "
                              "\"UNAVAILABLE\", or 1 to 16");
    return nullptr;
  }

  Problems& problems_;
  PolicySetBuilder builder_;
  BudgetPolicy budget_;
  std::map<std::string, Position> names_;  // where each path was named
  bool has_default_ = false;
  int count_ = 0;
};

}  // namespace
}  // namespace detail::policy_file

Result<ImportedPolicies> import_grpc_service_config(std::string_view json,
                                                    const std::string& file_name) {
  using namespace policy_file;
  Problems problems(file_name);
  JsonTree document;
  read_json(json, document, problems);
  if (document.root == nullptr) return Error(Errc::InvalidRequest, error_lines(problems.take()));
  return GrpcImport(problems).run(*document.root);
}

}  // namespace httpretry
