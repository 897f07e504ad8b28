#include <httpretry/retry/server_delay.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace std::chrono_literals;
using httpretry::Duration;
using httpretry::Headers;
using httpretry::kForever;
using httpretry::parse_http_date;
using httpretry::parse_rfc3339;
using httpretry::server_delay;
using httpretry::ServerDelay;
using httpretry::ServerDelaySource;
using httpretry::WallTime;

namespace {

WallTime epoch(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

const std::vector<ServerDelaySource> kAll = {
    ServerDelaySource::RetryAfterMs,    ServerDelaySource::XMsRetryAfterMs,
    ServerDelaySource::XAmzRetryAfter,  ServerDelaySource::RetryAfter,
    ServerDelaySource::XRateLimitReset, ServerDelaySource::XRateLimitResets,
    ServerDelaySource::AnthropicResets, ServerDelaySource::RateLimitReset,
    ServerDelaySource::RateLimit,       ServerDelaySource::GrpcRetryPushback};

std::optional<Duration> wait(const Headers& headers, WallTime now, bool throttled = true) {
  const auto hint = server_delay(headers, kAll, throttled, now);
  return hint ? std::optional(hint->delay) : std::nullopt;
}

struct HeaderRow {
  const char* value;
  std::optional<Duration> expected;
};

void check(const char* header, WallTime now, const std::vector<HeaderRow>& rows) {
  for (const auto& row : rows) {
    CAPTURE(std::string(header));
    CAPTURE(std::string(row.value));
    CHECK(wait(Headers{{header, row.value}}, now) == row.expected);
  }
}

}  // namespace

TEST_CASE("each of the headers is found, in any case") {
  for (const auto source : kAll) {
    const std::string name(to_string(source));
    auto other_case = name;
    other_case.front() = static_cast<char>(other_case.front() - 'a' + 'A');
    for (const auto& spelled : {name, other_case}) {
      CAPTURE(spelled);
      const auto* value = source == ServerDelaySource::RateLimit ? "\"a\";r=0;t=7" : "7";
      const auto delay = server_delay(Headers{{"Server", "x"}, {spelled, value}}, kAll, true, {});
      REQUIRE(delay);
      CHECK(delay->source == source);
      CHECK(delay->raw == value);
    }
  }
}

TEST_CASE("the order of the sources decides, and among headers of one name the longer delay") {
  const Headers headers{{"ratelimit-reset", "9"}, {"Retry-After", "2"}, {"retry-after-ms", "junk"},
                        {"retry-after", "5"},     {"RETRY-AFTER", "4"}, {"x-ratelimit-reset", "8"}};
  CHECK(wait(headers, epoch(0)) == 5s);
  const std::vector resets{ServerDelaySource::XRateLimitReset, ServerDelaySource::RetryAfter};
  CHECK(server_delay(headers, resets, true, epoch(0))->delay == 8s);
  CHECK(server_delay(headers, resets, false, epoch(0))->delay == 5s);
  const std::vector none{ServerDelaySource::XAmzRetryAfter};
  CHECK_FALSE(server_delay(headers, none, true, epoch(0)));
}

// RFC 9110 §5.6.7; curl's tests/libtest/lib517.c.
TEST_CASE("the three forms of an HTTP date are the same moment") {
  for (const auto* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994"}) {
    CHECK(parse_http_date(text, epoch(1700000000)) == epoch(784111777));
  }
  CHECK(parse_http_date("Sun Nov 16 08:49:37 1994", epoch(0)) == epoch(784975777));
}

TEST_CASE("an HTTP date is written in its first form, in which it is read") {
  using std::chrono::sys_seconds;
  CHECK(httpretry::http_date(sys_seconds(784111777s)) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(httpretry::http_date(sys_seconds(-1s)) == "Wed, 31 Dec 1969 23:59:59 GMT");
  for (std::int64_t time = -9'000'000'000; time < 9'000'000'000; time += 12'345'679) {
    const auto text = httpretry::http_date(sys_seconds(std::chrono::seconds(time)));
    CHECK(parse_http_date(text, epoch(0)) == epoch(time));
  }
  CHECK(httpretry::http_date(sys_seconds::min()) == "Mon, 01 Jan 0001 00:00:00 GMT");
  CHECK(httpretry::http_date(sys_seconds::max()) == "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST_CASE("what is nearly an HTTP date is none") {
  for (const auto* text : {"",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 NOV 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 gmt",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun, 32 Nov 1994 08:49:37 GMT",
                           "Sun, 31 Nov 1994 08:49:37 GMT",
                           "Sun, 00 Nov 1994 08:49:37 GMT",
                           "Wed, 29 Feb 2023 00:00:00 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:00 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           " Sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 08:49:37 GMT+1",
                           "Zun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 100000 08:49:37 GMT",
                           "Sun Nov 06 1994 08:49:37 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sunday, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "1994-11-06T08:49:37Z"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(parse_http_date(text, epoch(1700000000)).has_value());
  }
}

TEST_CASE("a leap second is the second after") {
  CHECK(parse_http_date("Sat, 31 Dec 2016 23:59:60 GMT", epoch(0)) == epoch(1483228800));
}

TEST_CASE("a two-digit year is at most fifty years ahead") {
  const auto now = *parse_http_date("Sat, 21 Nov 2026 12:00:00 GMT", epoch(0));
  const auto year = [&](const char* digits, const char* day) {
    const auto text = std::string("Sunday, ") + day + "-" + digits + " 00:00:00 GMT";
    const auto date = parse_http_date(text, now);
    REQUIRE(date.has_value());
    return static_cast<int>(
        std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(*date)).year());
  };
  CHECK(year("26", "21-Nov") == 2026);
  CHECK(year("75", "01-Dec") == 2075);
  CHECK(year("76", "01-Nov") == 2076);
  CHECK(year("76", "22-Nov") == 1976);
  CHECK(year("77", "01-Jan") == 1977);
  CHECK(year("99", "31-Dec") == 1999);
}

TEST_CASE("dates that no clock of ours can hold saturate") {
  CHECK(parse_http_date("Fri, 31 Dec 9999 23:59:59 GMT", epoch(0)) == WallTime::max());
  CHECK(parse_http_date("Mon, 01 Jan 0001 00:00:00 GMT", epoch(0)) == WallTime::min());
  CHECK(parse_http_date("Fri, 31 Dec 1677 23:59:59 GMT", epoch(0)) == WallTime::min());
  CHECK(parse_http_date("Wed, 01 Jan 2262 00:00:00 GMT", epoch(0)) == WallTime::max());
  const WallTime first = std::chrono::sys_days(std::chrono::year(1678) / 1 / 1);
  CHECK(parse_http_date("Sat, 01 Jan 1678 00:00:00 GMT", epoch(0)) == first);
  const WallTime end = std::chrono::sys_days(std::chrono::year(2262) / 1 / 1);
  CHECK(parse_http_date("Tue, 31 Dec 2261 23:59:59 GMT", epoch(0)) == end - 1s);
}

TEST_CASE("RFC 3339 dates from 1970 to 2199, in any zone and with any fraction of the second") {
  const WallTime end = std::chrono::sys_days(std::chrono::year(2200) / 1 / 1);
  CHECK(parse_rfc3339("1970-01-01T00:00:00Z") == epoch(0));
  CHECK(parse_rfc3339("1970-01-01t23:59:60z") == epoch(86400));
  CHECK(parse_rfc3339("1970-02-03 04:05:06.5Z") == epoch(2865906) + 500ms);
  CHECK(parse_rfc3339("1970-01-01T00:00:00.1234567891Z") == epoch(0) + 123456789ns);
  CHECK(parse_rfc3339("1970-01-01T23:59:00+23:59") == epoch(0));
  CHECK(parse_rfc3339("1970-01-01T00:00:00-01:15") == epoch(4500));
  CHECK(parse_rfc3339("2199-12-31T23:59:59Z") == end - 1s);
  for (const auto* text :
       {"", "1970-01-01T00:00:00", "1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z",
        "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01T00:00:61Z",
        "1970-02-29T00:00:00Z", "1970-01-01_00:00:00Z", "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00.5", "1970-01-01T00:00:00+1:00", "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00Zx", "1970-01-01T00:00:00x"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(parse_rfc3339(text).has_value());
  }
}

// go-retryablehttp, urllib3, openai-python and ky test these.
TEST_CASE("Retry-After is a number or a date, and nothing else") {
  const auto now = *parse_http_date("Fri, 31 Dec 1999 23:59:57 GMT", epoch(0));
  check("Retry-After", now,
        {{"2", 2s},
         {"0", 0s},
         {"007", 7s},
         {"3600", 1h},
         {"412345", 412345s},
         {"946684797", 946684797s},  // an epoch is read as a delay
         {"99999999999999999999999999999999999", kForever},
         {"Fri, 31 Dec 1999 23:59:59 GMT", 2s},
         {"Fri, 31 Dec 1999 23:59:60 GMT", 3s},
         {"Friday, 31-Dec-99 23:59:59 GMT", 2s},
         {"Fri Dec 31 23:59:59 1999", 2s},
         {"Fri, 31 Dec 1999 23:59:00 GMT", 0s},
         {"", {}},
         {"-2", {}},
         {"-1", {}},
         {"+1", {}},
         {"1.0", 1s},  // some rate limiters send fractions
         {"1.5", 1500ms},
         {"0.0000000001", 1ns},
         {"1.", {}},
         {".5", {}},
         {"1.5s", {}},
         {"1.5.0", {}},
         {"1e3", {}},
         {"0x10", {}},
         {"\xc2\xb2", {}},
         {"inf", {}},
         {"nan", {}},
         {"2 ", 2s},  // white space around a value is no part of it
         {"2s", {}},
         {"2, 3", 3s},  // two headers that a proxy has joined
         {"3,2", 3s},
         {"0 ,0", 0s},
         {"-1, 2", 2s},
         {"soon, later", {}},
         {",", {}},
         {"4, Fri, 31 Dec 1999 23:59:59 GMT", 4s},
         {"Fri, 31 Dec 1999 23:59:59 GMT, 1", 2s},
         {"Fri, 31 Dec 1999 23:59:59 GMT, Friday, 31-Dec-99 23:59:58 GMT", 2s},
         {"1999-12-31T23:59:59Z", {}},
         {"badbadbad", {}},
         {"Fri, 32 Dec 1999 23:59:59 GMT", {}},
         {"Sun, 32 Dec 2030 25:99:99 GMT", {}},
         {"Mon, 3 Jun 2019 12:00:00 UTC", {}},
         {"Fri, 29 Sep 100000 16:26:57 GMT", {}}});
}

// openai-python's test_parse_retry_after_header and urllib3's
// test_respect_retry_after_header_sleep; their lenient dates ("3 Jun", "UTC") are not ours.
TEST_CASE("Retry-After at other clients' clocks") {
  check("retry-after", epoch(1696004797),
        {{"20", 20s},
         {"0", 0s},
         {"-10", {}},
         {"60", 60s},
         {"61", 61s},
         {"120", 120s},
         {"121", 121s},
         {"Fri, 29 Sep 2023 16:26:57 GMT", 20s},
         {"Fri, 29 Sep 2023 16:26:37 GMT", 0s},
         {"Fri, 29 Sep 2023 16:26:27 GMT", 0s},
         {"Fri, 29 Sep 2023 16:27:37 GMT", 60s},
         {"Fri, 29 Sep 2023 16:28:37 GMT", 120s},
         {"Fri, 29 Sep 2023 16:28:38 GMT", 121s},
         {"Zun, 29 Sep 2023 16:26:27 GMT", {}}});
  check("retry-after", epoch(1559559600),  // 2019-06-03T11:00:00Z
        {{"3600", 3600s},
         {"Mon, 03 Jun 2019 11:30:12 GMT", 1812s},
         {"Monday, 03-Jun-19 11:30:12 GMT", 1812s},
         {"Mon Jun  3 11:30:12 2019", 1812s}});
}

TEST_CASE("of two headers with one name the longer valid one counts") {
  CHECK(wait(Headers{{"Retry-After", "2"}, {"Retry-After", "3"}}, epoch(0)) == 3s);
  CHECK(wait(Headers{{"Retry-After", "3"}, {"Retry-After", "2"}}, epoch(0)) == 3s);
  CHECK(wait(Headers{{"RateLimit", R"("a";r=0;t=30)"}, {"RateLimit", R"("b";r=0;t=5)"}},
             epoch(0)) == 30s);
  CHECK(wait(Headers{{"Retry-After", "-2"}, {"retry-after", "3"}}, epoch(0)) == 3s);
}

TEST_CASE("an invalid hint is passed over and the next source is asked") {
  CHECK(wait(Headers{{"retry-after-ms", "1.5"}, {"retry-after", "3"}}, epoch(0)) == 3s);
  CHECK(wait(Headers{{"retry-after-ms", "1500"}, {"retry-after", "3"}}, epoch(0)) == 1500ms);
  CHECK(wait(Headers{{"retry-after-ms", "0"}, {"retry-after", "3"}}, epoch(0)) == 0ms);
  // ky stops at a Retry-After that it cannot read; the rate limit beside it still says something.
  for (const auto* unread : {"1e3", ""}) {
    CHECK(wait(Headers{{"Retry-After", unread}, {"RateLimit-Reset", "3"}}, epoch(0)) == 3s);
  }
}

TEST_CASE("only the sources that the policy names are asked") {
  const std::vector<ServerDelaySource> one = {ServerDelaySource::XAmzRetryAfter};
  CHECK_FALSE(server_delay(Headers{{"Retry-After", "2"}}, one, true, epoch(0)).has_value());
  CHECK(server_delay(Headers{{"X-Amz-Retry-After", "1500"}}, one, true, epoch(0))->delay == 1500ms);
}

TEST_CASE("millisecond headers") {
  for (const auto* header : {"retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"}) {
    check(header, epoch(0),
          {{"1500", 1500ms},
           {"0", 0ms},
           {"-1", {}},
           {"invalid", {}},
           {"99999999999999999999", kForever},
           {"1500ms", {}}});
  }
}

TEST_CASE("a date is read against the response's own clock, unless that is a day off") {
  const auto date = *parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", epoch(0));
  const Headers headers{{"Date", "Sun, 06 Nov 1994 08:49:07 GMT"},
                        {"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}};
  CHECK(wait(headers, date - 5h) == 30s);
  CHECK(wait(headers, date + 5h) == 30s);
  CHECK(wait(headers, date - 48h) == 48h);
  CHECK(wait(headers, date + 48h) == 0s);
  const auto clock_of_server = date - 30s;
  CHECK(wait(headers, clock_of_server - 24h) == 30s);
  CHECK(wait(headers, clock_of_server - 24h - 1ns) == 24h + 31s);
  CHECK(wait(headers, clock_of_server + 24h) == 30s);
  CHECK(wait(headers, clock_of_server + 24h + 1ns) == 0s);
  CHECK(wait(Headers{{"Date", "yesterday"}, {"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}},
             date - 10s) == 10s);
}

TEST_CASE("a wait for a date is rounded up to the second") {
  const auto date = *parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", epoch(0));
  CHECK(wait(Headers{{"Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"}}, date - 1001ms) == 2s);
}

TEST_CASE("resets are told apart by plausibility") {
  const auto now = epoch(1595320672);
  for (const auto* header :
       {"x-ratelimit-reset", "ratelimit-reset", "x-ratelimit-reset-after",
        "x-ratelimit-reset-requests", "anthropic-ratelimit-input-tokens-reset"}) {
    check(header, now,
          {{"1595320702", 30s},
           {"2020-07-21T08:38:22Z", 30s},
           {"2020-07-21T10:38:21.5+02:00", 30s},
           {"2020-07-21T08:37:00Z", 0s},
           {"2020-07-21", {}},
           {"2.5", 2500ms},
           {"1m2s", 62s},
           {"1595320702000", 30s},
           {"1595320702001", 30001ms},
           {"1595320701.5", 30s},
           {"1595320600", 0s},
           {"Tue, 21 Jul 2020 08:38:22 GMT", 30s},
           {"30", 30s},
           {"0", 0s},
           {"1.5", 1500ms},
           {"0.0000000001", 1ns},
           {"600000", 600000s},
           {"999999999", 999999999s},
           {"1000000000", 0s},    // an epoch in seconds
           {"100000000000", 0s},  // in milliseconds
           {"100000000000000", kForever},
           {"6m0s", 6min},
           {"12ms", 12ms},
           {"1h30m", 90min},
           {"1.5s", 1500ms},
           {"999999999999999999999999", kForever},
           {"9999999999h", kForever},
           {"", {}},
           {"-1", {}},
           {"1.", {}},
           {".5", {}},
           {"1e3", {}},
           {"nan", {}},
           {"6m0", {}},
           {"6m0s ago", {}},
           {"Tue Feb 16 2021 09:02:42 GMT+0100 (Central European Standard Time)", {}}});
  }
}

TEST_CASE("a reset counts only for a throttle and where nothing remains") {
  const auto now = epoch(1595320672);
  const auto with = [](const char* remaining) {
    return Headers{{"x-ratelimit-reset", "30"}, {"x-ratelimit-remaining", remaining}};
  };
  CHECK(wait(with("0"), now) == 30s);
  CHECK_FALSE(wait(with("0"), now, false).has_value());
  CHECK_FALSE(wait(with("4999"), now).has_value());
  CHECK_FALSE(wait(with("-1"), now).has_value());
  CHECK(wait(Headers{{"ratelimit-reset", "30"}, {"ratelimit-remaining", "0"}}, now) == 30s);
  CHECK_FALSE(
      wait(Headers{{"ratelimit-reset", "30"}, {"ratelimit-remaining", "1"}}, now).has_value());
}

// OpenAI, Anthropic and Discord. The texts are from their documentation.
TEST_CASE("each quota with a reset of its own counts where nothing of it remains") {
  const auto now = epoch(1595320672);
  Headers openai{{"x-ratelimit-remaining-requests", "59"},
                 {"x-ratelimit-remaining-tokens", "0"},
                 {"x-ratelimit-reset-requests", "1s"},
                 {"x-ratelimit-reset-tokens", "6m0s"}};
  CHECK(wait(openai, now) == 6min);
  CHECK_FALSE(wait(openai, now, /*throttled=*/false));
  openai.set("x-ratelimit-remaining-requests", "0");
  CHECK(wait(openai, now) == 6min);  // the longest
  openai.set("x-ratelimit-remaining-tokens", "149984");
  CHECK(wait(openai, now) == 1s);
  openai.set("x-ratelimit-remaining-requests", "59");
  CHECK_FALSE(wait(openai, now));
  Headers anthropic{{"anthropic-ratelimit-requests-remaining", "49"},
                    {"anthropic-ratelimit-requests-reset", "2020-07-21T08:39:00Z"},
                    {"anthropic-ratelimit-tokens-remaining", "0"},
                    {"anthropic-ratelimit-tokens-reset", "2020-07-21T08:38:02Z"}};
  const auto hint = server_delay(anthropic, kAll, true, now);
  REQUIRE(hint);
  CHECK(hint->delay == 10s);
  CHECK(to_string(hint->source) == "anthropic-ratelimit-*-reset");
  CHECK(hint->raw == "2020-07-21T08:38:02Z");
  CHECK(wait({{"X-RateLimit-Remaining", "0"}, {"X-RateLimit-Reset-After", "2.5"}}, now) == 2500ms);
  CHECK_FALSE(wait({{"X-RateLimit-Remaining", "1"}, {"X-RateLimit-Reset-After", "2.5"}}, now));
}

TEST_CASE("the RateLimit field is a list of limits, and the longest of those used up counts") {
  check("RateLimit", epoch(0),
        {{R"("default";r=0;t=30)", 30s},
         {R"("default";r=50;t=30)", {}},
         {R"("default";t=30)", 30s},
         {R"("burst";r=0;t=5, "daily";r=0;t=3600)", 1h},
         {R"("burst";r=0;t=5,"daily";r=7;t=3600)", 5s},
         {R"(default; r=0; t=30)", 30s},
         {R"("a;b\",c";r=0;t=30;pk=:cGs=:)", 30s},
         {R"("default";r=0)", {}},
         {R"("default";r=0;t=)", {}},
         {R"("default";r=0;t=-5)", {}},
         {R"("default";r=0;t=3.5)", {}},
         {R"("default;r=0;t=30)", {}},
         {R"("default";r=0;t=30,)", {}},
         {R"("default";r=0;t=30 junk)", {}},
         {R"("default";r=0;t=99999999999999999999)", kForever},
         {"", {}}});
}

TEST_CASE("a limit of something else than requests says nothing about the next request") {
  const auto told = [](const char* policy) {
    return wait(
        Headers{{"RateLimit", R"("a";r=0;t=3, "b";r=0;t=60)"}, {"RateLimit-Policy", policy}},
        epoch(0));
  };
  CHECK(told(R"("a";q=10;w=60, "b";q=1000;qu="content-bytes")") == 3s);
  CHECK(told(R"("b";q=10;qu="concurrent-requests";w=9)") == 3s);
  CHECK(told(R"("b";q=10;qu="requests")") == 60s);
  CHECK(told(R"("a";q=10;qu="content-bytes", "b";q=10)") == 60s);
  CHECK(told(R"("c";q=10;qu="content-bytes")") == 60s);
  // What cannot be read says nothing.
  CHECK(told(R"("b";q=10;qu="content-bytes",)") == 60s);
  CHECK(told(R"("b";q=10;qu=)") == 60s);
  CHECK(told("") == 60s);
  CHECK_FALSE(wait(Headers{{"RateLimit", R"("a";r=0;t=3)"},
                           {"RateLimit-Policy", R"("b";q=5)"},
                           {"RateLimit-Policy", R"("a";q=5;qu="content-bytes")"}},
                   epoch(0)));
}

// Draft 7 of the IETF has one limit, and its members may come in any order.
TEST_CASE("the RateLimit field of draft 7 is a dictionary") {
  check("RateLimit", epoch(0),
        {{"limit=2, remaining=0, reset=3", 3s},
         {"reset=3,limit=2,remaining=0", 3s},
         {"limit=100;w=60, remaining=0, reset=50", 50s},
         {"limit=2, reset=3", 3s},
         {"limit=2, remaining=1, reset=3", {}},
         {"limit=2, remaining=0", {}},
         {"limit=2, remaining=0, reset=", {}},
         {"limit=2, remaining=0, reset=-3", {}},
         {"limit=2, remaining=0, reset=3,", {}},
         {"limit=2 remaining=0 reset=3", {}},
         {"limit=2, remaining=0, reset=99999999999999999999", kForever}});
}

// Some servers use two of these headers, but in different units, so we do not read them.
TEST_CASE("other headers about limits are not read") {
  for (const auto* header :
       {"x-ratelimit-reset-", "x-ratelimit-resets", "anthropic-ratelimit-reset",
        "x-ratelimit-retry-after", "x-rate-limit-reset", "ratelimit-policy"}) {
    CAPTURE(std::string(header));
    CHECK_FALSE(wait(Headers{{header, "30"}}, epoch(0)).has_value());
  }
}

TEST_CASE("a negative pushback asks for no retry") {
  const auto hint = [](const char* value) {
    return server_delay(Headers{{"grpc-retry-pushback-ms", value}}, kAll, false, epoch(0));
  };
  CHECK(hint("250")->delay == 250ms);
  CHECK_FALSE(hint("250")->do_not_retry);
  CHECK(hint("-1")->do_not_retry);
  CHECK_FALSE(hint("0")->do_not_retry);
  CHECK_FALSE(hint("soon").has_value());
  CHECK_FALSE(hint("-").has_value());
}

TEST_CASE("a hint says where it stood and what it said") {
  const auto hint = server_delay(Headers{{"Retry-After", "120"}}, kAll, false, epoch(0));
  CHECK(to_string(hint->source) == "retry-after");
  CHECK(hint->raw == "120");
  const auto long_one =
      server_delay(Headers{{"Retry-After", std::string(1000, '9')}}, kAll, false, epoch(0));
  CHECK(long_one->delay == kForever);
  CHECK(long_one->raw.size() == 64);
}

// protobuf's JSON mapping of Duration, and Go's time.ParseDuration.
TEST_CASE("Go durations") {
  CHECK(httpretry::parse_go_duration("34.074824224s") == 34074824224ns);
  CHECK(httpretry::parse_go_duration("3.000000001s") == 3000000001ns);
  CHECK(httpretry::parse_go_duration("1.0000000001s") == 1000000001ns);  // up, never early
  CHECK(httpretry::parse_go_duration("1.5h") == 90min);
  CHECK(httpretry::parse_go_duration("1.5us") == 1500ns);
  CHECK(httpretry::parse_go_duration("0.5ns") == 1ns);
  for (const auto* text : {"", "s", "1", "1.5", "-1s", "1 s", "1d", "1s2", "1.s"}) {
    CHECK_FALSE(httpretry::parse_go_duration(text).has_value());
  }
}
