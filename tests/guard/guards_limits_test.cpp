// Pauses, rates and limits of concurrent sends, through the middleware.
#include "world.hpp"

#include "lib/core/guard/detail/limits.hpp"

#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <random>
#include <stdexcept>

using namespace httpretry;
using namespace httpretry::guard_tests;
using namespace std::chrono_literals;

namespace {

std::string with(const std::string& blocks) { return R"({"max_attempts": 1, )" + blocks + "}"; }

// The first request is throttled.
void throttle_first(World& world, const std::string& name, const std::string& value) {
  world.server->answer = [=](const Request&, int number) {
    return number > 1 ? Reply(200) : Reply(429).header(name, value);
  };
}

// A rate and a limit of concurrent sends that does not matter.
std::string rate(const std::string& limit, const std::string& more = "") {
  return with(R"("rate": {"limit": ")" + limit + "\"" + more + "}");
}

}  // namespace

TEST_CASE("rate: a burst, then evenly spaced") {
  World world(rate("1/s", R"(, "burst": 5)"));
  const auto calls = world.run(at({0s, 0s, 0s, 0s, 0s, 0s}));
  CHECK(world.sends() == Durations{0s, 0s, 0s, 0s, 0s, 1s});
  const auto& attempt = calls[5].history().attempts.front();
  CHECK(attempt.queued_by == QueuedBy::Rate);
  CHECK(attempt.exchange().timings.queued == 1s);
  REQUIRE(calls[5].history().guards);
  CHECK(calls[5].history().guards->limits->rate_wait == 1s);
  CHECK(calls[0].history().attempts.front().queued_by == QueuedBy::Nothing);
}

TEST_CASE("rate: without waiting, what may not go out is refused, and takes nothing") {
  World five(rate("1/s", R"(, "burst": 5, "max_wait": "0s")"));
  // Six, of which five go; at 3 s there are three tokens, and so on.
  auto calls = five.run(at({0s, 0s, 0s, 0s, 0s, 0s, 3s, 3s, 3s, 3s, 8s, 8s, 8s, 8s, 8s, 8s}));
  CHECK(five.sends() == Durations{0s, 0s, 0s, 0s, 0s, 3s, 3s, 3s, 8s, 8s, 8s, 8s, 8s});
  CHECK(calls[5].code() == Errc::RateLimited);
  CHECK(calls[5].history().stop_reason == Reason::RateLimited);
  CHECK(calls[5].history().attempts.empty());

  World ten(rate("10/s", R"(, "burst": 5, "max_wait": "0s")"));
  calls = ten.run(
      at({0s, 0s, 0s, 0s, 0s, 0s, 0s, 50ms, 100ms, 350ms, 350ms, 350ms, 1s, 1s, 1s, 1s, 1s, 1s}));
  CHECK(ten.sends() == Durations{0s, 0s, 0s, 0s, 0s, 100ms, 350ms, 350ms, 1s, 1s, 1s, 1s, 1s});
  const auto end = ten.clock->wall_now();  // at 1 s
  const auto wait = [&](std::size_t call) {
    return *calls[call].history().retry_at - (end - (1s - calls[call].at));
  };
  CHECK(wait(5) == 100ms);
  CHECK(wait(6) == 100ms);
  CHECK(wait(7) == 50ms);
  CHECK(wait(11) == 50ms);
  CHECK(wait(17) == 100ms);
}

TEST_CASE("rate: one that is canceled in its sleep makes no two come closer") {
  World world(rate("10/s"));
  auto plans = at_once(5);
  plans[2].canceled = 150ms;
  const auto calls = world.run(plans);
  CHECK(calls[2].code() == Errc::Canceled);
  CHECK(world.sends() == Durations{0ms, 100ms, 200ms, 300ms});
}

TEST_CASE("rate: a wait past the deadline is told at once, with the time to come back") {
  World world(rate("1/s"));
  const auto began = world.clock->wall_now();
  auto plans = at_once(3);
  plans[2].timeout = 1500ms;
  const auto calls = world.run(plans);
  CHECK(calls[2].code() == Errc::RateLimited);
  CHECK(calls[2].at == 0s);
  CHECK(calls[2].history().retry_at == began + 2s);
}

TEST_CASE("rate: retries take tokens, too, and hosts have their own") {
  World world(R"({"max_attempts": 2, "budget": "none", "rate": {"limit": "1/s"},
      "backoff": {"kind": "constant", "interval": "100ms"}})");
  world.server->answer = [](const Request&, int number) { return Reply(number == 1 ? 503 : 200); };
  Plan other;
  other.url = "http://y/";
  world.run({Plan(), other});
  CHECK(world.sends() == Durations{0s, 0s, 1s});
}

TEST_CASE("rate: the waits of all attempts of a call add up") {
  World world(R"({"max_attempts": 3, "budget": "none", "rate": {"limit": "1/s"},
      "backoff": {"kind": "constant", "interval": "100ms"}})");
  world.server->answer = [](const Request&, int number) { return Reply(number < 3 ? 503 : 200); };
  const auto call = world.call();
  CHECK(world.sends() == Durations{0s, 1s, 2s});
  REQUIRE(call.history().guards);
  REQUIRE(call.history().guards->limits);
  CHECK(call.history().guards->limits->rate_wait == 1800ms);
}

TEST_CASE("rate: a request that costs more than the burst can never be sent") {
  const auto sent = [](const RatePolicy& limit, std::uint64_t cost) {
    RetryPolicy policy;
    policy.guards.rate = limit;
    auto network = std::make_shared<ScriptedTransport>();
    network->say(Response(200));
    ClientOptions options;
    options.middlewares = {retry(policy), guards()};
    options.scheduler = std::make_shared<ManualScheduler>();
    options.transport = network;
    auto request = Request::get("http://x/");
    request.edit_options().cost = cost;
    const auto outcome = Client(options).send(std::move(request));
    CHECK(network->requests().size() == (outcome ? 1U : 0U));
    CHECK((outcome || outcome.error().permanent));
    return outcome ? std::string("sent") : outcome.error().message;
  };
  const auto refusal = [](const std::string& cost, const std::string& burst) {
    return "the request costs " + cost + ", but the rate of http://x allows at most " + burst +
           " at once (its burst)";
  };
  auto limits = RatePolicy::of_cost(10, 1s);
  CHECK(sent(limits, 10) == "sent");
  CHECK(sent(limits, 11) == refusal("11", "10"));
  limits.further = {RatePolicy::of_requests(1, 1s), RatePolicy::of_cost(7, 1s)};
  CHECK(sent(limits, 7) == "sent");
  CHECK(sent(limits, 8) == refusal("8", "7"));
  CHECK(sent(limits, 11) == refusal("11", "10"));
  CHECK(sent(RatePolicy::of_requests(1, 1s), 1000) == "sent");
}

TEST_CASE("rate: at most burst and rate in any second") {
  std::mt19937 engine(19);
  std::uniform_int_distribution<int> rates(1, 50), bursts(1, 20), times(0, 5000);
  for (int run = 0; run < rounds(60); ++run) {
    const auto requests = rates(engine);
    const auto burst = bursts(engine);
    CAPTURE(requests);
    CAPTURE(burst);
    World world(rate(std::to_string(requests) + "/s", R"(, "burst": )" + std::to_string(burst)));
    std::vector<Plan> plans(200);
    for (auto& plan : plans) {
      plan.at = times(engine) * 1ms;
      if (times(engine) < 1000) plan.canceled = plan.at + times(engine) * 1ms;
      if (times(engine) < 500) plan.timeout = times(engine) * 1ms;
    }
    std::sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.at < b.at; });
    world.run(plans);
    const auto sends = world.sends();
    const auto most = static_cast<std::size_t>(requests + burst);
    for (std::size_t i = most; i < sends.size(); ++i) CHECK(sends[i] - sends[i - most] >= 1s);
  }
}

TEST_CASE("concurrency: so many at once, the rest as they came") {
  World world(with(R"("concurrency": {"max": 2})"));
  world.server->answer = [](const Request&, int) { return Reply(200, 100ms); };
  const auto calls = world.run(at_once(5));
  CHECK(world.sends() == Durations{0ms, 0ms, 100ms, 100ms, 200ms});
  const auto& last = calls[4].history();
  CHECK(last.attempts.front().queued_by == QueuedBy::Concurrency);
  CHECK(last.guards->limits->limit == 2);
}

TEST_CASE("concurrency: the queue has an end, and a time") {
  World full(with(R"("concurrency": {"max": 1, "queue": {"max": 2}})"));
  full.server->answer = [](const Request&, int) { return Reply(200, 100ms); };
  auto calls = full.run(at_once(5));
  CHECK(full.sends().size() == 3);
  CHECK(calls[3].code() == Errc::QueueFull);
  CHECK(calls[4].at == 0s);
  CHECK(calls[3].history().stop_reason == Reason::QueueFull);

  World slow(with(R"("concurrency": {"max": 1, "queue": {"timeout": "150ms"}})"));
  slow.server->answer = [](const Request&, int) { return Reply(200, 100ms); };
  calls = slow.run(at_once(3));
  CHECK(calls[2].code() == Errc::QueueFull);
  CHECK(calls[2].at == 150ms);

  World last_first(
      with(R"("concurrency": {"max": 1, "queue": {"order": "lifo", "timeout": "1m"}})"));
  last_first.server->answer = [](const Request&, int) { return Reply(200, 100ms); };
  calls = last_first.run(at_once(3));
  CHECK(calls[2].at == 200ms);
  CHECK(calls[1].at == 300ms);
}

TEST_CASE("concurrency: the queue limits the wait for a slot, not that for the rate or a pause") {
  const auto rated = [](const std::string& queue) {
    return with(R"("rate": {"limit": "1/s"}, "concurrency": {"max": 64, "queue": )" + queue + "}");
  };
  for (const std::string queue : {R"({"max": 0})", R"({"max": 1})", R"({"timeout": "1500ms"})"}) {
    World world(rated(queue));
    CHECK(refused(world.run(at({0s, 100ms, 200ms, 300ms}))) == 0);
    CHECK(world.sends() == Durations{0s, 1s, 2s, 3s});
  }

  World paused(with(R"("concurrency": {"max": 64, "queue": {"timeout": "1s"}})"));
  throttle_first(paused, "Retry-After", "10");
  auto plans = at({0s, 1s, 1s});
  plans[2].timeout = 5s;
  const auto calls = paused.run(plans);
  CHECK(calls[1].at == 10s);
  CHECK(calls[2].at == 1s);  // at once
  CHECK(calls[2].code() == Errc::Paused);
  CHECK(calls[2].history().retry_at);
}

TEST_CASE("concurrency: the wait for a slot begins when a pause is over") {
  const auto ends_after_pause_of_10s = [](const std::string& queue) {
    World world(
        with(R"("pause": {"resume": "all"}, "concurrency": {"max": 1, "queue": )" + queue + "}"));
    world.server->answer = [](const Request&, int number) {
      return number > 1 ? Reply(200, 4s) : Reply(429).header("Retry-After", "10");
    };
    const auto calls = world.run(at({0s, 1s, 1s, 1s}));
    Durations ends;
    for (const auto& call : calls) ends.push_back(call.at);
    CHECK(refused(calls) == 4 - static_cast<int>(world.sends().size()));
    return ends;
  };
  CHECK(ends_after_pause_of_10s(R"({"max": 0})") == Durations{0s, 14s, 10s, 10s});
  CHECK(ends_after_pause_of_10s(R"({"timeout": "3s"})") == Durations{0s, 14s, 13s, 13s});
  CHECK(ends_after_pause_of_10s(R"({"timeout": "5s"})") == Durations{0s, 14s, 18s, 15s});
}

TEST_CASE("concurrency: high before normal before low, and low is not forgotten") {
  World world(with(R"("concurrency": {"max": 1})"));
  world.server->answer = [](const Request&, int) { return Reply(200, 100ms); };
  auto plans = at_once(13);
  plans[1].priority = Priority::Low;
  for (std::size_t i = 3; i < plans.size(); ++i) plans[i].priority = Priority::High;
  const auto calls = world.run(plans);
  CHECK(calls[3].at == 200ms);   // before the normal one
  CHECK(calls[1].at == 1000ms);  // every tenth turn is one of the lowest
  CHECK(calls[2].at == 1300ms);
}

namespace {

// Four of five slots are in use until 100 s, and one until 1 s.
void use_slots(World& world) {
  world.server->answer = [](const Request&, int number) {
    return Reply(200, number == 1 ? 1s : number <= 5 ? 100s : 0s);
  };
}

Plan send_of(Priority priority, Duration at) {
  Plan plan;
  plan.priority = priority;
  plan.at = at;
  return plan;
}

}  // namespace

TEST_CASE("priority: on the tenth turn, a low one takes the slot that is kept for others") {
  World world(with(R"("pause": "none", "concurrency": {"max": 5})"));
  world.server->answer = [](const Request&, int number) {
    return Reply(200, number <= 4 ? 0s : number == 5 || number > 9 ? 1s : 100s);
  };
  auto plans = at_once(9);
  plans.push_back(send_of(Priority::Low, 500ms));
  plans.push_back(send_of(Priority::Low, 500ms));
  plans.push_back(send_of(Priority::High, 3s));
  world.run(plans);
  const auto sends = world.sends();
  REQUIRE(sends.size() == 12);
  CHECK(Durations(sends.begin() + 9, sends.end()) == Durations{1s, 2s, 3s});
}

TEST_CASE("priority: a new send takes at once the slot that waiting ones of low priority leave") {
  World world(with(R"("pause": "none", "concurrency": {"max": 5})"));
  use_slots(world);
  auto plans = at_once(5);
  plans.insert(plans.end(), 2, send_of(Priority::Low, 500ms));
  plans.push_back(send_of(Priority::High, 3s));
  CHECK(world.run(plans)[7].at == 3s);
}

TEST_CASE("priority: low goes out when no other send waits any more, whatever queue it was in") {
  for (const bool is_canceled : {true, false}) {
    for (const std::string url : {"http://x/", "http://y/"}) {
      World world(with(R"("pause": "none", "concurrency": {"max": 5, "scope": "policy"})"));
      use_slots(world);
      auto plans = at_once(5);
      plans.insert(plans.end(), 2, send_of(Priority::Low, 500ms));
      plans[6].url = url;
      if (is_canceled) plans[6].canceled = 2s;
      if (!is_canceled) plans[6].timeout = 1500ms;
      const auto calls = world.run(plans);
      CHECK(calls[6].at == 2s);
      CHECK(calls[5].at == 2s);
    }
  }
}

TEST_CASE("concurrency: aimd follows how the sends end") {
  const auto changes = [](const std::string& min) {
    World world(
        with(R"("concurrency": {"kind": "aimd", "max": 100, "initial": 20, "min": )" + min + "}"));
    bool good = true;
    world.server->answer = [&](const Request&, int) {
      return good ? Reply(200, 10ms) : Reply(Error(Errc::Receive, "reset"), 10ms);
    };
    world.run(at_once(60));  // ten are enough to look at the limit
    good = false;
    world.run(at_once(40, world.now()));
    return world.heard->lines;
  };
  Lines expected{"limit 20 to 21", "limit 21 to 22", "limit 22 to 23", "limit 23 to 24",
                 "limit 24 to 25", "limit 25 to 22", "limit 22 to 20"};
  CHECK(changes("20") == expected);
  expected.back() = "limit 22 to 19";
  expected.insert(expected.end(), {"limit 19 to 17", "limit 17 to 15"});
  CHECK(changes("1") == expected);
}

TEST_CASE("pause: one of fifty is throttled, and none goes out until its time; then a few") {
  World world(R"({"max_attempts": 2, "max_elapsed_time": "1h", "budget": "none",
      "backoff": {"kind": "constant", "interval": "1ms"}, "server_delay": {"spread": 0}})");
  world.server->answer = [](const Request&, int number) {
    if (number == 7) return Reply(429, 10ms).header("Retry-After", "7");
    return Reply(200, 100ms);
  };
  auto plans = at_once(50);
  for (int i = 0; i < 20; ++i) plans.emplace_back().at = 1s;
  world.run(plans);
  auto sends = world.sends();
  REQUIRE(sends.size() == 71);
  CHECK(sends[49] == 0s);
  const Durations after(sends.begin() + 50, sends.end());
  Durations expected;
  auto time = Duration(7010ms);
  for (std::size_t width = 1; expected.size() < after.size(); width *= 2, time += 100ms) {
    expected.insert(expected.end(), std::min(width, after.size() - expected.size()), time);
  }
  CHECK(after == expected);
  CHECK(world.heard->lines == Lines{"pause 7s retry-after", "resumed"});
}

TEST_CASE("pause: who has no time for it is told at once") {
  World world(with(R"("server_delay": {"max": "1h"}, "max_elapsed_time": "2h")"));
  throttle_first(world, "Retry-After", "7");
  world.call();
  Plan plan;
  plan.timeout = 5s;
  const auto call = std::move(world.run({plan}).front());
  CHECK(call.at == 0s);
  CHECK(call.code() == Errc::Paused);
  CHECK(call.history().stop_reason == Reason::ServerDelayTooLong);
  CHECK(call.history().retry_at == world.clock->wall_now() + 7s);
  CHECK(call.history().attempts.empty());
  CHECK(world.sends().size() == 1);

  World elapsed(with(R"("max_elapsed_time": "3s")"));
  throttle_first(elapsed, "Retry-After", "7");
  elapsed.call();
  const auto other = elapsed.call();
  CHECK(other.code() == Errc::Paused);
  CHECK(other.at == 0s);
}

TEST_CASE("pause: who does not wait for a long one is told at once") {
  World world(with(R"("max_elapsed_time": "1h")"));
  throttle_first(world, "Retry-After", "7");
  auto plans = at({0s, 1s, 1s});
  plans[1].longest_pause = 5s;
  plans[2].longest_pause = 6s;
  const auto calls = world.run(plans);
  CHECK(calls[1].code() == Errc::Paused);
  CHECK(calls[1].at == 1s);
  CHECK(calls[2].at == 7s);
  CHECK(world.sends() == Durations{0s, 7s});
}

TEST_CASE("pause: Retry-After before RateLimit, and of RateLimit what is used up") {
  using Fields = std::vector<std::pair<std::string, std::string>>;
  const auto pause = [](const Fields& headers, int status) {
    World world(with(R"("max_elapsed_time": "1h")"));
    world.server->answer = [&](const Request&, int) {
      Reply reply(status);
      for (const auto& [name, value] : headers) reply = reply.header(name, value);
      return reply;
    };
    world.call();
    return world.heard->lines.empty() ? std::string() : world.heard->lines.front();
  };
  const std::string both = R"("a";r=1;t=7, "b";r=0;t=3)";
  CHECK(pause({{"RateLimit", both}, {"Retry-After", "2"}}, 429) == "pause 2s retry-after");
  CHECK(pause({{"RateLimit", both}}, 429) == "pause 3s ratelimit");
  CHECK(pause({{"RateLimit", both}, {"Retry-After", "2"}}, 200) == "pause 2s retry-after");
  CHECK(pause({{"RateLimit", both}}, 200) == "pause 3s ratelimit");
  CHECK(pause({{"RateLimit", both}}, 404) == "pause 3s ratelimit");
  // Not at all: something is left, it is from a cache, it redirects, it says nothing, it is not
  // requests that are used up.
  CHECK(pause({{"RateLimit", R"("a";r=1;t=7)"}}, 200).empty());
  CHECK(pause({{"RateLimit", both}, {"Age", "4"}}, 200).empty());
  CHECK(pause({{"RateLimit", both}}, 304).empty());
  CHECK(pause({{"RateLimit", both}}, 301).empty());
  CHECK(pause({{"RateLimit", both}, {"Age", "0"}}, 200) == "pause 3s ratelimit");
  CHECK(pause({{"RateLimit", both}, {"RateLimit-Policy", R"("b";q=9;qu="content-bytes")"}}, 200)
            .empty());
  CHECK(pause({{"RateLimit", "r=;t"}}, 200).empty());
  CHECK(pause({{"RateLimit", R"("b";r=0;t=3 junk)"}}, 200).empty());
  CHECK(pause({{"RateLimit", R"("b";r=0)"}}, 200).empty());
  CHECK(pause({{"Retry-After", "2"}}, 200).empty());
}

TEST_CASE("pause: a 503 pauses the host, a 429 the one who sent it") {
  World world(with(R"("max_elapsed_time": "1h")"));
  world.server->answer = [](const Request& request, int) {
    if (request.url() == "http://x/429") return Reply(429).header("Retry-After", "7");
    if (request.url() == "http://x/503") return Reply(503).header("Retry-After", "9");
    return Reply(200);
  };
  Plan throttled, same, other_credentials, other_host, down, after;
  throttled.url = "http://x/429";
  throttled.authorization = "Bearer a";
  same.at = other_credentials.at = other_host.at = 1s;
  same.authorization = "Bearer a";
  other_credentials.authorization = "Bearer b";
  other_host.url = "http://y/";
  other_host.authorization = "Bearer a";
  down.at = 10s;
  down.url = "http://x/503";
  after.at = 11s;
  after.authorization = "Bearer c";
  const auto calls = world.run({throttled, same, other_credentials, other_host, down, after});
  CHECK(calls[1].at == 7s);
  CHECK(calls[2].at == 1s);
  CHECK(calls[3].at == 1s);
  CHECK(calls[5].at == 19s);
}

TEST_CASE("pause: the longest that the policy allows, and none for who does not listen") {
  World bounded(with(R"("max_elapsed_time": "1h", "pause": {"max": "3s"})"));
  throttle_first(bounded, "Retry-After", "7");
  bounded.call();
  CHECK(bounded.heard->lines == Lines{"pause 3s retry-after"});

  struct Row {
    std::string blocks;
    std::string pause;
  };
  // A policy that shortens server delays also shortens pauses.
  for (const auto& row : {Row{R"("server_delay": {"max": "5s", "over_max": "stop"})", "7s"},
                          Row{R"("server_delay": {"max": "5s", "over_max": "clamp"})", "5s"},
                          Row{R"("server_delay": {"max": "5s", "over_max": "clamp"},
                                 "pause": {"max": "3s"})",
                              "3s"},
                          Row{R"("server_delay": {"max_over_own": "2s"})", "2s"}}) {
    World world(with(R"("max_elapsed_time": "1h", )" + row.blocks));
    throttle_first(world, "Retry-After", "7");
    world.call();
    CHECK(world.heard->lines == Lines{"pause " + row.pause + " retry-after"});
  }

  World no_time(with(R"("max_elapsed_time": "1h")"));
  throttle_first(no_time, "Retry-After", "0");
  no_time.call();
  CHECK(no_time.heard->lines.empty());

  World off(with(R"("pause": "none")"));
  throttle_first(off, "Retry-After", "7");
  off.run_in_turn(2);
  CHECK(off.sends() == Durations{0s, 0s});

  World deaf(with(R"("server_delay": {"headers": []})"));
  throttle_first(deaf, "Retry-After", "7");
  deaf.run_in_turn(2);
  CHECK(deaf.sends() == Durations{0s, 0s});

  World no_hint(with(R"("max_elapsed_time": "1h")"));
  no_hint.server->answer = [](const Request&, int) { return Reply(429); };
  no_hint.run_in_turn(2);
  CHECK(no_hint.sends() == Durations{0s, 0s});
}

TEST_CASE("pause: a policy without one, or a time without one, records no limits") {
  const auto state = local_state();
  World paused(with(R"("max_elapsed_time": "1h")"), state);
  CHECK_FALSE(paused.call().history().guards);
  throttle_first(paused, "Retry-After", "7");
  paused.server->seen.clear();
  CHECK_FALSE(paused.call().history().guards);  // the response began the pause
  const auto waited = paused.call();
  REQUIRE(waited.history().guards);
  CHECK(waited.history().guards->limits);
  CHECK(waited.history().attempts.front().queued_by == QueuedBy::Pause);

  throttle_first(paused, "Retry-After", "7");
  paused.server->seen.clear();
  paused.call();
  CHECK_FALSE(state->quiet());
  World off(with(R"("pause": "none")"), state);
  CHECK_FALSE(off.call().history().guards);
}

TEST_CASE("pause: resume: all lets out at once what waits") {
  World world(with(R"("max_elapsed_time": "1h", "pause": {"resume": "all"})"));
  throttle_first(world, "Retry-After", "2");
  world.call();
  world.run(at_once(5));
  CHECK(world.sends() == Durations{0s, 2s, 2s, 2s, 2s, 2s});
}

TEST_CASE("pause: one that begins while others wait for a slot holds them, too") {
  World world(with(R"("max_elapsed_time": "1h", "concurrency": {"max": 1})"));
  world.server->answer = [](const Request&, int number) {
    if (number == 1) return Reply(429, 100ms).header("Retry-After", "2");
    return Reply(200, 100ms);
  };
  world.run(at_once(4));
  CHECK(world.sends() == Durations{0s, 2100ms, 2200ms, 2300ms});
}

TEST_CASE("one pass: forty behind one slot and a breaker that opens at five are five sends") {
  World world(with(R"("concurrency": {"max": 1}, "breaker": {"kind": "consecutive",
      "failures": 5})"));
  world.server->answer = [](const Request&, int) { return Reply(500, 10ms); };
  const auto calls = world.run(at_once(40));
  CHECK(world.sends().size() == 5);
  CHECK(refused(calls) == 35);
  for (const auto& one : calls) CHECK(one.at <= 50ms);
}

TEST_CASE("clients that share a state share what holds them back") {
  const auto state = local_state();
  const auto policy = with(R"("breaker": {"kind": "consecutive", "failures": 1})");
  World one(policy, state);
  World other(policy, state);
  one.server->answer = [](const Request&, int) { return Reply(500); };
  CHECK(one.call().outcome->status == 500);
  CHECK(other.call().code() == Errc::CircuitOpen);
  CHECK(state->states("breaker ", one.clock->now()).size() == 1);
}

TEST_CASE("a call that retry does not make is not held back") {
  auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(200));
  ClientOptions options;
  options.middlewares = {guards()};
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = network;
  Client client(options);
  CHECK(client.get("http://x/"));
}

TEST_CASE("guards above retry would hold nothing back, and is refused") {
  CHECK_THROWS_WITH_AS(Client({guards(), retry()}),
                       "guards is above retry: put it below, so that it applies to each attempt; "
                       "above, it holds nothing back",
                       std::invalid_argument);
}

TEST_CASE("a file that is read again changes the numbers and keeps the state") {
  const auto file = [](const std::string& limit) { return policies(rate(limit)); };
  const auto state = local_state();
  const auto clock = std::make_shared<ManualScheduler>();
  const auto waits = [&](const PolicySet& set) {
    auto network = std::make_shared<ScriptedTransport>();
    network->say(Response(200));
    ClientOptions options;
    options.middlewares = {retry(set), guards()};
    options.scheduler = clock;
    options.transport = network;
    options.shared_state = state;
    Client client(options);
    const auto begun = clock->now();
    REQUIRE(client.get("http://x/"));
    return Duration(network->requests().front().when - begun);
  };
  CHECK(waits(file("10/s")) == 0s);
  CHECK(waits(file("10/s")) == 100ms);
  CHECK(waits(file("5/s")) == 100ms);  // what was spent is not forgotten
  CHECK(waits(file("10/s")) == 200ms);
}

TEST_CASE("observers are told when a guard holds a send back, and when another one takes over") {
  World world(R"({"max_attempts": 1, "rate": {"limit": "2/s", "burst": 1}})");
  world.server->answer = [](const Request&, int number) {
    return number == 1 ? Reply(429, 200ms).header("Retry-After", "5") : Reply(200);
  };
  world.run(at({0ms, 0ms}));
  CHECK(world.heard->held == Lines{"rate 500ms", "pause 4.7s"});
  CHECK(world.sends() == Durations{0ms, 5200ms});
  world.heard->held.clear();
  world.run(at_once(2, 10s));
  CHECK(world.heard->held == Lines{"rate 500ms"});
}

TEST_CASE("a recording observer writes down what holds sends back") {
  World world(R"({"max_attempts": 1, "pause": {"resume": "all"},
                  "concurrency": {"kind": "aimd", "initial": 20, "max": 20},
                  "breaker": {"kind": "consecutive", "failures": 10, "throttle": "failure"}})");
  world.server->answer = [](const Request&, int number) {
    return number == 1 ? Reply(429).header("Retry-After", "2") : Reply(500);
  };
  world.run_in_turn(11);
  std::vector<std::string> told;
  for (const auto& line : world.recorded->lines()) {
    const bool of_calls =
        line.starts_with("call") || line.starts_with("attempt") || line.starts_with("end");
    if (!of_calls) told.push_back(line);
  }
  CHECK(told == std::vector<std::string>{
                    "pause http://x: for 2000ms, retry-after", "held back by pause for 2000ms",
                    "concurrency http://x /default: 20 to 18", "pause http://x: over",
                    "circuit http://x /default: open for 5000ms, 10 failures in a row",
                    "not sent: circuit_open"});
}

TEST_CASE("a send waits until its deadline for the reply of a store, and not less") {
  class SilentLimits final : public guard::Limits {
   public:
    SilentLimits(std::shared_ptr<guard::LimitState> state, LimitKeys keys)
        : guard::Limits(std::move(state), std::move(keys)) {
      slots_ = std::make_shared<guard::Scope<guard::Slots>>();
    }

   protected:
    [[nodiscard]] guard::Hold held_by_slots(const SendAsk& ask) const override {
      return {QueuedBy::SharedState, ask.now + 5ms};
    }
  };
  class SilentStore final : public guard::LimitState,
                            public std::enable_shared_from_this<SilentStore> {
   public:
    std::shared_ptr<SendLimits> limits(LimitKeys keys, Time /*now*/) override {
      return std::make_shared<SilentLimits>(shared_from_this(), std::move(keys));
    }
    std::shared_ptr<RetryAccount> account(const std::string& key, const BudgetPolicy& policy,
                                          Time now) override {
      return local_->account(key, policy, now);
    }
    std::shared_ptr<HedgeAccount> hedges(const std::string& key, Time now) override {
      return local_->hedges(key, now);
    }
    [[nodiscard]] std::vector<ScopeState> states(std::string_view /*prefix*/,
                                                 Time /*now*/) const override {
      return {};
    }
    bool reset(std::string_view /*key*/, Time /*now*/) override { return false; }
    bool open_circuit(std::string_view /*key*/, Time /*until*/, Time /*now*/) override {
      return false;
    }
    bool close_circuit(std::string_view /*key*/, Time /*now*/) override { return false; }

   private:
    const std::shared_ptr<SharedState> local_ = local_state();
  };
  World world(with(R"("concurrency": {"max": 1})"), std::make_shared<SilentStore>());
  auto plans = at({0s});
  plans[0].timeout = 4ms;
  const auto calls = world.run(plans);
  CHECK(calls[0].code() == Errc::RateLimited);
  CHECK(calls[0].at == 4ms);
  CHECK(world.sends().empty());
}
