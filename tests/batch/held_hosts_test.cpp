// Hosts to which the Runner sends nothing for a while, because a server asked for it.
#include "runs.hpp"

#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

TEST_CASE("a job that the server makes wait long is kept by the store, and the run ends") {
  FaultServer busy({Step(503, Headers{{"Retry-After", "3600"}})});
  FaultServer good;
  Fixture all;
  all.options.parallel = 1;
  for (int i = 0; i < 5; ++i) all.store.add(busy.url(), "busy");
  for (int i = 0; i < 5; ++i) all.store.add(good.url(), "good");
  CHECK(all.run() == RunEnd::Idle);
  CHECK(all.store.waits.size() == 1);
  CHECK(all.store.ended.size() == 5);
  CHECK(busy.requests() == 1);
  CHECK(all.store.held.at("busy") > 59min);
}

TEST_CASE("a host that was held when the last run ended is not sent to") {
  FaultServer server;
  Fixture all;
  HeldHost held;
  held.host = "a";
  held.time = 1h;
  all.store.holds_before = {held};
  all.store.add(server.url());
  CHECK(all.run() == RunEnd::Idle);
  CHECK(server.requests() == 0);
  all.store.holds_before.front().time = 20ms;
  CHECK(all.run() == RunEnd::Finished);
  CHECK(server.requests() == 1);
}

TEST_CASE("a wait that the server asks one call for holds the others of its host") {
  FaultServer busy({Step(429, Headers{{"Retry-After", "1"}}), {200, "ok"}});
  Fixture all;
  all.options.parallel = 1;
  for (int i = 0; i < 3; ++i) all.store.add(busy.url("/" + std::to_string(i)));
  CHECK(all.run() == RunEnd::Finished);
  const auto seen = busy.seen();
  REQUIRE(seen.size() == 4);
  for (std::size_t i = 1; i < 4; ++i) CHECK(seen[i].arrived - seen[0].arrived >= 1s);
}

TEST_CASE("a server delay of zero or of the past holds no host, nor does any without a pause") {
  RetryPolicy policy = quick_policy();
  Step busy(503, Headers{{"Retry-After", "0"}});
  SUBCASE("zero seconds") {}
  SUBCASE("a date in the past") { busy.headers.set("Retry-After", date_in(-60s)); }
  SUBCASE("zero milliseconds") { busy = Step(429, Headers{{"retry-after-ms", "0"}}); }
  SUBCASE("pause: none") {
    policy.guards.pause.enabled = false;
    busy = Step(429, Headers{{"retry-after-ms", "5"}});
  }
  SUBCASE("none that is too long for the policy either") {
    policy.guards.pause.enabled = false;
    busy = Step(429, Headers{{"Retry-After", "3600"}});
  }
  busy.times = 3;
  FaultServer server({busy, {200, "ok"}});
  Fixture all;
  all.options.parallel = 1;
  for (int i = 0; i < 20; ++i) all.store.add(server.url());
  Runner(client_options(policy), all.store, all.jobs, all.options).run();
  CHECK(all.store.held.empty());
  CHECK(all.store.ended.size() + all.store.waits.size() == 20);
}

TEST_CASE("a host is held as long as guards() pauses it, whatever our own backoff is") {
  RetryPolicy policy = quick_policy();
  policy.throttle_backoff->initial = 15s;
  Step busy(429, Headers{{"Retry-After", "1"}});
  auto longest = Duration(1s);
  SUBCASE("for the second of the server") {}
  SUBCASE("for no longer than pause.max") {
    busy.headers.set("Retry-After", "20");
    policy.guards.pause.max = longest = 2s;
  }
  FaultServer server({busy});
  Fixture all;
  for (int i = 0; i < 20; ++i) all.store.add(server.url());
  Runner runner(client_options(policy), all.store, all.jobs, all.options);
  all.store.on_hold = [&] { runner.stop(); };
  CHECK(runner.run() == RunEnd::Stopped);
  CHECK(all.store.held.at("a") > 0s);
  CHECK(all.store.held.at("a") <= longest);
}

TEST_CASE("a pause for the credentials of one request does not hold the others of its host") {
  struct WithCredentials : SimpleJobs {
    std::variant<Prepared, JobEnd> prepare(const Job& job) override {
      Prepared prepared(Request::get(job.text));
      if (job.number == 1) prepared.request.set_header("Authorization", "Bearer a");
      return prepared;
    }
  };
  FaultServer server({Step(429, Headers{{"Retry-After", "50"}}), {200, "ok"}});
  Fixture all;
  WithCredentials jobs;
  all.options.parallel = 1;
  for (int i = 0; i < 20; ++i) all.store.add(server.url());
  Runner runner(client_options(), all.store, jobs, all.options);
  std::thread stopper([&] {
    CHECK(server.wait_for_requests(20, 60s));
    runner.stop();
  });
  CHECK(runner.run() == RunEnd::Stopped);
  stopper.join();
  CHECK(all.store.held.empty());
}

TEST_CASE("after a hold, `resume: all` lets all calls go at once: there is no second ramp") {
  constexpr std::size_t kParallel = 8;
  RetryPolicy policy = quick_policy();
  policy.guards.pause.resume = PausePolicy::Resume::All;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t arrived = 0;
  bool together = false;
  Step meeting;
  meeting.respond = [&](const SeenRequest&) {
    std::unique_lock lock(mutex);
    ++arrived;
    changed.notify_all();
    if (arrived == 1) {
      together = changed.wait_for(lock, 20s, [&] { return arrived >= kParallel; });
    }
    return Step(200);
  };
  FaultServer server({Step(429, Headers{{"retry-after-ms", "20"}}), meeting});
  Fixture all;
  all.store.add(server.url());
  all.options.parallel = kParallel;
  all.store.on_hold = [&] {
    for (std::size_t i = 0; i < 2 * kParallel; ++i) all.store.add(server.url());
  };
  CHECK(Runner(client_options(policy), all.store, all.jobs, all.options).run() == RunEnd::Finished);
  CHECK(together);
}

TEST_CASE("after a hold one request is sent, and one more with each response") {
  constexpr std::size_t kParallel = 16;
  std::mutex mutex;
  std::condition_variable changed;
  bool all_began = false;
  std::size_t arrived = 0;
  std::size_t in_flight = 0;
  bool too_many = false;
  Step counting;
  counting.respond = [&](const SeenRequest&) {
    std::unique_lock lock(mutex);
    ++arrived;
    ++in_flight;
    // There were `arrived - in_flight` responses.
    too_many = too_many || in_flight > 1 + arrived - in_flight;
    // A ramp for which no call waits is over.
    changed.wait_for(lock, 20s, [&] { return all_began; });
    --in_flight;
    return Step(200);
  };
  FaultServer server({Step(429, Headers{{"retry-after-ms", "20"}}), counting});
  Fixture all;
  all.options.parallel = kParallel;
  all.options.progress_every = 0ms;
  all.options.on_progress = [&](const RunProgress& progress) {
    const std::lock_guard lock(mutex);
    all_began = all_began || progress.in_flight - progress.in_wait == kParallel;
    changed.notify_all();
  };
  all.store.add(server.url());
  all.store.on_hold = [&] {
    for (std::size_t i = 0; i < kParallel - 1; ++i) all.store.add(server.url());
  };
  CHECK(all.run() == RunEnd::Finished);
  CHECK(arrived == kParallel);
  CHECK_FALSE(too_many);
}
