// gRPC's service config (https://github.com/grpc/grpc/blob/master/doc/service_config.md), and in it
// what A6 says of retries.
#include "lib/policy/import.hpp"
#include "lib/policy/policy_set_data.hpp"
#include "lib/policy/types.hpp"

#include <httpretry/http/url.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace httpretry {
namespace policy_file {
namespace {

using namespace std::chrono_literals;

// A status code, and the HTTP statuses that servers and gateways put in its place.
struct Code {
  std::string_view name;
  int number;
  std::array<int, 3> statuses;
};
constexpr Code kCodes[] = {
    {"CANCELLED", 1, {499, 0, 0}},
    {"UNKNOWN", 2, {500, 0, 0}},
    {"INVALID_ARGUMENT", 3, {400, 0, 0}},
    {"DEADLINE_EXCEEDED", 4, {504, 0, 0}},
    {"NOT_FOUND", 5, {404, 0, 0}},
    {"ALREADY_EXISTS", 6, {409, 0, 0}},
    {"PERMISSION_DENIED", 7, {403, 0, 0}},
    {"RESOURCE_EXHAUSTED", 8, {0, 0, 0}},  // 429: it throttles
    {"FAILED_PRECONDITION", 9, {400, 0, 0}},
    {"ABORTED", 10, {409, 0, 0}},
    {"OUT_OF_RANGE", 11, {400, 0, 0}},
    {"UNIMPLEMENTED", 12, {501, 0, 0}},
    {"INTERNAL", 13, {500, 0, 0}},
    {"UNAVAILABLE", 14, {502, 503, 504}},
    {"DATA_LOSS", 15, {500, 0, 0}},
    {"UNAUTHENTICATED", 16, {401, 0, 0}},
};
constexpr int kDeadlineExceeded = 4;
constexpr int kResourceExhausted = 8;
constexpr int kUnavailable = 14;
constexpr int kMostAttempts = 5;  // what gRPC's clients make at most, whatever is configured

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return result;
}

class GrpcImport {
 public:
  explicit GrpcImport(Problems& problems) : problems_(problems) {}

  Result<ImportedPolicies> run(const JsonNode& root) {
    if (expect(root, JsonNode::Type::Object, "an object", problems_)) {
      if (const auto* const throttling = root.find("retryThrottling")) read_throttling(*throttling);
      if (const auto* const configs = root.find("methodConfig")) {
        read_configs(*configs);
      } else {
        problems_.error(root, "missing key \"methodConfig\": there is nothing to carry over");
      }
      warn_of_others(root, {"methodConfig", "retryThrottling"});
    }
    if (!has_default_) builder_.fallback(PolicyBuilder().preset("none"));
    return imported(builder_, problems_);
  }

 private:
  void warn_of_others(const JsonNode& object, std::initializer_list<std::string_view> known) {
    for (const auto* const member : object.children) {
      const auto* const found = std::find(known.begin(), known.end(), member->key);
      if (found == known.end()) problems_.warn(*member, "is not carried over");
    }
  }

  void read_throttling(const JsonNode& json) {
    if (!expect(json, JsonNode::Type::Object, "an object", problems_)) return;
    const auto most = number(json, "maxTokens", 1000);
    const auto ratio = number(json, "tokenRatio", 1000);
    warn_of_others(json, {"maxTokens", "tokenRatio"});
    if (!most || !ratio) return;
    budget_.kind = BudgetPolicy::Kind::Grpc;
    budget_.capacity = static_cast<std::int64_t>(*most * 1000);
    // gRPC, too, looks at three decimal places.
    budget_.refill = static_cast<std::int64_t>(std::floor(*ratio * 1000 + 1e-9));
    if (std::abs(static_cast<double>(budget_.refill) - *ratio * 1000) > 1e-6) {
      problems_.warn(*json.find("tokenRatio"), "counts to three decimal places, as in gRPC");
    }
  }
  // A number over 0 and up to `most`.
  std::optional<double> number(const JsonNode& object, std::string_view key, double most) {
    const auto* const json = member(object, key);
    if (json == nullptr || !expect(*json, JsonNode::Type::Number, "a number", problems_)) return {};
    const auto value = number_in(*json);
    if (value && *value > 0 && *value <= most) return value;
    problems_.error(*json, described(*json) + " is out of range: over 0, " +
                               std::to_string(static_cast<int>(most)) + " at most");
    return {};
  }
  const JsonNode* member(const JsonNode& object, std::string_view key) {
    const auto* const json = object.find(key);
    if (json == nullptr) problems_.error(object, "missing key " + quoted_text(key));
    return json;
  }

  void read_configs(const JsonNode& json) {
    if (!expect(json, JsonNode::Type::Array, "an array", problems_)) return;
    for (const auto* const config : json.children) {
      if (expect(*config, JsonNode::Type::Object, "an object", problems_)) read_config(*config);
    }
  }

  void read_config(const JsonNode& json) {
    PolicyBuilder policy;
    if (const auto* const retry = json.find("retryPolicy")) {
      policy.preset("grpc");
      read_retry(*retry, policy);
    } else {
      policy.preset("none");
    }
    if (const auto* const timeout = json.find("timeout")) {
      if (const auto limit = duration(*timeout)) policy.max_elapsed_time(*limit);
    }
    if (const auto* const hedging = json.find("hedgingPolicy")) {
      problems_.warn(*hedging, "hedging is not carried over: these methods are sent once");
    }
    warn_of_others(json, {"name", "retryPolicy", "timeout", "hedgingPolicy"});
    read_names(json, policy);
  }

  void read_names(const JsonNode& config, const PolicyBuilder& policy) {
    const auto* const names = config.find("name");
    if (names == nullptr) {
      problems_.warn(config, "it has no \"name\", so it is of no method");
      return;
    }
    if (!expect(*names, JsonNode::Type::Array, "an array", problems_)) return;
    const auto policy_name = "methodConfig-" + std::to_string(count_++);
    auto used = false;
    for (const auto* const name : names->children) {
      if (expect(*name, JsonNode::Type::Object, "an object", problems_)) {
        used = read_name(*name, policy_name) || used;
      }
    }
    if (used) builder_.policy(policy_name, policy);
  }
  bool read_name(const JsonNode& json, const std::string& policy) {
    warn_of_others(json, {"service", "method"});
    const auto service = text(json, "service");
    const auto method = text(json, "method");
    if (!service || !method) return false;
    const auto all = service->empty();
    if (all && !method->empty()) {
      problems_.error(json, "a method without its service");
      return false;
    }
    const auto path = all ? std::string()
                      : method->empty()
                          ? "/" + percent_encode(*service) + "/*"
                          : "/" + percent_encode(*service) + "/" + percent_encode(*method);
    if (const auto [before, fresh] = names_.try_emplace(path, &json); !fresh) {
      problems_.error(json, "it is named at line " + std::to_string(before->second->position.line) +
                                ", column " + std::to_string(before->second->position.column) +
                                " too");
      return false;
    }
    if (all) {
      has_default_ = true;
      builder_.fallback(policy);
      return true;
    }
    EndpointPattern pattern;
    pattern.path = path;
    builder_.endpoint(pattern, policy, *service + (method->empty() ? "" : "/" + *method));
    return true;
  }
  // Empty where it is left out; nothing, and a problem, where it is no text.
  std::optional<std::string> text(const JsonNode& object, std::string_view key) {
    const auto* const json = object.find(key);
    if (json == nullptr) return std::string();
    if (!expect(*json, JsonNode::Type::String, "a string", problems_)) return std::nullopt;
    return std::string(json->text);
  }

  void read_retry(const JsonNode& json, PolicyBuilder& policy) {
    if (!expect(json, JsonNode::Type::Object, "an object", problems_)) return;
    read_attempts(json, policy);
    read_backoff(json, policy);
    read_codes(json, policy);
    if (const auto* const timeout = json.find("perAttemptRecvTimeout")) {
      if (const auto limit = duration(*timeout)) policy.attempt_timeout(*limit);
    }
    warn_of_others(json, {"maxAttempts", "initialBackoff", "maxBackoff", "backoffMultiplier",
                          "retryableStatusCodes", "perAttemptRecvTimeout"});
    policy.repeat(Repeat::Always).budget(budget_);
    ServerDelayPolicy delay;
    delay.headers = {ServerDelaySource::GrpcRetryPushback};
    delay.combine = ServerDelayPolicy::Combine::Server;
    delay.max = kForever;
    policy.server_delay(delay);
  }

  void read_attempts(const JsonNode& json, PolicyBuilder& policy) {
    const auto* const attempts = member(json, "maxAttempts");
    if (attempts == nullptr || !expect(*attempts, JsonNode::Type::Number, "a number", problems_))
      return;
    const auto count = number_in(*attempts);
    if (!count || *count < 2 || *count != std::floor(*count)) {
      problems_.error(*attempts, described(*attempts) + " is not a number of attempts: at least 2");
      return;
    }
    const auto most = std::to_string(kMostAttempts);
    if (*count > kMostAttempts) problems_.warn(*attempts, "gRPC makes " + most + " at most");
    policy.max_attempts(static_cast<int>(std::min<double>(*count, kMostAttempts)));
  }

  void read_backoff(const JsonNode& json, PolicyBuilder& policy) {
    const auto* const first = member(json, "initialBackoff");
    const auto* const last = member(json, "maxBackoff");
    const auto initial = first == nullptr ? std::nullopt : duration(*first);
    const auto most = last == nullptr ? std::nullopt : duration(*last);
    auto multiplier = number(json, "backoffMultiplier", 1e6);
    if (!initial || !most || !multiplier) return;
    if (*multiplier < 1) {
      problems_.warn(*json.find("backoffMultiplier"), "waits cannot shrink here: 1 is taken");
      multiplier = 1;
    }
    if (*initial > *most) problems_.warn(*first, "is over maxBackoff, so every wait is maxBackoff");
    Backoff backoff;
    backoff.jitter = Backoff::Jitter::Range;
    backoff.low = 0.8;
    backoff.high = 1.2;
    backoff.initial = std::min(*initial, *most);
    backoff.max_interval = *most;
    backoff.multiplier = *multiplier;
    policy.backoff(backoff);
  }
  // "1.5s": protobuf's durations are seconds.
  std::optional<Duration> duration(const JsonNode& json) {
    if (!expect(json, JsonNode::Type::String, "a duration such as \"1.5s\"", problems_)) return {};
    const auto seconds = json.text.ends_with('s') &&
                         json.text.find_first_not_of("0123456789.") + 1 == json.text.size();
    const auto [value, problem] = duration_in(json.text);
    if (seconds && problem.empty() && value > 0s) return value;
    problems_.error(json,
                    described(json) + " " +
                        (seconds && !problem.empty() ? problem
                                                     : "is not a time in seconds, over 0, such "
                                                       "as \"1.5s\""));
    return {};
  }

  void read_codes(const JsonNode& json, PolicyBuilder& policy) {
    const auto* const codes = member(json, "retryableStatusCodes");
    if (codes == nullptr || !expect(*codes, JsonNode::Type::Array, "an array", problems_)) return;
    if (codes->children.empty()) problems_.error(*codes, "an empty list retries nothing");
    RetryOn on;
    on.statuses = on.throttle_statuses = {};
    on.error_codes.clear();
    on.transport = 0;
    std::vector<const Code*> transient;
    std::vector<const Code*> throttle;
    for (const auto* const one : codes->children) {
      const auto* const code = code_in(*one);
      if (code == nullptr) continue;
      (code->number == kResourceExhausted ? throttle : transient).push_back(code);
      for (const auto status : code->statuses) on.statuses.add(status);
      on.transport |= transport_of(code->number);
      if (is_throttled(code->number)) on.throttle_statuses.add(429);
    }
    add_rules(transient, Class::Transient, on.error_codes);
    add_rules(throttle, Class::Throttle, on.error_codes);
    policy.retry_on(on);
  }
  static bool is_throttled(int number) {
    return number == kResourceExhausted || number == kUnavailable;
  }
  static std::uint8_t transport_of(int number) {
    constexpr auto kTimeout = 1U << static_cast<unsigned>(TransportKind::Timeout);
    if (number == kDeadlineExceeded) return kTimeout;
    return number == kUnavailable ? static_cast<std::uint8_t>(~kTimeout) : std::uint8_t{0};
  }
  const Code* code_in(const JsonNode& json) {
    const auto* found = std::end(kCodes);
    if (json.is(JsonNode::Type::Number)) {
      const auto number = number_in(json);
      found = std::find_if(std::begin(kCodes), std::end(kCodes),
                           [&](const Code& code) { return number == code.number; });
    } else if (json.is(JsonNode::Type::String)) {
      const auto name = upper(json.text);
      found = std::find_if(std::begin(kCodes), std::end(kCodes),
                           [&](const Code& code) { return name == code.name; });
    }
    if (found != std::end(kCodes)) return found;
    problems_.error(json, described(json) +
                              " is not a status code that can be retried: a name such "
                              "as \"UNAVAILABLE\", or 1 to 16");
    return nullptr;
  }
  static void add_rules(const std::vector<const Code*>& codes, Class as,
                        std::vector<ErrorRule>& rules) {
    if (codes.empty()) return;
    ErrorRule header;
    header.source = ErrorRule::Source::Header;
    header.selector = "grpc-status";
    header.as = as;
    ErrorRule body;
    body.source = ErrorRule::Source::Json;
    body.selector = "/error/status";
    body.as = as;
    body.status.emplace().add(400, 599);
    for (const auto* const code : codes) {
      header.in.push_back(std::to_string(code->number));
      body.in.emplace_back(code->name);
    }
    rules.push_back(std::move(header));
    rules.push_back(std::move(body));
  }

  Problems& problems_;
  PolicySetBuilder builder_;
  BudgetPolicy budget_;
  std::map<std::string, const JsonNode*> names_;
  bool has_default_ = false;
  int count_ = 0;
};

}  // namespace
}  // namespace policy_file

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
