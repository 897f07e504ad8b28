// The presets, by their numbers: what stands in the articles, manuals and sources of the systems
// that they are named after.
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/presets.hpp>
#include <httpretry/retry/classify.hpp>
#include <httpretry/retry/decide.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

RetryPolicy preset(const std::string& name) { return *resolve_preset(name).value().policy; }

// "0s-1s 0s-2s": the least and the most before each retry, to the microsecond.
std::string waits(const Backoff& backoff, int retries) {
  std::string text;
  DelayRange range;
  for (int retry = 1; retry <= retries; ++retry) {
    range = delay_range(backoff, retry, range);
    const auto least = to_text(std::chrono::round<std::chrono::microseconds>(range.least));
    const auto most = to_text(std::chrono::round<std::chrono::microseconds>(range.most));
    text += (retry == 1 ? "" : " ") + least + (least == most ? "" : "-" + most);
  }
  return text;
}

Classified classified(const RetryPolicy& policy, Response response) {
  const Outcome outcome(std::move(response));
  return classify(policy, Observed(outcome, WallTime()));
}

bool is_retried(const RetryPolicy& policy, int status) {
  const auto cls = classified(policy, Response(status)).cls;
  return cls == Class::Transient || cls == Class::Throttle;
}

// "408 429 500-599": what is retried whatever the response says besides.
std::string statuses(const RetryPolicy& policy) {
  std::string text;
  for (int status = 400; status <= 599; ++status) {
    if (!is_retried(policy, status)) continue;
    const auto first = status;
    while (status < 599 && is_retried(policy, status + 1)) ++status;
    text += (text.empty() ? "" : " ") + std::to_string(first);
    if (status > first) text += "-" + std::to_string(status);
  }
  return text;
}

std::string limits(const RetryPolicy& policy) {
  const auto attempts = policy.max_attempts ? std::to_string(*policy.max_attempts) : "unlimited";
  const auto* const rule = policy.elapsed_rule == ElapsedRule::BeforeWait ? ", before_wait" : "";
  return attempts + ", " + to_text(policy.max_elapsed_time) + rule;
}

std::string transport(const RetryOn& retry_on) {
  if (retry_on.transport == 0xFF) return "all";
  std::string text;
  for (auto kind = TransportKind::Resolve; kind <= TransportKind::Partial;
       kind = static_cast<TransportKind>(static_cast<int>(kind) + 1)) {
    if (retry_on.covers(kind)) text += (text.empty() ? "" : " ") + std::string(to_string(kind));
  }
  return text;
}

// Whole tokens: "500/14/5/14 +1" are capacity, costs of a retry, a throttle and a timeout, refill.
std::string budget(const BudgetPolicy& policy) {
  const auto whole = [](std::int64_t amount) { return std::to_string(amount / 1000); };
  const auto parts = [](std::int64_t amount) { return std::to_string(amount) + "/1000"; };
  CHECK(policy.scope == BudgetPolicy::Scope::Host);
  switch (policy.kind) {
    case BudgetPolicy::Kind::None: return "none";
    case BudgetPolicy::Kind::Tokens:
      return whole(policy.capacity) + "/" + whole(policy.retry_cost) + "/" +
             whole(policy.throttle_cost) + "/" + whole(policy.timeout_cost) + " +" +
             whole(policy.refill);
    case BudgetPolicy::Kind::Ratio:
      return parts(policy.ratio) + " of " + to_text(policy.window) + ", " +
             whole(policy.min_per_second) + "/s";
    case BudgetPolicy::Kind::Grpc: return whole(policy.capacity) + " +" + parts(policy.refill);
    case BudgetPolicy::Kind::Concurrent:
      return parts(policy.ratio) + " under way, " + std::to_string(policy.min);
  }
  return {};
}

struct Row {
  const char* name;
  const char* waits;
  const char* statuses;
  const char* limits;
  const char* throttled = "";  // waits; as `waits` where empty
  const char* budget = "none";
  const char* transport = "all";
};

constexpr auto* kAwsStatuses = "429 500 502-504";

const Row kRows[] = {
    {"standard", "150ms-300ms 300ms-600ms 600ms-1.2s 1.2s-2.4s",
     "408 421 425 429 500 502-504 506 508-510 512-599", "5, 1m", "500ms-1s 1s-2s 2s-4s 4s-8s",
     "500/5/5/10 +1"},
    {"standard-2026", "150ms-300ms 300ms-600ms 600ms-1.2s 1.2s-2.4s",
     "408 421 425 429 500 502-504 506 508-510 512-599", "5, 1m", "500ms-1s 1s-2s 2s-4s 4s-8s",
     "500/5/5/10 +1"},
    {"none", "0s", "", "1, none", "", "none", ""},
    {"constant", "1s 1s", "429 500-599", "3, none"},
    {"exponential", "1s 2s 4s 8s 10s", "429 500-599", "6, none"},
    {"full-jitter", "0s-1s 0s-2s 0s-4s 0s-8s 0s-10s", "429 500-599", "6, none"},
    {"equal-jitter", "500ms-1s 1s-2s 2s-4s 4s-8s 5s-10s", "429 500-599", "6, none"},
    {"decorrelated-jitter", "1s-3s 1s-9s 1s-10s 1s-10s 1s-10s", "429 500-599", "6, none"},
    {"truncated-binary",
     "0s-19.531ms 0s-39.062ms 0s-78.125ms 0s-156.25ms 0s-312.5ms 0s-625ms 0s-1.25s 0s-2.5s 0s-5s "
     "0s-10s 0s-10s",
     "429 500-599", "unlimited, 15m"},
    {"csma-cd",
     "0s-51us 0s-154us 0s-358us 0s-768us 0s-1.587ms 0s-3.226ms 0s-6.502ms 0s-13.056ms "
     "0s-26.163ms 0s-52.378ms 0s-52.378ms 0s-52.378ms",
     "400-599", "16, none"},
    {"aws-general", "100ms 200ms 400ms 800ms 1.6s 3.2s 6.4s 12.8s 20s", "429 500-599", "6, none"},
    {"aws-simpledb", "0s-400ms 0s-1.6s 0s-6.4s 0s-25.6s 0s-1m42.4s", "500-599", "6, none"},
    {"google-http-client",
     "250ms-750ms 375ms-1.125s 562.5ms-1.6875s 843.75ms-2.53125s 1.265625s-3.796875s", "500-599",
     "unlimited, 15m, before_wait"},
    {"google-http-client-1.15",
     "250ms-750ms 375ms-1.125s 562.5ms-1.6875s 843.75ms-2.53125s 1.265625s-3.796875s", "500 503",
     "10, none"},
    {"google-drive", "1s-2s 2s-3s 4s-5s 8s-9s 16s-17s 32s-33s 1m4s", "429 500-599", "6, none"},
    {"google-drive-1", "1ms-1.001s 2ms-1.002s 4ms-1.004s 8ms-1.008s 16ms-1.016s", "403", "6, none"},
    {"aws-standard", "0s-1s 0s-2s 0s-4s 0s-8s 0s-16s 0s-20s", kAwsStatuses, "3, none", "",
     "500/5/5/10 +1"},
    {"aws-standard-2026", "0s-50ms 0s-100ms 0s-200ms", kAwsStatuses, "3, none",
     "0s-1s 0s-2s 0s-4s 0s-8s 0s-16s 0s-20s", "500/14/5/14 +1"},
    {"aws-adaptive", "0s-1s 0s-2s 0s-4s 0s-8s 0s-16s 0s-20s", kAwsStatuses, "3, none", "",
     "500/5/5/10 +1"},
    {"azure", "640ms-1.04s 1.28s-2.08s 2.56s-4.16s 5.12s-8.32s", "408 429 500 502-504", "4, none"},
    {"gcs", "0s-1s 0s-2s 0s-4s 0s-8s 0s-16s 0s-30s 0s-30s", "408 429 500-599", "unlimited, 15m"},
    {"grpc", "80ms-120ms 160ms-240ms 320ms-480ms 640ms-960ms 800ms-1.2s", "429 502-504", "5, none",
     "", "10 +100/1000"},
    {"envoy", "0s-25ms 0s-50ms 0s-100ms 0s-200ms 0s-250ms 0s-250ms", "500-599", "2, none", "",
     "200/1000 of 10s, 10/s"},
    {"github", "0s-1s 0s-2s 0s-4s", "429 500-599", "4, 15m", "1m 2m 4m"},
    {"openai", "375ms-500ms 750ms-1s 1.5s-2s 3s-4s 6s-8s 6s-8s", "408-409 429 500-599", "3, none"},
    {"anthropic", "375ms-500ms 750ms-1s 1.5s-2s 3s-4s 6s-8s 6s-8s", "408-409 429 500-599",
     "3, none"},
    {"gemini", "1s-2s 2s-3s 4s-5s 8s-9s 16s-17s 32s-33s 1m", "408 429 500 502-504", "5, none", "",
     "none", "resolve connect tls timeout"},
    {"stripe", "750ms-1s 1.875s-2.5s 3.75s-5s 3.75s-5s", "409 500-599", "3, none"},
    {"curl", "1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 8m32s 10m 10m", "408 429 500 502-504 522 524",
     "4, none", "", "none", "resolve timeout"},
    {"otlp", "0s-1s 0s-2s 0s-4s 0s-8s 0s-16s 0s-30s 0s-30s", "429 502-504", "unlimited, 1m"},
};

int words(std::string_view text) {
  return 1 + static_cast<int>(std::count(text.begin(), text.end(), ' '));
}

}  // namespace

TEST_CASE("each preset has the numbers of its system") {
  for (const auto& row : kRows) {
    CAPTURE(std::string(row.name));
    const auto policy = preset(row.name);
    CHECK(waits(policy.backoff, words(row.waits)) == row.waits);
    CHECK(policy.throttle_backoff.has_value() == (*row.throttled != '\0'));
    if (policy.throttle_backoff) {
      CHECK(waits(*policy.throttle_backoff, words(row.throttled)) == row.throttled);
    }
    CHECK(statuses(policy) == row.statuses);
    CHECK(limits(policy) == row.limits);
    CHECK(budget(policy.budget) == row.budget);
    CHECK(transport(policy.retry_on) == row.transport);
    CHECK(policy.adaptive == (std::string_view(row.name) == "aws-adaptive"));
  }
}

TEST_CASE("no preset is without its numbers") {
  std::set<std::string_view> rows;
  for (const auto& row : kRows) CHECK(rows.insert(row.name).second);
  for (const auto& one : presets()) CHECK(rows.count(one.name) == 1);
}

TEST_CASE("what a preset says besides of servers' hints, polls and its end") {
  const auto standard = preset("standard");
  CHECK(standard.connect_timeout == 10s);
  CHECK(standard.attempt_timeout == kForever);
  CHECK(standard.server_delay.headers.size() == 10);
  CHECK(standard.server_delay.max == 1min);
  CHECK(standard.server_delay.combine == ServerDelayPolicy::Combine::Grow);
  CHECK(standard.server_delay.over_max == ServerDelayPolicy::OverMax::Stop);
  for (const auto& one : presets()) {
    const auto policy = preset(std::string(one.name));
    CAPTURE(std::string(one.name));
    const auto own_hints =
        one.name == "aws-standard-2026" || one.name == "github" || one.name == "curl";
    auto others = standard.server_delay;
    if (!one.name.starts_with("standard")) others.combine = ServerDelayPolicy::Combine::Max;
    CHECK((policy.server_delay == others) == !own_hints);
    CHECK(policy.connect_timeout == standard.connect_timeout);
    CHECK(policy.attempt_timeout == standard.attempt_timeout);
    CHECK(policy.stall_timeout == standard.stall_timeout);
    CHECK(policy.response_timeout == kForever);
    CHECK(policy.retry_on.pending.has_value() == (one.name == "aws-general"));
  }
  const auto aws = preset("aws-standard-2026").server_delay;
  CHECK(aws.headers == std::vector<ServerDelaySource>{ServerDelaySource::XAmzRetryAfter});
  CHECK(aws.max_over_own == 5s);
  const auto github = preset("github").server_delay;
  CHECK(github.combine == ServerDelayPolicy::Combine::Server);
  CHECK(github.max == 15min);
  const auto curl = preset("curl").server_delay;
  CHECK(curl.headers == std::vector<ServerDelaySource>{ServerDelaySource::RetryAfter});
  CHECK(curl.combine == ServerDelayPolicy::Combine::Server);
  CHECK(curl.max == kForever);  // "or as long as Retry-After says"

  // Those whose servers know a repeated request by its key send one, as the systems' own clients
  // do.
  for (const auto& one : presets()) {
    const auto key = preset(std::string(one.name)).idempotency_key;
    CHECK(key == (one.name == "stripe" ? "Idempotency-Key"
                  : one.name == "gcs"  ? "X-Goog-Gcs-Idempotency-Token"
                                       : ""));
  }

  const auto article = preset("aws-general");
  CHECK(article.retry_on.pending->statuses == StatusSet{202});
  CHECK(article.retry_on.pending->backoff == article.backoff);
  CHECK(article.retry_on.pending->max == article.max_attempts);

  CHECK(gives_up(preset("csma-cd").backoff, 16));
  CHECK_FALSE(gives_up(preset("csma-cd").backoff, 15));
}

// googleapiclient's _should_retry_response (there without sharingRateLimitExceeded), botocore's
// RETRYABLE_TRANSIENT_ERRORS (there a bare 429 is permanent), openai-python, stripe-go, octokit's
// plugin-throttling. _base_client.py of anthropic-sdk-python, and "Claude API errors" for the
// spending limit. _api_client.py and test_retries.py of python-genai; googleQuotaErrors.ts of
// gemini-cli for the quotas of a day.
TEST_CASE("each preset hears the reasons that its servers give") {
  struct Said {
    const char* preset;
    int status;
    Headers headers;
    const char* body;
    Class cls;
  };
  const auto* none = "";
  const auto* not_json = "<html>";
  const auto* user_rate = R"({"error":{"errors":[{"reason":"userRateLimitExceeded"}]}})";
  const auto* rate = R"({"error":{"errors":[{"reason":"rateLimitExceeded"}]}})";
  const auto* sharing = R"({"error":{"errors":[{"reason":"sharingRateLimitExceeded"}]}})";
  const auto* daily = R"({"error":{"errors":[{"reason":"dailyLimitExceeded"}]}})";
  const auto* permissions = R"({"error":{"errors":[{"reason":"insufficientPermissions"}]}})";
  const auto* no_reasons = R"({"error":{"errors":[]}})";
  const auto* throttling = R"({"__type":"ns#Throttling"})";
  const auto* secondary = R"({"message":"You have exceeded a secondary rate limit."})";
  const auto* quota = R"({"error":{"code":"insufficient_quota"}})";
  const auto* spent =
      R"({"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"enforced_spend_limit_reached"}}})";
  const auto* rate_limit = R"({"type":"error","error":{"type":"rate_limit_error","message":"m"}})";
  const auto* overloaded = R"({"type":"error","error":{"type":"overloaded_error","message":"m"}})";
  const auto* per_day =
      R"({"error":{"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"38s"}]}})";
  const auto* per_minute =
      R"({"error":{"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},{"retryDelay":"38s"}]}})";
  const auto* invalid = R"({"error":{"status":"INVALID_ARGUMENT"}})";
  const std::vector<Said> rows = {
      {"google-drive", 500, {}, none, Class::Transient},
      {"google-drive", 503, {}, none, Class::Transient},
      {"google-drive", 599, {}, none, Class::Transient},
      {"google-drive", 429, {}, none, Class::Throttle},
      {"google-drive", 403, {}, user_rate, Class::Throttle},
      {"google-drive", 403, {}, rate, Class::Throttle},
      {"google-drive", 403, {}, sharing, Class::Throttle},
      {"google-drive", 403, {}, daily, Class::Permanent},
      {"google-drive", 403, {}, permissions, Class::Permanent},
      {"google-drive", 403, {}, no_reasons, Class::Permanent},
      {"google-drive", 403, {}, none, Class::Permanent},
      {"google-drive", 403, {}, not_json, Class::Permanent},
      {"google-drive", 400, {}, none, Class::Permanent},
      {"google-drive", 404, {}, none, Class::Permanent},
      {"google-drive", 408, {}, none, Class::Permanent},
      {"google-drive", 200, {}, none, Class::Success},
      {"google-drive-1", 403, {}, rate, Class::Transient},
      {"google-drive-1", 403, {}, daily, Class::Permanent},
      {"google-http-client", 403, {}, rate, Class::Permanent},
      {"aws-standard", 400, {{"x-amzn-errortype", "RequestTimeout"}}, none, Class::Transient},
      {"aws-standard",
       400,
       {{"x-amzn-errortype", "RequestTimeoutException"}},
       none,
       Class::Transient},
      {"aws-standard",
       400,
       {{"x-amzn-errortype", "PriorRequestNotComplete"}},
       none,
       Class::Throttle},
      {"aws-standard", 400, {}, throttling, Class::Throttle},
      {"aws-standard", 400, {}, none, Class::Permanent},
      {"aws-standard", 500, {{"x-amzn-errortype", "InternalServiceError"}}, none, Class::Transient},
      {"aws-standard", 502, {{"x-amzn-errortype", "BadError"}}, none, Class::Transient},
      {"aws-standard", 429, {}, none, Class::Throttle},
      {"aws-standard", 200, {}, none, Class::Success},
      {"aws-standard-2026", 400, {}, throttling, Class::Throttle},
      {"aws-adaptive", 400, {}, throttling, Class::Throttle},
      {"aws-general", 400, {}, throttling, Class::Throttle},
      {"aws-general", 404, {}, none, Class::Permanent},
      {"aws-general", 202, {}, none, Class::Pending},
      {"constant", 400, {}, throttling, Class::Throttle},
      {"csma-cd", 404, {}, none, Class::Transient},
      {"github", 403, {}, secondary, Class::Throttle},
      {"github", 403, {{"retry-after", "30"}}, none, Class::Throttle},
      {"github", 403, {{"x-ratelimit-remaining", "0"}}, none, Class::Throttle},
      {"github", 403, {{"x-ratelimit-remaining", "4999"}}, none, Class::Permanent},
      {"openai", 409, {{"x-should-retry", "false"}}, none, Class::Permanent},
      {"openai", 400, {{"x-should-retry", "true"}}, none, Class::Transient},
      {"openai", 429, {}, quota, Class::Permanent},
      {"anthropic", 408, {}, none, Class::Transient},
      {"anthropic", 409, {}, none, Class::Transient},
      {"anthropic", 429, {}, rate_limit, Class::Throttle},
      {"anthropic", 429, {}, spent, Class::Permanent},
      {"anthropic", 500, {}, none, Class::Transient},
      {"anthropic", 529, {}, overloaded, Class::Transient},
      {"anthropic", 400, {}, overloaded, Class::Transient},
      {"anthropic", 400, {}, none, Class::Permanent},
      {"anthropic", 413, {}, none, Class::Permanent},
      {"anthropic", 529, {{"x-should-retry", "false"}}, overloaded, Class::Permanent},
      {"anthropic", 400, {{"x-should-retry", "true"}}, none, Class::Transient},
      {"gemini", 400, {}, invalid, Class::Permanent},
      {"gemini", 408, {}, none, Class::Transient},
      {"gemini", 409, {}, none, Class::Permanent},
      {"gemini", 429, {}, none, Class::Throttle},
      {"gemini", 429, {}, per_minute, Class::Throttle},
      {"gemini", 429, {}, per_day, Class::Permanent},
      {"gemini", 500, {}, none, Class::Transient},
      {"gemini", 501, {}, none, Class::Permanent},
      {"gemini", 504, {}, none, Class::Transient},
      {"stripe", 409, {{"stripe-should-retry", "false"}}, none, Class::Permanent},
      {"stripe", 400, {{"stripe-should-retry", "true"}}, none, Class::Transient},
      {"stripe", 429, {}, none, Class::Permanent},
      {"none", 503, {{"retry-after", "1"}}, none, Class::Permanent},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.preset));
    CAPTURE(row.status);
    CAPTURE(std::string(row.body));
    Response response(row.status, row.body);
    response.headers = row.headers;
    CHECK(classified(preset(row.preset), std::move(response)).cls == row.cls);
  }
}

// docs.github.com: a minute at least, and longer where the limit goes on.
TEST_CASE("GitHub's secondary limit is waited for a minute, then two, then four") {
  const auto policy = preset("github");
  for (const auto& [failures, wait] : {std::pair(1, 60s), std::pair(2, 120s), std::pair(3, 240s)}) {
    const Outcome outcome(Response(403, R"({"message":"secondary rate limit"})"));
    RetryState facts;
    facts.failures = failures;
    const auto classified = classify(policy, Observed(outcome, WallTime()));
    CHECK(decide(policy, classified, facts, Clocks(), 0).wait == wait);
  }
}
