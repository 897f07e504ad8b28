#include "lib/retry/error_codes.hpp"

#include "lib/http/text.hpp"

#include <algorithm>
#include <array>

namespace httpretry::policy {
namespace {

using namespace std::chrono_literals;
using Family = ErrorRule::Family;

// Lists of words, separated by spaces. Botocore's and smithy's lists: throttling, transient.
constexpr std::string_view kAwsThrottle =
    "Throttling ThrottlingException ThrottledException RequestThrottledException RequestThrottled "
    "TooManyRequestsException ProvisionedThroughputExceededException "
    "TransactionInProgressException "
    "RequestLimitExceeded BandwidthLimitExceeded LimitExceededException SlowDown "
    "PriorRequestNotComplete EC2ThrottledException";
constexpr std::string_view kAwsTransient =
    "RequestTimeout RequestTimeoutException InternalError InternalFailure ServiceUnavailable "
    "IDPCommunicationError";
constexpr std::string_view kGooglePermanent =
    "dailyLimitExceeded dailyLimitExceededUnreg quotaExceeded storageQuotaExceeded "
    "insufficientPermissions accessNotConfigured authError domainPolicy";
constexpr std::string_view kGoogleThrottle =
    "rateLimitExceeded userRateLimitExceeded sharingRateLimitExceeded jobRateLimitExceeded "
    "RATE_LIMIT_EXCEEDED";
constexpr std::string_view kGoogleTransient = "backendError internalError";

// Where the codes stand in a body, by priority.
constexpr std::string_view kAwsJson[] = {"/code", "/__type"};
constexpr std::string_view kAwsXml[] = {"/ErrorResponse/Error/Code", "/Error/Code",
                                        "/Response/Errors/Error/Code"};
constexpr std::string_view kGoogleReason = "/error/errors/*/reason";
constexpr std::string_view kGoogleDetail = "/error/details/*/reason";
constexpr std::string_view kGoogleDelay = "/error/details/*/retryDelay";
constexpr std::string_view kGoogleStatus = "/error/status";
constexpr std::string_view kGoogleJson[] = {kGoogleReason, kGoogleDetail, kGoogleDelay,
                                            kGoogleStatus};
constexpr std::string_view kGithubMessage = "/message";
constexpr std::string_view kGithubType = "/errors/*/type";  // of GraphQL
constexpr std::string_view kGithubJson[] = {kGithubMessage, kGithubType};
constexpr std::string_view kOpenaiJson[] = {"/error/code", "/error/type"};

Paths json_paths(Family family) {
  switch (family) {
    case Family::Aws: return kAwsJson;
    case Family::Google: return kGoogleJson;
    case Family::Github: return kGithubJson;
    case Family::Openai: return kOpenaiJson;
    case Family::Stripe:
    case Family::Custom: break;
  }
  return {};
}

bool contains_ignoring_case(std::string_view text, std::string_view word) {
  for (; text.size() >= word.size(); text.remove_prefix(1)) {
    if (equal_ignoring_case(text.substr(0, word.size()), word)) return true;
  }
  return false;
}

bool contains_word(std::string_view words, std::string_view word) {
  while (!words.empty() && !word.empty()) {
    const auto first = words.substr(0, words.find(' '));
    if (first == word) return true;
    words.remove_prefix(std::min(first.size() + 1, words.size()));
  }
  return false;
}

auto one_of(std::string_view words) {
  return [words](const BodyValue& value) { return contains_word(words, value.text); };
}

// An empty list accepts everything.
auto one_of(const std::vector<std::string>& list) {
  return [&list](const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value.text) != list.end();
  };
}

bool is_string(const BodyValue& value) { return value.is_string; }

// "aws.protocoltests.restjson#FooError:http://internal.amazon.com/" is FooError.
std::string_view trimmed_type(std::string_view type) {
  type = type.substr(0, type.find(':'));
  return type.substr(type.rfind('#') + 1);  // npos + 1 is 0
}

std::string_view aws_code(const ResponseHead& head, BodyValues& body) {
  if (const auto header = head.headers.get("x-amzn-query-error")) {
    return header->substr(0, header->find(';'));
  }
  if (const auto header = head.headers.get("x-amzn-errortype")) return trimmed_type(*header);
  if (const auto* value = body.find_json(kAwsJson, is_string)) return trimmed_type(value->text);
  if (const auto* value = body.find_xml(kAwsXml, is_string)) return value->text;
  return {};
}

std::optional<Verdict> aws(const ResponseHead& head, BodyValues& body) {
  // S3 sends some failures with a 200 whose body is an <Error>; no other success is read.
  if (head.status < 400 && !(head.status == 200 && body.is_xml())) return std::nullopt;
  const auto code = aws_code(head, body);
  if (contains_word(kAwsThrottle, code)) return Verdict{Class::Throttle, std::string(code), {}};
  if (contains_word(kAwsTransient, code)) return Verdict{Class::Transient, std::string(code), {}};
  return std::nullopt;
}

// A Duration in proto3's JSON: seconds alone, where Go's has other units too.
bool is_proto_duration(const BodyValue& value) {
  const auto& text = value.text;
  return value.is_string && text.ends_with('s') &&
         text.find_first_not_of("0123456789.") == text.size() - 1 &&
         parse_go_duration(text).has_value();
}

std::optional<ServerDelay> retry_info(BodyValues& body) {
  const auto* value = body.find_json({&kGoogleDelay, 1}, is_proto_duration);
  if (value == nullptr) return std::nullopt;
  ServerDelay delay(*parse_go_duration(value->text), ServerDelaySource::RetryInfo, value->text);
  delay.at_least = true;
  return delay;
}

std::optional<Verdict> google(const ResponseHead& head, BodyValues& body) {
  if (head.status < 400) return std::nullopt;
  for (const auto& path : {kGoogleReason, kGoogleDetail}) {
    // A permanent reason goes before the others: the quota is gone, whatever the rate is.
    for (const auto& [words, cls] : {std::pair(kGooglePermanent, Class::Permanent),
                                     std::pair(kGoogleThrottle, Class::Throttle),
                                     std::pair(kGoogleTransient, Class::Transient)}) {
      const auto* value = body.find_json({&path, 1}, one_of(words));
      if (value != nullptr) return Verdict{cls, value->text, retry_info(body)};
    }
  }
  const auto* status = body.find_json({&kGoogleStatus, 1}, is_string);
  if (status == nullptr) return std::nullopt;
  const bool exhausted = status->text == "RESOURCE_EXHAUSTED";
  if (!exhausted && status->text != "UNAVAILABLE") return std::nullopt;
  return Verdict{exhausted ? Class::Throttle : Class::Transient, status->text, retry_info(body)};
}

bool mentions_secondary_rate(const BodyValue& message) {
  return contains_ignoring_case(message.text, "secondary rate");
}

std::optional<Verdict> github(const ResponseHead& head, BodyValues& body) {
  const auto used_up = head.headers.get("x-ratelimit-remaining") == "0";
  if (head.status == 200 && used_up) {  // GraphQL's status is always 200
    const auto* type = body.find_json({&kGithubType, 1}, one_of("RATE_LIMITED"));
    return type == nullptr ? std::nullopt : std::optional(Verdict{Class::Throttle, type->text, {}});
  }
  if (head.status != 403 && head.status != 429) return std::nullopt;
  constexpr std::array kRetryAfter = {ServerDelaySource::RetryAfter};
  if (server_delay(head.headers, kRetryAfter, false, head.wall_now)) {
    return Verdict{Class::Throttle, "retry-after", {}};
  }
  if (used_up) return Verdict{Class::Throttle, "x-ratelimit-remaining 0", {}};
  if (body.find_json({&kGithubMessage, 1}, mentions_secondary_rate) == nullptr) return std::nullopt;
  // GitHub's documentation: "wait for at least one minute before retrying".
  ServerDelay delay(60s, ServerDelaySource::SecondaryLimit, "secondary rate");
  delay.at_least = true;
  return Verdict{Class::Throttle, "secondary rate", delay};
}

// A header that says whether to retry.
std::optional<Verdict> advice(const ResponseHead& head, std::string_view name) {
  if (head.status < 400) return std::nullopt;
  const auto value = to_lower(head.headers.get(name).value_or(""));
  if (value != "true" && value != "false") return std::nullopt;
  const auto retry = head.status == 429 ? Class::Throttle : Class::Transient;
  const auto cls = value == "true" ? retry : Class::Permanent;
  return Verdict{cls, std::string(name) + ": " + value, {}};
}

std::optional<Verdict> openai(const ResponseHead& head, BodyValues& body) {
  if (auto verdict = advice(head, "x-should-retry")) return verdict;
  if (head.status < 400) return std::nullopt;
  const auto* value = body.find_json(kOpenaiJson, one_of("insufficient_quota"));
  if (value == nullptr) return std::nullopt;
  return Verdict{Class::Permanent, value->text, {}};
}

std::optional<Verdict> custom(const ErrorRule& rule, const ResponseHead& head, BodyValues& body) {
  if (rule.status && !rule.status->contains(head.status)) return std::nullopt;
  const auto accepted = one_of(rule.in);
  if (rule.source == ErrorRule::Source::Header) {
    for (const auto header : head.headers) {
      BodyValue value;
      if (!equal_ignoring_case(header.name, rule.selector)) continue;
      value.text = header.value;
      if (accepted(value)) return Verdict{rule.as, value.text, {}};
    }
    return std::nullopt;
  }
  const std::string_view path = rule.selector;
  const auto* value = rule.source == ErrorRule::Source::Json ? body.find_json({&path, 1}, accepted)
                                                             : body.find_xml({&path, 1}, accepted);
  if (value == nullptr) return std::nullopt;
  return Verdict{rule.as, value->text, {}};
}

}  // namespace

BodyValues::BodyValues(const RetryOn& retry_on, std::string_view body)
    : retry_on_(retry_on), body_(body) {
  if (body_.starts_with("\xEF\xBB\xBF")) body_.remove_prefix(3);
  const auto start = body_.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos) first_ = body_[start];
}

void BodyValues::read() {
  if (done_) return;
  done_ = true;
  const auto json = is_json();
  for (const auto& rule : retry_on_.error_codes) {
    const auto builtin = json ? json_paths(rule.family) : Paths{};
    paths_.insert(paths_.end(), builtin.begin(), builtin.end());
    if (!json && rule.family == Family::Aws) {
      paths_.insert(paths_.end(), std::begin(kAwsXml), std::end(kAwsXml));
    }
    const auto wanted = json ? ErrorRule::Source::Json : ErrorRule::Source::Xml;
    if (rule.family == Family::Custom && rule.source == wanted) paths_.push_back(rule.selector);
  }
  if (json && retry_on_.pending && !retry_on_.pending->json.empty()) {
    paths_.push_back(retry_on_.pending->json);
  }
  values_ = json ? json_values(body_, paths_) : xml_values(body_, paths_);
}

std::optional<Verdict> apply(const ErrorRule& rule, const ResponseHead& head, BodyValues& body) {
  switch (rule.family) {
    case Family::Aws: return aws(head, body);
    case Family::Google: return google(head, body);
    case Family::Github: return github(head, body);
    case Family::Openai: return openai(head, body);
    case Family::Stripe: return advice(head, "stripe-should-retry");
    case Family::Custom: return custom(rule, head, body);
  }
  return std::nullopt;
}

std::optional<std::string> pending_value(const PendingRule& rule, const ResponseHead& head,
                                         BodyValues& body) {
  if (!rule.statuses.contains(head.status)) return std::nullopt;
  if (rule.json.empty()) return std::string();
  const std::string_view path = rule.json;
  const auto* value = body.find_json({&path, 1}, one_of(rule.in));
  if (value == nullptr) return std::nullopt;
  return value->text;
}

namespace {

// "application/vnd.openxmlformats-officedocument.wordprocessingml.document" is none.
bool is_xml_type(std::string_view type) {
  const auto name = to_lower(trimmed(type.substr(0, type.find(';'))));
  return name == "application/xml" || name == "text/xml" || name.ends_with("+xml");
}

bool looks_into(const ErrorRule& rule, int status, const Headers& headers, std::string_view type) {
  const bool json = type.empty() || contains_ignoring_case(type, "json");
  const bool xml = type.empty() || is_xml_type(type);
  switch (rule.family) {
    case Family::Aws: return status == 200 && !type.empty() && xml;
    case Family::Github:
      return status == 200 && json && headers.get("x-ratelimit-remaining") == "0";
    case Family::Custom: break;
    default: return false;
  }
  if (rule.status && !rule.status->contains(status)) return false;
  if (rule.source == ErrorRule::Source::Header) return headers.contains(rule.selector);
  return rule.source == ErrorRule::Source::Json ? json : xml;
}

}  // namespace

bool looks_into(const RetryOn& retry_on, int status, const Headers& headers) {
  if (retry_on.statuses.contains(status) || retry_on.throttle_statuses.contains(status))
    return true;
  const auto type = headers.get("Content-Type").value_or("");
  const auto& pending = retry_on.pending;
  if (pending && pending->statuses.contains(status)) {
    if (pending->json.empty() || type.empty() || contains_ignoring_case(type, "json")) return true;
  }
  return std::any_of(
      retry_on.error_codes.begin(), retry_on.error_codes.end(),
      [&](const ErrorRule& rule) { return looks_into(rule, status, headers, type); });
}

}  // namespace httpretry::policy
