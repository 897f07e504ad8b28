// Headers whose values are times counted from their response.
#include <httpretry/client/client.hpp>
#include <httpretry/retry/server_delay.hpp>
#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <random>
#include <stdexcept>
#include <string>

using namespace httpretry;
using namespace raw;
using namespace std::chrono_literals;

namespace {

constexpr WallTime kNow(784111777s);  // Sun, 06 Nov 1994 08:49:37 GMT

WallTime date_of(std::string_view value) { return parse_http_date(value, kNow).value(); }

Result<Scenario> with_header(const std::string& value) {
  return parse_scenario(R"({"steps": [{"status": 429, "headers": {"A": )" + value + "}}]}",
                        "s.json");
}

std::string problem(const std::string& value) { return with_header(value).error().message; }

std::string header_of(const std::string& response, const std::string& name) {
  const auto at = response.find(name + ": ");
  REQUIRE(at != std::string::npos);
  const auto begin = at + name.size() + 2;
  return response.substr(begin, response.find("\r\n", begin) - begin);
}

}  // namespace

TEST_CASE("a time header has the three forms") {
  CHECK(TimeHeader("A", 60s).value(kNow) == "Sun, 06 Nov 1994 08:50:37 GMT");
  CHECK(TimeHeader("A", -7s, TimeForm::Epoch).value(kNow) == "784111770");
  CHECK(TimeHeader("A", 5ms, TimeForm::EpochMs).value(kNow) == "784111777005");
}

TEST_CASE("a time is rounded up to the unit of its form, and a Date down") {
  CHECK(TimeHeader("A", 1ns).value(kNow) == "Sun, 06 Nov 1994 08:49:38 GMT");
  CHECK(TimeHeader("A", 1ns, TimeForm::Epoch).value(kNow) == "784111778");
  CHECK(TimeHeader("A", 1ns, TimeForm::EpochMs).value(kNow) == "784111777001");
  CHECK(TimeHeader("date", 1999ms).value(kNow) == "Sun, 06 Nov 1994 08:49:38 GMT");
}

TEST_CASE("a time that no WallTime can be is at the end of the range") {
  const TimeHeader last("A", kForever, TimeForm::Epoch);
  CHECK(last.value(kNow) == "9223372037");
  CHECK(TimeHeader("A", Duration::min(), TimeForm::Epoch).value(WallTime(-1s)) == "-9223372036");
}

TEST_CASE("no wait until a time header is shorter than its offset, nor two seconds longer") {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> any_moment(0, 4'000'000'000'000'000'000);
  std::uniform_int_distribution<std::int64_t> any_offset(1, 1'000'000'000'000);
  for (int i = 0; i < 2000; ++i) {
    const WallTime now{Duration(any_moment(random))};
    const Duration offset(any_offset(random));
    CAPTURE(now.time_since_epoch().count());
    CAPTURE(offset.count());
    const auto date = date_of(TimeHeader("A", offset).value(now));
    CHECK(date - now >= offset);
    CHECK(date - now < offset + 1s);
    CHECK(date - date_of(TimeHeader("Date", 0s).value(now)) >= offset);
    CHECK(http_date(std::chrono::floor<std::chrono::seconds>(date)) ==
          TimeHeader("A", offset).value(now));
  }
}

TEST_CASE("an offset is a number of seconds or a duration") {
  CHECK(parse_offset("now") == 0s);
  CHECK(parse_offset("now+60") == 60s);
  CHECK(parse_offset("now+1.5") == 1500ms);
  CHECK(parse_offset("now-5") == -5s);
  CHECK(parse_offset("now-2m30s") == -150s);
  CHECK(parse_offset("now+365h") == 365h);
  for (const auto* text : {"", "no", "60", "+60", "Now+60", "now 60", "now+", "now+-5", "now+1m30",
                           "now+.5", "now+5x", "now+525601m", "now+9000h", "now+60 "}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(parse_offset(text).has_value());
  }
}

TEST_CASE("a header of a scenario file may be a time, also in a list") {
  const auto parsed =
      with_header(R"([{"at": "now+60"}, "5", {"at": "now-1.5", "as": "epoch-ms"}])");
  REQUIRE(parsed);
  const auto& step = parsed->steps.at(0);
  CHECK(step.headers == Headers{{"A", "5"}});
  REQUIRE(step.time_headers.size() == 2);
  CHECK(step.time_headers[0].value(kNow) == "Sun, 06 Nov 1994 08:50:37 GMT");
  CHECK(step.time_headers[1].value(kNow) == "784111775500");
  CHECK(with_header(R"({"at": "now", "as": "epoch"})")->steps[0].time_headers[0].value(kNow) ==
        "784111777");
}

TEST_CASE("a wrong time in a scenario file is named with its place") {
  CHECK(problem(R"({"at": "soon"})") ==
        "s.json:1:52: /steps/0/headers/A/at: \"soon\" is not a time: write it like \"now+60\", "
        "\"now-1.5s\" or \"now+2m\", at most 365 days away");
  CHECK(
      problem(R"({"at": 60})").find(":1:52: /steps/0/headers/A/at: expected a string, found 60") !=
      std::string::npos);
  CHECK(problem(R"({"at": "now", "as": "epoch_ms"})").find("\"epoch_ms\" is not one of") !=
        std::string::npos);
  CHECK(problem(R"({"at": "now", "in": 1})").find("/in: unknown key") != std::string::npos);
  CHECK(problem(R"({"as": "epoch"})").find("\"at\"") != std::string::npos);
  const auto bad_name = parse_scenario(
      R"({"steps": [{"status": 200, "headers": {"a b": {"at": "now"}}}]})", "s.json");
  CHECK(bad_name.error().message.find("this cannot be sent as a header") != std::string::npos);
}

TEST_CASE("the fault server sends the time of the response, after its delay") {
  Step step(429);
  step.delay = 30ms;
  step.time_headers = {{"X-Reset", 60s, TimeForm::EpochMs}, {"Retry-After", 60s}};
  const FaultServer server({step});
  RawClient client(server.port());
  const auto response = client.ask(get());
  const auto arrived = server.seen().at(0).arrived_wall;
  const WallTime reset{std::chrono::milliseconds(std::stoll(header_of(response, "X-Reset")))};
  CHECK(reset - arrived >= 60s + 30ms);
  CHECK(reset - 60s <= std::chrono::system_clock::now() + 1ms);
  CHECK(date_of(header_of(response, "Retry-After")) >= reset - 1ms);
}

TEST_CASE("the fault server sends times over HTTP/2, too") {
  Step step(429);
  step.time_headers = {{"X-Reset", 60s, TimeForm::EpochMs}};
  Scenario scenario({step});
  scenario.paths.emplace("/fault", Script({Fault::Http2NoEndStream}));
  const FaultServer server(scenario);
  auto request = Request::get(server.url());
  request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  const WallTime reset{
      std::chrono::milliseconds(std::stoll(std::string(outcome->headers["x-reset"])))};
  CHECK(reset - server.seen().at(0).arrived_wall >= 60s);
}

TEST_CASE("a time header that no server can send is refused before it listens") {
  Step step(200);
  step.time_headers = {{"a b", 1s}};
  CHECK_THROWS_AS(FaultServer{Scenario(std::vector{step})}, std::invalid_argument);
  ScriptedTransport network;
  CHECK_THROWS_AS(network.say(Response(200), {{"a b", 1s}}), std::invalid_argument);
}

TEST_CASE("the scripted transport tells the time of the virtual clock, after the step's delay") {
  ClientOptions options;
  options.middlewares = {};
  options.scheduler = std::make_shared<ManualScheduler>(kNow);
  const auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(429), {{"Retry-After", 60s}}, 10s).say(Response(200));
  options.transport = network;
  Client client(options);
  const auto busy = client.get("http://x/");
  REQUIRE(busy);
  CHECK(busy->headers == Headers{{"Retry-After", "Sun, 06 Nov 1994 08:50:47 GMT"}});
  CHECK(client.get("http://x/")->headers.empty());
}

TEST_CASE("an error has time headers only where a response came with it") {
  ClientOptions options;
  options.middlewares = {};
  options.scheduler = std::make_shared<ManualScheduler>(kNow);
  const auto network = std::make_shared<ScriptedTransport>();
  Error cut_off(Errc::Receive, "cut off");
  cut_off.status = 503;
  network->say(cut_off, {{"A", 1s, TimeForm::Epoch}});
  network->say(Error(Errc::Connect, "refused"), {{"A", 1s}});
  options.transport = network;
  Client client(options);
  CHECK(client.get("http://x/").error().headers == Headers{{"A", "784111778"}});
  CHECK(client.get("http://x/").error().headers.empty());
}
