// Shared limits whose server is away, slow, emptied or full, or whose address or password is wrong.
#include "limits.hpp"
#include "lines.hpp"
#include "slow_proxy.hpp"

#include <httpretry/fleet/redis.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::fleet;
using namespace std::chrono_literals;

TEST_CASE("a server that stands still is away: reported once, and back by itself") {
  Lines lines;
  RedisServer server;
  Sender sender(patient(server, 500ms, 4), rate_of(400, 1h, 100));
  REQUIRE(sender.send());
  REQUIRE(sender.state().changes() == 0);
  server.suspend();
  CHECK(sender.wait_until([&] { return sender.state().changes() == 1; }));
  CHECK(sender.state().last_change().degraded);
  CHECK(sender.state().last_change().place ==
        "redis://127.0.0.1:" + std::to_string(server.port()) + "/0");
  // Its share: 25 at once, and no reply is waited for.
  int sent = 0;
  while (!sender.begin(0s).refused()) ++sent;
  CHECK(sent == 25);
  CHECK(lines.count("this process continues with 1/4 of each limit") == 1);
  server.resume();
  CHECK(sender.wait_until([&] { return sender.state().changes() == 2; }));
  CHECK(!sender.state().last_change().degraded);
  CHECK(lines.wait_for("limits are shared again"));
  CHECK(sender.send());
}

TEST_CASE("if the network delays by two seconds, each process uses its share") {
  Lines lines;
  RedisServer server;
  SlowProxy proxy(server.port());
  Sender sender(patient(proxy.port(), 500ms, 4), rate_of(400, 1h, 100));
  REQUIRE(sender.send());
  proxy.set_delay(2s);
  CHECK(sender.wait_until([&] { return sender.state().changes() == 1; }));
  int sent = 0;
  while (!sender.begin(0s).refused()) ++sent;
  CHECK(sent == 25);
  proxy.set_delay(0s);
  CHECK(sender.wait_until([&] { return sender.state().changes() == 2; }));
  CHECK(sender.send());
  CHECK(lines.count("limits are not shared") == 1);
}

TEST_CASE("without a server, calls go on with a share of the limits") {
  Lines lines;
  RedisServer server;
  server.stop();
  Sender sender(patient(server, 500ms, 2), slots_of(8));
  std::vector<Sender::Sent> under_way;
  for (int count = 0; count < 4; ++count) under_way.push_back(sender.begin());
  for (const auto& sent : under_way) CHECK(!sent.refused());
  CHECK(sender.begin(0s).refused());
  CHECK(lines.count("limits are not shared") == 1);
  server.start();
  // The sends that are still in flight count, too.
  CHECK(sender.wait_until([&] { return !sender.begin(0s).refused(); }));
}

TEST_CASE("without a server, the only process has all of each limit, from its first send on") {
  RedisServer server;
  server.stop();
  const auto state = patient(server, 500ms, 1);
  Sender other(state, slots_of(1), "https://other.example.com");
  CHECK(other.wait_until([&] { return !other.begin(0s).refused(); }));  // the server is away
  Sender first(state, slots_of(2));
  CHECK(!first.begin(0s).refused());
  CHECK(!first.begin(0s).refused());
  CHECK(first.begin(0s).refused());
  // Others with these limits in the same process, too.
  Sender second(state, slots_of(2));
  CHECK(second.begin(0s).refused());
}

TEST_CASE("limits begin anew after FLUSHALL, and go on after SCRIPT FLUSH and a restart") {
  Lines lines;
  RedisServer server;
  const auto policy = rate_of(1, 1h, 2);
  Sender first(patient(server), policy);
  CHECK(first.send());
  CHECK(first.send());
  Sender second(patient(server), policy);
  CHECK(second.begin(200ms).refused());
  // Until it has heard of the shared one, each has its own.
  CHECK(first.wait_until([&] { return second.state().salt() == first.state().salt(); }));
  CHECK(run(server, {"FLUSHALL"}).text == "OK");
  Sender third(patient(server), policy);
  CHECK(third.send());
  CHECK(run(server, {"SCRIPT", "FLUSH"}).text == "OK");
  Sender fourth(patient(server), policy);
  CHECK(fourth.send());
  CHECK(lines.count("limits are not shared") == 0);
  CHECK(third.wait_until([&] { return third.state().salt() == fourth.state().salt(); }));
  server.stop();
  CHECK(third.wait_until([&] { return third.state().last_change().degraded; }));
  server.start();
  CHECK(third.wait_until([&] { return !third.state().last_change().degraded; }));
  CHECK(third.send());
}

TEST_CASE("a password is used, and a wrong one is reported") {
  Lines lines;
  RedisServer server({"--requirepass", "open sesame"});
  const auto at = "@127.0.0.1:" + std::to_string(server.port());
  Sender wrong(redis("redis://:hush" + at), rate_of(100, 1s, 1));
  CHECK(lines.wait_for("invalid username-password pair"));
  CHECK(lines.count("hush") == 0);
  CHECK(wrong.send());
  const auto right = redis("redis://:open%20sesame" + at + "/3");
  // In that database.
  Sender sender(right, rate_of(1, 1h, 1));
  CHECK(sender.send());
  Link::Options options;
  options.address = parse_address("redis://:open%20sesame" + at + "/3").value();
  Link link(std::move(options));
  CHECK(sender.wait_until([&] { return ask(link, {"DBSIZE"}).integer >= 2; }));
}

TEST_CASE("an invalid URL, and one that asks for TLS, are errors with the reason") {
  const auto problem_of = [](const char* url) -> std::string {
    try {
      return redis(url) ? "" : "";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  CHECK(problem_of("http://h").find("position 1") != std::string::npos);
  CHECK(problem_of("rediss://h").find("has no TLS") != std::string::npos);
  CHECK(problem_of("redis://h/0?job=a").find("'job'") != std::string::npos);
}

TEST_CASE("harmful settings of a server are reported") {
  Lines lines;
  RedisServer server({"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"});
  const auto state = redis(server.url());
  CHECK(lines.wait_for("maxmemory-policy is allkeys-lru"));
  CHECK(lines.count("set it to noeviction") == 1);
}

TEST_CASE("if a server takes no more writes, each process uses its share") {
  Lines lines;
  RedisServer server({"--maxmemory", "1"});
  Sender sender(patient(server, 5s, 2), rate_of(100, 1h, 10));
  CHECK(lines.wait_for("OOM"));
  int sent = 0;
  while (!sender.begin(100ms).refused()) ++sent;
  CHECK(sent == 5);
}
