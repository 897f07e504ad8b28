#include "error_codes.hpp"

#include "body_reader.hpp"
#include "lib/core/base/text.hpp"

#include <algorithm>
#include <array>

namespace httpretry::policy {
namespace {

using namespace std::chrono_literals;
using Family = ErrorRule::Family;
using Source = ErrorRule::Source;

constexpr std::size_t kMostOfCode = 64;  // enough for all known codes; keeps log lines short

// Lists of words separated by spaces. These two are from botocore and smithy.
constexpr std::string_view kAwsThrottle =
    "Throttling ThrottlingException ThrottledException RequestThrottledException RequestThrottled "
    "TooManyRequestsException ProvisionedThroughputExceededException "
    "TransactionInProgressException RequestLimitExceeded BandwidthLimitExceeded "
    "LimitExceededException SlowDown PriorRequestNotComplete EC2ThrottledException";
constexpr std::string_view kAwsTransient =
    "RequestTimeout RequestTimeoutException InternalError InternalFailure ServiceUnavailable "
    "IDPCommunicationError";

// Each of these classes has a list of words. A permanent reason takes precedence: if the quota is
// used up, a lower rate does not help.
constexpr std::array kWordClasses = {Class::Permanent, Class::Throttle, Class::Transient};
using ClassWords = std::array<std::string_view, kWordClasses.size()>;
constexpr ClassWords kGoogleWords = {
    "dailyLimitExceeded dailyLimitExceededUnreg quotaExceeded storageQuotaExceeded "
    "insufficientPermissions accessNotConfigured authError domainPolicy",
    "rateLimitExceeded userRateLimitExceeded sharingRateLimitExceeded jobRateLimitExceeded "
    "RATE_LIMIT_EXCEEDED",
    "backendError internalError"};
constexpr ClassWords kGoogleStatuses = {"", "RESOURCE_EXHAUSTED", "UNAVAILABLE"};
// The meaning of the words at a JSON pointer.
struct Codes {
  Family family;
  JsonPointer path;
  ClassWords words;
};
constexpr Codes kCodes[] = {
    {Family::Google, "/error/errors/*/reason", kGoogleWords},
    {Family::Google, "/error/details/*/reason", kGoogleWords},
    {Family::Google, "/error/status", kGoogleStatuses},
    // Methods that stream send an array, in which each message or error is an element.
    {Family::Google, "/*/error/errors/*/reason", kGoogleWords},
    {Family::Google, "/*/error/details/*/reason", kGoogleWords},
    {Family::Google, "/*/error/status", kGoogleStatuses},
    {Family::Github, "/errors/*/type", {"", "RATE_LIMITED", ""}},  // GraphQL
    {Family::Openai, "/error/code", {"insufficient_quota", "", ""}},
    {Family::Openai, "/error/type", {"insufficient_quota", "", ""}},
    // The spending limit of a month. Its type is that of a rate limit.
    {Family::Anthropic, "/error/details/error_code", {"enforced_spend_limit_reached", "", ""}},
    {Family::Anthropic, "/error/type", {"", "", "overloaded_error"}}};
// Further places in a body that rules read.
constexpr std::string_view kAwsJson[] = {"/code", "/__type"};
constexpr std::string_view kAwsXml[] = {"/ErrorResponse/Error/Code", "/Error/Code",
                                        "/Response/Errors/Error/Code"};
// The quotas in a google.rpc.QuotaFailure: "GenerateRequestsPerDayPerProjectPerModel-FreeTier".
constexpr std::string_view kGoogleQuotas[] = {"/error/details/*/violations/*/quotaId",
                                              "/*/error/details/*/violations/*/quotaId"};
constexpr std::string_view kGoogleDelays[] = {"/error/details/*/retryDelay",
                                              "/*/error/details/*/retryDelay"};
constexpr std::string_view kGithubMessage = "/message";

// The result of a rule that matches.
struct Verdict {
  Class cls = Class::Transient;
  std::string code{};
  std::optional<ServerDelay> server_delay{};  // from the body
};

// The values in a body that the rules read. The first lookup reads the values for all rules at
// once.
class BodyValues {
 public:
  BodyValues(const RetryOn& retry_on, std::string_view body) : retry_on_(retry_on), body_(body) {
    if (body_.starts_with("\xEF\xBB\xBF")) body_.remove_prefix(3);  // the byte order mark
    const auto start = body_.find_first_not_of(" \t\r\n");
    const auto first = start == std::string_view::npos ? '\0' : body_[start];
    if (first == '{' || first == '[') format_ = Source::Json;
    if (first == '<') format_ = Source::Xml;
  }
  [[nodiscard]] bool is_xml() const { return format_ == Source::Xml; }

  // Returns the first value at `path` that satisfies `fits`. Returns nullptr if no value does, or
  // if the body has another format.
  template <class Fits>
  const BodyValue* find(Source format, std::string_view path, Fits fits) {
    if (format_ != format) return nullptr;
    if (!values_) values_ = read();
    for (const auto& value : *values_) {
      if (value.path == path && fits(value)) return &value;
    }
    return nullptr;
  }

 private:
  // Reads the values at all paths that a rule may look up in a body of this format (JSON or XML),
  // in one pass over the body. The paths are those of the policy's custom rules and of the services
  // whose errors the library knows.
  [[nodiscard]] std::vector<BodyValue> read() const {
    std::vector<std::string_view> paths;  // "/error/code"; "*" stands for any element of an array
    for (const auto& rule : retry_on_.error_codes) {
      if (rule.family == Family::Custom && rule.source == format_) paths.push_back(rule.selector);
    }
    if (is_xml()) {  // of the known services, only AWS reports errors in XML
      paths.insert(paths.end(), std::begin(kAwsXml), std::end(kAwsXml));
      return xml_values(body_, paths);
    }
    // The value that says whether an operation is still pending, such as "/status".
    if (retry_on_.pending) paths.push_back(retry_on_.pending->json);
    for (const auto& codes : kCodes) paths.push_back(codes.path);
    paths.insert(paths.end(), std::begin(kGoogleQuotas), std::end(kGoogleQuotas));
    paths.insert(paths.end(), std::begin(kGoogleDelays), std::end(kGoogleDelays));
    paths.insert(paths.end(), {kAwsJson[0], kAwsJson[1], kGithubMessage});
    return json_values(body_, paths);
  }

  const RetryOn& retry_on_;
  std::string_view body_;
  std::optional<Source> format_;
  std::optional<std::vector<BodyValue>> values_;
};

// Returns whether `word` is one of the `words`, which are separated by spaces. False for "".
bool contains_word(std::string_view words, std::string_view word) {
  while (!words.empty() && !word.empty()) {
    const auto first = words.substr(0, words.find(' '));
    if (first == word) return true;
    words.remove_prefix(std::min(first.size() + 1, words.size()));
  }
  return false;
}

// Returns a predicate: whether a value is one of the words.
auto one_of(std::string_view words) {
  return [words](const BodyValue& value) { return contains_word(words, value.text); };
}

// Returns a predicate: whether a value is in the list. An empty list accepts everything.
auto one_of(const std::vector<std::string>& list) {
  return [&list](const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value.text) != list.end();
  };
}

bool is_string(const BodyValue& value) { return value.is_string; }

// Reduces "aws.protocoltests.restjson#FooError:http://internal.amazon.com/" to "FooError".
std::string_view trimmed_type(std::string_view type) {
  type = type.substr(0, type.find(':'));
  return type.substr(type.rfind('#') + 1);  // npos + 1 is 0
}

// Returns the error code of AWS in the headers or the body, or "" if there is none.
std::string_view aws_code(const ResponseHead& head, BodyValues& body) {
  if (const auto header = head.headers.get("x-amzn-query-error")) {
    return header->substr(0, header->find(';'));
  }
  if (const auto header = head.headers.get("x-amzn-errortype")) return trimmed_type(*header);
  for (const auto path : kAwsJson) {
    const auto* value = body.find(Source::Json, path, is_string);
    if (value != nullptr) return trimmed_type(value->text);
  }
  for (const auto path : kAwsXml) {
    if (const auto* value = body.find(Source::Xml, path, is_string)) return value->text;
  }
  return {};
}

// The functions from here to `custom` each apply a family of rules. They return nullopt if none of
// its rules matches.
std::optional<Verdict> aws(const ResponseHead& head, BodyValues& body) {
  // S3 reports some failures as a 200 whose body is an <Error>. No other success is read.
  if (head.status < 400 && !(head.status == 200 && body.is_xml())) return std::nullopt;
  const std::string code(aws_code(head, body));
  if (contains_word(kAwsThrottle, code)) return Verdict{.cls = Class::Throttle, .code = code};
  if (contains_word(kAwsTransient, code)) return Verdict{.cls = Class::Transient, .code = code};
  return std::nullopt;
}

// Returns whether the value is a Duration of proto3's JSON. It has only seconds; Go's durations,
// for which the parser is made, have other units as well.
bool is_proto_duration(const BodyValue& value) {
  const auto& text = value.text;
  return value.is_string && text.ends_with('s') &&
         text.find_first_not_of("0123456789.") == text.size() - 1 &&
         parse_go_duration(text).has_value();
}

// Returns the delay that a google.rpc.RetryInfo in the body asks for, or nullopt if it has none.
std::optional<ServerDelay> retry_info(BodyValues& body) {
  for (const auto path : kGoogleDelays) {
    const auto* value = body.find(Source::Json, path, is_proto_duration);
    if (value == nullptr) continue;
    ServerDelay delay(*parse_go_duration(value->text), ServerDelaySource::RetryInfo, value->text);
    delay.at_least = true;
    return delay;
  }
  return std::nullopt;
}

// Looks up the words of the family in the body. Those of the first path in kCodes take precedence.
std::optional<Verdict> by_codes(Family family, BodyValues& body) {
  for (const auto& codes : kCodes) {
    if (codes.family != family) continue;
    for (std::size_t i = 0; i < kWordClasses.size(); ++i) {
      const auto* value = body.find(Source::Json, codes.path, one_of(codes.words[i]));
      if (value != nullptr) return Verdict{.cls = kWordClasses[i], .code = value->text};
    }
  }
  return std::nullopt;
}

// Returns whether the value names the quota of a day, which a later attempt would exceed as well.
bool is_daily_quota(const BodyValue& value) {
  return value.text.find("PerDay") != std::string::npos ||
         value.text.find("Daily") != std::string::npos;
}

std::optional<Verdict> google(const ResponseHead& head, BodyValues& body) {
  if (head.status < 400) return std::nullopt;
  for (const auto path : kGoogleQuotas) {
    const auto* quota = body.find(Source::Json, path, is_daily_quota);
    if (quota != nullptr) return Verdict{.cls = Class::Permanent, .code = quota->text};
  }
  auto verdict = by_codes(Family::Google, body);
  if (verdict) verdict->server_delay = retry_info(body);
  return verdict;
}

// Recognizes GitHub's throttles: a 403 with Retry-After, with a quota that is used up, or with a
// message about the secondary limit; and with GraphQL, a 200 whose body has an error. A 429 is
// usually a throttle by its status, but the verdict adds the reason that reports show (`code`), and
// the delay for the secondary limit. Returns nullopt if nothing matches.
std::optional<Verdict> github(const ResponseHead& head, BodyValues& body) {
  if (head.status != 200 && head.status != 403 && head.status != 429) return std::nullopt;
  const auto used_up = head.headers.get("x-ratelimit-remaining") == "0";  // no requests left
  // The request that uses the quota up may itself succeed, so a 200 must also have an error.
  if (head.status == 200) return used_up ? by_codes(Family::Github, body) : std::nullopt;
  // Retry-After makes a 403 a throttle. With a 429 it says nothing, because any server may send it.
  constexpr std::array kRetryAfter = {ServerDelaySource::RetryAfter};
  constexpr bool kThrottled = false;  // has an effect only on other headers
  if (head.status == 403 && server_delay(head.headers, kRetryAfter, kThrottled, head.wall_now)) {
    return Verdict{.cls = Class::Throttle, .code = "retry-after"};
  }
  if (used_up) return Verdict{.cls = Class::Throttle, .code = "x-ratelimit-remaining 0"};
  // The secondary limit has no header, only a message: "You have exceeded a secondary rate limit".
  const auto names_secondary_limit = [](const BodyValue& message) {
    return to_lower(message.text).find("secondary rate") != std::string::npos;
  };
  if (!body.find(Source::Json, kGithubMessage, names_secondary_limit)) return std::nullopt;
  // GitHub's documentation: "wait for at least one minute before retrying".
  ServerDelay delay(60s, ServerDelaySource::SecondaryLimit, "secondary rate");
  delay.at_least = true;  // our own wait counts if it is longer
  return Verdict{.cls = Class::Throttle, .code = "secondary rate", .server_delay = delay};
}

// Reads the header `name`, in which the server says "true" or "false" about whether to retry.
std::optional<Verdict> by_header(const ResponseHead& head, std::string_view name) {
  if (head.status < 400) return std::nullopt;
  const auto header = head.headers.get(name);
  if (!header) return std::nullopt;
  const auto value = to_lower(*header);
  if (value != "true" && value != "false") return std::nullopt;
  const auto class_to_retry = head.status == 429 ? Class::Throttle : Class::Transient;
  return Verdict{.cls = value == "true" ? class_to_retry : Class::Permanent,
                 .code = std::string(name) + ": " + value};
}

// For OpenAI and Anthropic, whose clients are generated by the same tool.
std::optional<Verdict> by_header_or_codes(Family family, const ResponseHead& head,
                                          BodyValues& body) {
  if (auto verdict = by_header(head, "x-should-retry")) return verdict;
  return head.status < 400 ? std::nullopt : by_codes(family, body);
}

// Applies a rule of the policy file: looks up its selector, which names a header or a place in the
// body, and compares the values with its list.
std::optional<Verdict> custom(const ErrorRule& rule, const ResponseHead& head, BodyValues& body) {
  if (rule.status && !rule.status->contains(head.status)) return std::nullopt;
  const auto is_accepted = one_of(rule.in);
  if (rule.source != Source::Header) {
    const auto* value = body.find(rule.source, rule.selector, is_accepted);
    if (value == nullptr) return std::nullopt;
    return Verdict{.cls = rule.as, .code = value->text};
  }
  for (const auto header : head.headers) {
    if (!equal_ignoring_case(header.name, rule.selector)) continue;
    const BodyValue value{.path = {}, .text = std::string(header.value)};
    if (is_accepted(value)) return Verdict{.cls = rule.as, .code = value.text};
  }
  return std::nullopt;
}

// Returns nullopt if the rule does not match.
std::optional<Verdict> apply(const ErrorRule& rule, const ResponseHead& head, BodyValues& body) {
  switch (rule.family) {
    case Family::Aws: return aws(head, body);
    case Family::Google: return google(head, body);
    case Family::Github: return github(head, body);
    case Family::Openai:
    case Family::Anthropic: return by_header_or_codes(rule.family, head, body);
    case Family::Stripe: return by_header(head, "stripe-should-retry");
    case Family::Custom: return custom(rule, head, body);
  }
  return std::nullopt;
}

// Returns the value that makes the response pending; "" if the status alone does.
std::optional<std::string> pending_value(const PendingRule& rule, const ResponseHead& head,
                                         BodyValues& body) {
  if (!rule.statuses.contains(head.status)) return std::nullopt;
  if (rule.json.empty()) return std::string();
  const auto* value = body.find(Source::Json, rule.json, one_of(rule.in));
  return value == nullptr ? std::nullopt : std::optional(value->text);
}

// Makes a value from a server fit for a log line: printable ASCII of limited length.
std::string ascii(std::string_view text) {
  std::string kept(text.substr(0, kMostOfCode));
  for (char& c : kept) c = c < 0x20 || c > 0x7E ? '?' : c;
  return kept;
}

}  // namespace

// Classifies a response by the rules of the policy that read its headers and its body (`text`):
// first the rules for error codes, such as "SlowDown" of AWS, then the rule for pending responses.
// If a rule matches, stores it in `result` with its class and the server delay from the body, and
// returns true. Returns false if none matches; then the status decides.
bool classify_by_codes(const RetryOn& retry_on, const ResponseHead& head, std::string_view text,
                       Classified& result) {
  BodyValues body(retry_on, text);
  for (const auto& rule : retry_on.error_codes) {
    auto verdict = apply(rule, head, body);
    if (!verdict) continue;
    // Reports show these, for example as "error_codes: aws SlowDown".
    result.cls = verdict->cls;
    result.rule.kind = Rule::Kind::ErrorCode;
    result.rule.family = rule.family;
    result.rule.selector = rule.selector;
    result.rule.code = ascii(verdict->code);
    result.server_delay = std::move(verdict->server_delay);
    return true;
  }
  if (!retry_on.pending) return false;
  const auto value = pending_value(*retry_on.pending, head, body);
  if (!value) return false;
  result.cls = Class::Pending;
  result.rule.kind = Rule::Kind::Pending;
  result.rule.code = ascii(*value);  // such as "RUNNING"; empty if the status alone means pending
  return true;
}

}  // namespace httpretry::policy
