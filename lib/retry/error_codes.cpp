#include "lib/retry/error_codes.hpp"

#include "lib/http/text.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace httpretry::policy {
namespace {

using namespace std::chrono_literals;
using Family = ErrorRule::Family;
using Paths = std::span<const std::string_view>;

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

constexpr std::string_view kAwsCode = "/code";
constexpr std::string_view kAwsType = "/__type";
constexpr std::string_view kErrorCode = "/error/code";
constexpr std::string_view kErrorType = "/error/type";
constexpr std::string_view kGoogleReason = "/error/errors/*/reason";
constexpr std::string_view kGoogleDetail = "/error/details/*/reason";
constexpr std::string_view kGoogleDelay = "/error/details/*/retryDelay";
constexpr std::string_view kGoogleStatus = "/error/status";
constexpr std::string_view kMessage = "/message";
constexpr std::string_view kGraphqlType = "/errors/*/type";
constexpr std::string_view kS3Error = "/Error/Code";
constexpr std::string_view kAwsElements[] = {"/ErrorResponse/Error/Code", kS3Error,
                                             "/Response/Errors/Error/Code"};

Paths json_paths(Family family) {
  static constexpr std::string_view kAws[] = {kAwsCode, kAwsType};
  static constexpr std::string_view kGoogle[] = {kGoogleReason, kGoogleDetail, kGoogleDelay,
                                                 kGoogleStatus};
  static constexpr std::string_view kGithub[] = {kMessage, kGraphqlType};
  static constexpr std::string_view kOpenai[] = {kErrorCode, kErrorType};
  switch (family) {
    case Family::Aws: return kAws;
    case Family::Google: return kGoogle;
    case Family::Github: return kGithub;
    case Family::Openai: return kOpenai;
    case Family::Stripe:
    case Family::Custom: break;
  }
  return {};
}

bool contains_word(std::string_view words, std::string_view word) {
  while (!words.empty() && !word.empty()) {
    const auto first = words.substr(0, words.find(' '));
    if (first == word) return true;
    words.remove_prefix(std::min(first.size() + 1, words.size()));
  }
  return false;
}

bool contains_ignoring_case(std::string_view text, std::string_view word) {
  for (; text.size() >= word.size(); text.remove_prefix(1)) {
    if (equal_ignoring_case(text.substr(0, word.size()), word)) return true;
  }
  return false;
}

bool is_string(const BodyValue& value) { return value.is_string; }

// "aws.protocoltests.restjson#FooError:http://internal.amazon.com/" is FooError.
std::string_view trimmed_type(std::string_view type) {
  type = type.substr(0, type.find(':'));
  const auto hash = type.rfind('#');
  return hash == std::string_view::npos ? type : type.substr(hash + 1);
}

std::string_view aws_code(const Answer& answer, BodyValues& body) {
  if (const auto field = answer.headers.get("x-amzn-query-error")) {
    return field->substr(0, field->find(';'));
  }
  if (const auto field = answer.headers.get("x-amzn-errortype")) return trimmed_type(*field);
  if (body.is_json()) {
    for (const auto path : {kAwsCode, kAwsType}) {
      if (const auto* value = body.find(path, is_string)) return trimmed_type(value->text);
    }
  }
  if (body.is_xml()) {
    for (const auto path : kAwsElements) {
      if (const auto* value = body.find(path, is_string)) return value->text;
    }
  }
  return {};
}

std::optional<Verdict> aws(const Answer& answer, BodyValues& body) {
  // S3 sends some failures with a 200 whose body is an <Error>; no other success is looked into.
  if (answer.status < 400 && !(answer.status == 200 && body.is_xml())) return std::nullopt;
  const auto code = aws_code(answer, body);
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
  const auto* value = body.find(kGoogleDelay, is_proto_duration);
  if (value == nullptr) return std::nullopt;
  ServerDelay hint(*parse_go_duration(value->text), HintSource::RetryInfo, value->text);
  hint.at_least = true;
  return hint;
}

std::optional<Verdict> google(const Answer& answer, BodyValues& body) {
  if (answer.status < 400 || !body.is_json()) return std::nullopt;
  for (const auto path : {kGoogleReason, kGoogleDetail}) {
    // A permanent reason beats its neighbours: the quota is gone, whatever the rate is.
    for (const auto& [words, cls] : {std::pair(kGooglePermanent, Class::Permanent),
                                     std::pair(kGoogleThrottle, Class::Throttle),
                                     std::pair(kGoogleTransient, Class::Transient)}) {
      const auto* value = body.find(path, [known = words](const BodyValue& found) {
        return contains_word(known, found.text);
      });
      if (value != nullptr) return Verdict{cls, value->text, retry_info(body)};
    }
  }
  const auto* status = body.find(kGoogleStatus, is_string);
  if (status == nullptr) return std::nullopt;
  const bool exhausted = status->text == "RESOURCE_EXHAUSTED";
  if (!exhausted && status->text != "UNAVAILABLE") return std::nullopt;
  return Verdict{exhausted ? Class::Throttle : Class::Transient, status->text, retry_info(body)};
}

bool mentions_secondary_rate(const BodyValue& message) {
  return contains_ignoring_case(message.text, "secondary rate");
}

std::optional<Verdict> github(const Answer& answer, BodyValues& body) {
  const auto remaining = answer.headers.get("x-ratelimit-remaining");
  const auto used_up = remaining && *remaining == "0";
  // GraphQL answers 200 to everything.
  if (answer.status == 200 && used_up && body.is_json()) {
    const auto* type = body.find(
        kGraphqlType, [](const BodyValue& found) { return found.text == "RATE_LIMITED"; });
    return type == nullptr ? std::nullopt : std::optional(Verdict{Class::Throttle, type->text, {}});
  }
  if (answer.status != 403 && answer.status != 429) return std::nullopt;
  constexpr std::array kRetryAfter = {HintSource::RetryAfter};
  if (server_delay(answer.headers, kRetryAfter, false, answer.wall_now)) {
    return Verdict{Class::Throttle, "retry-after", {}};
  }
  if (used_up) return Verdict{Class::Throttle, "x-ratelimit-remaining 0", {}};
  if (!body.is_json() || body.find(kMessage, mentions_secondary_rate) == nullptr) {
    return std::nullopt;
  }
  // GitHub: "wait for at least one minute".
  ServerDelay hint(60s, HintSource::SecondaryLimit, "secondary rate");
  hint.at_least = true;
  return Verdict{Class::Throttle, "secondary rate", hint};
}

std::optional<Verdict> advice(const Answer& answer, std::string_view name) {
  if (answer.status < 400) return std::nullopt;
  const auto field = answer.headers.get(name);
  if (!field) return std::nullopt;
  if (equal_ignoring_case(*field, "false")) {
    return Verdict{Class::Permanent, std::string(name) + ": false", {}};
  }
  if (!equal_ignoring_case(*field, "true")) return std::nullopt;
  const auto cls = answer.status == 429 ? Class::Throttle : Class::Transient;
  return Verdict{cls, std::string(name) + ": true", {}};
}

std::optional<Verdict> openai(const Answer& answer, BodyValues& body) {
  if (auto verdict = advice(answer, "x-should-retry")) return verdict;
  if (answer.status < 400 || !body.is_json()) return std::nullopt;
  for (const auto path : {kErrorCode, kErrorType}) {
    const auto* value =
        body.find(path, [](const BodyValue& found) { return found.text == "insufficient_quota"; });
    if (value != nullptr) return Verdict{Class::Permanent, value->text, {}};
  }
  return std::nullopt;
}

bool accepts(const std::vector<std::string>& in, std::string_view text) {
  return in.empty() || std::find(in.begin(), in.end(), text) != in.end();
}

std::optional<Verdict> custom(const ErrorRule& rule, const Answer& answer, BodyValues& body) {
  if (rule.status && !rule.status->contains(answer.status)) return std::nullopt;
  if (rule.source == ErrorRule::Source::Header) {
    for (const auto header : answer.headers) {
      if (equal_ignoring_case(header.name, rule.selector) && accepts(rule.in, header.value)) {
        return Verdict{rule.as, std::string(header.value), {}};
      }
    }
    return std::nullopt;
  }
  const auto readable = rule.source == ErrorRule::Source::Json ? body.is_json() : body.is_xml();
  if (!readable) return std::nullopt;
  const auto* value = body.find(
      rule.selector, [&](const BodyValue& found) { return accepts(rule.in, found.text); });
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
      paths_.insert(paths_.end(), std::begin(kAwsElements), std::end(kAwsElements));
    }
    const auto wanted = json ? ErrorRule::Source::Json : ErrorRule::Source::Xml;
    if (rule.family == Family::Custom && rule.source == wanted) paths_.push_back(rule.selector);
  }
  if (json && retry_on_.pending && !retry_on_.pending->json.empty()) {
    paths_.push_back(retry_on_.pending->json);
  }
  values_ = json ? json_values(body_, paths_) : xml_values(body_, paths_);
}

std::optional<Verdict> apply(const ErrorRule& rule, const Answer& answer, BodyValues& body) {
  switch (rule.family) {
    case Family::Aws: return aws(answer, body);
    case Family::Google: return google(answer, body);
    case Family::Github: return github(answer, body);
    case Family::Openai: return openai(answer, body);
    case Family::Stripe: return advice(answer, "stripe-should-retry");
    case Family::Custom: return custom(rule, answer, body);
  }
  return std::nullopt;
}

std::optional<std::string> pending_value(const PendingRule& rule, const Answer& answer,
                                         BodyValues& body) {
  if (!rule.statuses.contains(answer.status)) return std::nullopt;
  if (rule.json.empty()) return std::string();
  if (!body.is_json()) return std::nullopt;
  const auto* value =
      body.find(rule.json, [&](const BodyValue& found) { return accepts(rule.in, found.text); });
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
