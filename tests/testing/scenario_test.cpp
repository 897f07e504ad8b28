#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace raw;

namespace {

std::vector<int> statuses(const FaultServer& server, int requests, std::string_view path = "/") {
  std::vector<int> all;
  for (int i = 0; i < requests; ++i) {
    RawClient client(server.port());
    all.push_back(status_of(client.ask(get(path))));
  }
  return all;
}

}  // namespace

TEST_CASE("a script of one step is written like one of several") {
  const Script one({{503}});
  REQUIRE(one.steps.size() == 1);
  CHECK(one.steps[0].status == 503);
  const Script two({Fault::Reset, {200, "mended"}});
  CHECK(two.steps.size() == 2);
}

TEST_CASE("every fault can be parsed from its word") {
  for (int i = 0; i <= static_cast<int>(Fault::Resolve); ++i) {
    const auto fault = static_cast<Fault>(i);
    CHECK_FALSE(to_string(fault).empty());
    CHECK(parse_fault(to_string(fault)) == fault);
  }
  CHECK(parse_fault("timeout") == Fault::Hang);
  CHECK(parse_fault("hang") == Fault::Hang);
  CHECK(parse_fault("tls") == Fault::TlsReset);
  CHECK_FALSE(parse_fault("refuse").has_value());
  CHECK_FALSE(parse_fault("").has_value());
}

TEST_CASE("each request takes the next step, on any connection, and the last step repeats") {
  FaultServer server({503, 429, 200});

  RawClient kept(server.port());
  CHECK(status_of(kept.ask(get())) == 503);
  CHECK(statuses(server, 1) == std::vector{429});
  CHECK(status_of(kept.ask(get())) == 200);
  CHECK(statuses(server, 2) == std::vector{200, 200});

  CHECK(server.connections() == 4);
  std::vector<std::size_t> steps;
  for (const auto& request : server.seen()) steps.push_back(request.step.value());
  CHECK(steps == std::vector<std::size_t>{0, 1, 2, 2, 2});
}

TEST_CASE("a step is taken `times` times, and `restart` starts again after the last one") {
  Scenario scenario({503, 200});
  scenario.steps[0].times = 2;
  scenario.then = Then::Restart;
  FaultServer server(scenario);

  CHECK(statuses(server, 7) == std::vector{503, 503, 200, 503, 503, 200, 503});
}

TEST_CASE("with `then` close, requests after the last step get a FIN and are counted") {
  Scenario scenario({200});
  scenario.then = Then::Close;
  FaultServer server(scenario);

  CHECK(statuses(server, 2) == std::vector{200, 0});
  RawClient client(server.port());
  client.send(get());
  CHECK(client.read_to_end().empty());
  CHECK(client.end() == raw::End::Fin);
  CHECK(server.requests() == 3);
  CHECK_FALSE(server.seen().back().step.has_value());
}

TEST_CASE("a path with its own steps does not use the server's steps, nor the reverse") {
  Scenario scenario({500, 501, 502});
  scenario.paths.emplace("/a", Script({400, 401}));
  scenario.paths.emplace("/b", Script({410}));
  FaultServer server(scenario);

  CHECK(statuses(server, 1) == std::vector{500});
  CHECK(statuses(server, 1, "/a?query") == std::vector{400});
  CHECK(statuses(server, 1, "/b") == std::vector{410});
  CHECK(statuses(server, 1, "/c") == std::vector{501});
  CHECK(statuses(server, 2, "/a") == std::vector{401, 401});
  CHECK(statuses(server, 1, "/a/b") == std::vector{502});
}

TEST_CASE("the paths of a scenario file begin with a slash") {
  const auto parsed = [](const std::string& path) {
    return parse_scenario(R"({"steps": [{"status": 200}], "paths": {")" + path +
                              R"(": {"steps": [{"status": 500}]}}})",
                          "s.json");
  };
  CHECK(parsed("/a").value().paths.at("/a").steps.at(0).status == 500);
  CHECK(parsed("a").error().message == "s.json:1:40: /paths/a: a path starts with \"/\"");
}

TEST_CASE("the headers of a scenario file are texts, times, or lists of them") {
  const auto parsed = [](const std::string& value) {
    return parse_scenario(R"({"steps": [{"status": 200, "headers": {"A": )" + value + "}}]}",
                          "s.json");
  };
  CHECK(parsed(R"("1")").value().steps.at(0).headers.get("A") == "1");
  CHECK(parsed(R"(["1", "2"])").value().steps.at(0).headers.size() == 2);
  CHECK(parsed("5").error().message ==
        "s.json:1:45: /steps/0/headers/A: expected a string or {\"at\": \"now+60\"}, found 5");
  CHECK(parsed(R"(["1", 5])").error().message.find("found 5") != std::string::npos);
}

TEST_CASE("what is wrong with a scenario file is said at its position") {
  const auto problem_of = [](const char* json) {
    return parse_scenario(json, "s.json").error().message;
  };
  CHECK(problem_of(R"({"steps": [{"status": 199}]})") ==
        "s.json:1:23: /steps/0/status: 199 is out of range: 200 to 999");
  CHECK(problem_of(R"({"steps": [{"status": 1000}]})") ==
        "s.json:1:23: /steps/0/status: 1000 is out of range: 200 to 999");
  CHECK(problem_of(R"({"steps": [{"status": 200, "times": 0}]})") ==
        "s.json:1:37: /steps/0/times: 0 is out of range: at least 1");
  CHECK(problem_of(R"({"steps": [{"fault": 5}]})") ==
        "s.json:1:22: /steps/0/fault: expected a string, found 5");
  CHECK(problem_of(R"({"steps": []})") == "s.json:1:11: /steps: there must be at least one step");
  CHECK(problem_of(R"({"steps": [{}]})") ==
        "s.json:1:12: /steps/0: a step has a \"status\" or a \"fault\"");
  CHECK(problem_of(R"({"steps": [{"status": 200}], "then": "stop"})") ==
        "s.json:1:38: /then: \"stop\" is not one of repeat_last, restart, close");
}

TEST_CASE("a scenario file has the bounds of its keys, and all of them in a step") {
  const auto scenario = parse_scenario(
      R"({"then": "restart", "steps": [
          {"status": 999, "times": 1, "size": 0, "delay": "1s", "interval": "2s", "body": "b"},
          {"fault": "hang"}]})",
      "s.json");
  REQUIRE(scenario);
  CHECK(scenario->then == Then::Restart);
  REQUIRE(scenario->steps.size() == 2);
  const auto& step = scenario->steps[0];
  CHECK(step.status == 999);
  CHECK(step.times == 1);
  CHECK(step.size == 0);
  CHECK(step.delay == std::chrono::seconds(1));
  CHECK(step.interval == std::chrono::seconds(2));
  CHECK(step.body == "b");
  CHECK(step.fault == Fault::None);
  CHECK(scenario->steps[1].fault == Fault::Hang);
}

TEST_CASE("a server without steps responds with 200") {
  FaultServer server;
  CHECK(statuses(server, 2) == std::vector{200, 200});
}

TEST_CASE("concurrent requests take each step once") {
  constexpr int kThreads = 8;
  constexpr int kEach = 25;
  std::vector<Step> steps;
  for (int i = 0; i < kThreads * kEach; ++i) steps.emplace_back(200 + i);
  FaultServer server{Scenario(steps)};

  std::vector<std::vector<int>> answers(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : answers) {
    threads.emplace_back([&] {
      RawClient client(server.port());
      for (int i = 0; i < kEach; ++i) mine.push_back(status_of(client.ask(get())));
    });
  }
  for (auto& thread : threads) thread.join();

  std::vector<int> times(steps.size());
  for (const auto& mine : answers) {
    for (const int status : mine) ++times.at(static_cast<std::size_t>(status - 200));
  }
  CHECK(times == std::vector<int>(steps.size(), 1));
}

TEST_CASE("an invalid scenario throws before the server listens") {
  Step never(200);
  never.times = 0;
  Step back_in_time(200);
  back_in_time.delay = std::chrono::seconds(-1);
  Step fast(200);
  fast.interval = std::chrono::seconds(-1);
  Step final_interim(200);
  final_interim.interims = {200};
  Step no_interim(200);
  no_interim.interims = {99};
  Scenario bad_path({200});
  bad_path.paths.emplace("/a", Script({100}));

  for (const auto& step :
       {Step(199), Step(1000), never, back_in_time, fast, final_interim, no_interim}) {
    CHECK_THROWS_AS(FaultServer{Scenario(std::vector{step})}, std::invalid_argument);
  }
  CHECK_THROWS_AS(FaultServer{bad_path}, std::invalid_argument);
}

TEST_CASE("a server has every status from 200 to 999, and interim ones from 100 to 199") {
  Step step(999);
  step.interims = {100, 199};
  FaultServer server({step});
  RawClient client(server.port());
  client.send(get());
  CHECK(client.read_until([](const auto& text) { return text.find(" 999 ") != text.npos; })
            .starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 199 \r\n\r\nHTTP/1.1 999 "));
}
