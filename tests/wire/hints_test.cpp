// What servers ask for, obeyed on real sockets: no request arrives before its time.
#include "wire.hpp"

#include <array>
#include <ctime>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Client patient_for(Duration most) {
  auto policy = hasty();
  policy.server_delay.max = most;
  return Client({retry(policy)});
}

std::string http_date(std::chrono::system_clock::time_point when) {
  const auto seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const auto size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

}  // namespace

TEST_CASE("no request arrives before the time that the server asked for") {
  struct Hint {
    Step step;
    Duration wait;
    std::string_view source;
  };
  const std::vector<Hint> hints{
      {{503, {{"retry-after-ms", "60"}}}, 60ms, "retry-after-ms"},
      {{500, {{"x-ms-retry-after-ms", "70"}}}, 70ms, "x-ms-retry-after-ms"},
      {{429, {{"X-Amz-Retry-After", "80"}}}, 80ms, "x-amz-retry-after"},
      {{502, {{"Retry-After", "1"}}}, 1s, "retry-after"},
      {{429, {{"Retry-After", "0"}}}, 0s, "retry-after"},
      {{503,
        {{"Content-Type", "application/json"}},
        R"({"error":{"code":503,"status":"UNAVAILABLE","details":[)"
        R"({"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.090s"}]}})"},
       90ms,
       "google.rpc.RetryInfo"}};
  for (const auto& row : hints) {
    CAPTURE(row.source);
    FaultServer server(Scenario{row.step, {200}});

    const auto outcome = patient_for(10s).get(server.url());

    REQUIRE(outcome);
    CHECK(outcome->status == 200);
    const auto seen = server.seen();
    REQUIRE(seen.size() == 2);
    CHECK(wire_sends(outcome) == 2);
    // The response left after its request arrived, so this can only be longer.
    CHECK(seen[1].arrived - seen[0].arrived >= row.wait);
    const auto& first = outcome->history.attempts[0];
    REQUIRE(first.server_delay);
    CHECK(*first.server_delay == row.wait);
    CHECK(first.server_delay_source == row.source);
    CHECK(*first.wait >= row.wait);
  }
}

TEST_CASE("a date is waited for to the second, against the response's own clock") {
  // The server's clock is an hour slow; what counts is the distance.
  const auto slow = std::chrono::system_clock::now() - 1h;
  const auto now = http_date(slow);
  const auto later = http_date(slow + 1s);
  FaultServer server(Scenario{{503, {{"Date", now}, {"Retry-After", later}}}, {200}});

  const auto outcome = patient_for(10s).get(server.url());

  REQUIRE(outcome);
  const auto seen = server.seen();
  REQUIRE(seen.size() == 2);
  CHECK(outcome->history.attempts[0].server_delay == 1s);
  CHECK(seen[1].arrived - seen[0].arrived >= 1s);
}

TEST_CASE(
    "a server that asks for more than we wait gets no second request, and the caller is told") {
  FaultServer server(Scenario{{503, {{"Retry-After", "3600"}}, "closed for lunch"}, {200}});

  const auto outcome = patient_for(60s).get(server.url());

  REQUIRE(outcome);
  CHECK(outcome->status == 503);
  CHECK(outcome->body == "closed for lunch");
  CHECK(outcome->history.stop_reason == Reason::ServerDelayTooLong);
  REQUIRE(outcome->history.retry_at);
  CHECK(*outcome->history.retry_at - server.seen()[0].arrived_wall >= 3600s);
  CHECK(server.requests() == 1);
}

TEST_CASE("a proxy that refuses to connect us may say when to come back") {
  FaultServerOptions options;
  options.proxy = true;
  FaultServer proxy(Scenario{{503, {{"Retry-After", "1"}}}, {403}}, options);
  const Environment environment("https_proxy", proxy.url());

  const auto outcome = patient_for(10s).post("https://origin.example/", "d");

  REQUIRE_FALSE(outcome);
  const auto seen = proxy.seen();
  REQUIRE(seen.size() == 2);
  CHECK(seen[1].arrived - seen[0].arrived >= 1s);
  CHECK(history_of(outcome).attempts[0].server_delay_source == "retry-after");
}
