// The Runner with a store in memory, against servers on the loopback interface.
#include "runs.hpp"

#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

TEST_CASE("all jobs of a store are sent once, and their ends are committed") {
  FaultServer server({503, {200, "ok"}});
  Fixture all;
  for (int i = 0; i < 200; ++i) all.store.add(server.url("/" + std::to_string(i)));
  CHECK(all.run() == RunEnd::Finished);
  CHECK(all.store.ended.size() == 200);
  CHECK(server.requests() == 201);
  CHECK(all.store.commits > 0);
  CHECK(all.store.intended.empty());
}

TEST_CASE("jobs that are prepared ahead change neither what is sent nor how many at once") {
  Step slow(200);
  slow.delay = 1ms;
  FaultServer server({slow, 503, 429, slow, slow, 404, slow});
  Fixture all;
  all.options.parallel = 3;
  all.options.ahead = 20;
  std::size_t most = 0;
  all.options.progress_every = 0ms;
  all.options.on_progress = [&](const RunProgress& progress) {
    most = std::max(most, progress.in_flight - progress.in_wait);
  };
  for (int i = 0; i < 200; ++i) {
    all.store.add(server.url("/" + std::to_string(i)), i % 3 == 0 ? "a" : "b");
  }
  CHECK(all.run() == RunEnd::Finished);
  CHECK(all.store.ended.size() == 200);
  CHECK(server.requests() >= 200);
  CHECK(most >= 1);
  CHECK(server.connections() <= 3 + 5);  // a connection may have been closed meanwhile
}

TEST_CASE("no end is estimated while jobs wait") {
  FaultServer server;
  Fixture all;
  all.options.parallel = 1;
  for (int i = 0; i < 20; ++i) all.store.add(server.url());
  all.store.add_waiting(server.url(), 100ms);
  bool estimated_with_waits = false;
  bool estimated = false;
  all.options.progress_every = 0ms;
  all.options.on_progress = [&](const RunProgress& progress) {
    const bool has_waits = progress.counts.waiting > 0;
    estimated_with_waits = estimated_with_waits || (has_waits && progress.time_left);
    estimated = estimated || (!has_waits && progress.time_left);
  };
  CHECK(all.run() == RunEnd::Finished);
  CHECK(estimated);
  CHECK_FALSE(estimated_with_waits);
}

TEST_CASE("jobs that are prepared ahead are given back at the end of a run") {
  FaultServer server({404});
  Fixture all;
  all.options.parallel = 1;
  all.options.ahead = 20;
  all.options.max_failures = 2;
  for (int i = 0; i < 50; ++i) all.store.add(server.url());
  CHECK(all.run() == RunEnd::Failures);
  CHECK(server.requests() == 2);
  CHECK(all.store.ended.size() == 2);
  CHECK(all.store.queue.size() == 48);
}

TEST_CASE("a host that has to be left alone gets none of the jobs that are prepared ahead") {
  FaultServer busy({Step(503, Headers{{"Retry-After", "3600"}})});
  FaultServer good;
  Fixture all;
  all.options.parallel = 1;
  all.options.ahead = 20;
  for (int i = 0; i < 5; ++i) all.store.add(busy.url(), "busy");
  for (int i = 0; i < 5; ++i) all.store.add(good.url(), "good");
  CHECK(all.run() == RunEnd::Idle);
  CHECK(busy.requests() == 1);
  CHECK(all.store.ended.size() == 5);
  CHECK(all.store.queue.size() == 4);
}

TEST_CASE("what the store refuses is not sent, until it is taken again") {
  FaultServer server({200});
  Fixture all;
  all.jobs.unsafe = true;
  for (int i = 1; i <= 5; ++i) all.store.add(server.url("/" + std::to_string(i)));
  all.store.refuses = {2, 4};
  CHECK(all.run() == RunEnd::Finished);
  CHECK(all.store.refuses.empty());
  CHECK(all.store.ended.size() == 5);
  CHECK(server.requests() == 5);
}

TEST_CASE("a short wait is waited for, also one that is not committed yet") {
  FaultServer server({200});
  Fixture all;
  all.jobs.first_waits = true;
  all.store.add(server.url());
  CHECK(all.run() == RunEnd::Finished);
  CHECK(server.requests() == 2);
}

TEST_CASE("a run goes on if the hold of a host ends while the store commits") {
  FaultServer server({200});
  Fixture all;
  all.store.add_waiting(server.url(), 1ms);
  all.store.holds_before.emplace_back();
  all.store.holds_before[0].host = "a";
  all.store.holds_before[0].time = 200ms;
  const auto hold_ends = later(std::chrono::steady_clock::now(), 300ms);
  // By then the wait has ended, too, so `next_due` knows of none.
  all.store.on_commit = [&] {
    while (std::chrono::steady_clock::now() < hold_ends) std::this_thread::yield();
  };
  CHECK(all.run() == RunEnd::Finished);
  CHECK(server.requests() == 1);
}

TEST_CASE("a long pause of a host is not waited for in a call") {
  FaultServer server({Step(503, Headers{{"Retry-After", "3600"}})});
  auto options = client_options();
  options.shared_state = local_state();
  // It hears of the pause, and begins it for all.
  CHECK(Client(options).get(server.url())->status == 503);
  MemoryStore store;
  SimpleJobs jobs;
  store.add(server.url());
  CHECK(Runner(options, store, jobs, {}).run() == RunEnd::Idle);
  CHECK(server.requests() == 1);
}

TEST_CASE("a run that lasts until it is stopped waits for jobs that come later") {
  FaultServer server({200});
  Fixture all;
  all.options.until_stopped = true;
  all.store.when_empty = [&all, &server](int times) {
    if (times == 1) all.store.add(server.url("/later"));
  };
  Runner runner(client_options(), all.store, all.jobs, all.options);
  std::thread other([&] {
    while (server.requests() == 0) {
      runner.look_again();
      std::this_thread::yield();
    }
    runner.finish_up();
  });
  CHECK(runner.run() == RunEnd::Stopped);
  other.join();
  CHECK(all.store.ended.size() == 1);
  CHECK(all.store.stopped_taking);
}

TEST_CASE("what must not be sent twice is in the store before it is sent, many at once") {
  Fixture all;
  all.jobs.unsafe = true;
  FaultServer server;
  all.options.parallel = 100;
  for (int i = 0; i < 300; ++i) all.store.add(server.url("/" + std::to_string(i)));
  CHECK(all.run() == RunEnd::Finished);
  CHECK(all.store.intended.size() == 300);
  CHECK(all.store.largest_intent == 64);
  CHECK(server.requests() == 300);
}

TEST_CASE("what the store could not note before its send is not sent") {
  FaultServer server;
  Fixture all;
  all.jobs.unsafe = true;
  all.store.fails_at_intend = true;
  all.store.add(server.url());
  CHECK_THROWS_WITH_AS(all.run(), "the disk is full", StoreError);
  CHECK(server.requests() == 0);
  CHECK(all.store.queue.size() == 1);
}

TEST_CASE("where the store fails, what flies ends and is offered to it") {
  FaultServer server;
  Fixture all;
  all.options.parallel = 4;
  for (int i = 0; i < 100; ++i) all.store.add(server.url());
  all.jobs.fails = true;
  CHECK_THROWS_WITH_AS(all.run(), "the body cannot be written", StoreError);
  CHECK(server.requests() <= 8);
  CHECK(all.store.commits > 0);
  all.store.fails_at_take = true;
  CHECK_THROWS_WITH_AS(all.run(), "the disk is broken", StoreError);
}

TEST_CASE(
    "no more requests are on their way than allowed, and waits between attempts do not count") {
  Step slow(503);
  slow.delay = 5ms;
  FaultServer server({slow, slow, slow, slow, slow, {200, "ok"}});
  Fixture all;
  all.options.parallel = 3;
  std::size_t most = 0;
  all.options.progress_every = 0ms;
  all.options.on_progress = [&](const RunProgress& progress) {
    most = std::max(most, progress.in_flight - progress.in_wait);
  };
  for (int i = 0; i < 60; ++i) all.store.add(server.url());
  CHECK(all.run() == RunEnd::Finished);
  CHECK(most >= 1);
  CHECK(server.connections() <= 3 + 5);  // a connection may have been closed meanwhile
}

TEST_CASE("a call that does not reach its first attempt for long keeps its place") {
  FaultServer server;
  Fixture all;
  all.options.parallel = 2;
  for (int i = 0; i < 6; ++i) all.store.add(server.url());
  std::atomic<int> open = 0;
  std::atomic<int> most = 0;
  auto options = client_options();
  auto late = middleware("late", [&](Request request, Call& call, Next next) -> Task<Outcome> {
    most = std::max(most.load(), ++open);
    co_await call.scheduler().sleep_until(call.scheduler().now() + 120ms, call.stop());
    --open;
    Outcome outcome = co_await next(std::move(request), call);
    co_return outcome;
  });
  options.middlewares.insert(options.middlewares.begin(), std::move(late));
  CHECK(Runner(options, all.store, all.jobs, all.options).run() == RunEnd::Finished);
  CHECK(server.requests() == 6);
  CHECK(most == 2);
}

TEST_CASE("a host that our own limit makes slow does not keep others from being sent to") {
  FaultServer slow;
  FaultServer quick;
  Fixture all;
  all.options.parallel = 4;
  for (int i = 0; i < 40; ++i) all.store.add(slow.url(), "slow");
  for (int i = 0; i < 200; ++i) all.store.add(quick.url(), "quick");
  auto options = client_options();
  const auto policies = parse_policies(
      R"({"version": 1, "endpoints": [{"match": {"host": "127.0.0.1", "port": )" +
          std::to_string(slow.port()) + R"(}, "policy": {"rate": {"limit": "1/s", "burst": 1}}}]})",
      "test");
  REQUIRE(policies.has_value());
  options.policies = *policies;
  options.middlewares = ClientOptions().middlewares;
  Runner runner(options, all.store, all.jobs, all.options);
  std::thread stopper([&] {
    CHECK(quick.wait_for_requests(200, 60s));
    runner.stop();
  });
  CHECK(runner.run() == RunEnd::Stopped);
  stopper.join();
  CHECK(quick.requests() == 200);
  // Else each place would have had a call to the slow host, and those would all have had to end.
  CHECK(slow.requests() < 20);
}

TEST_CASE("max_failures ends a run, and so does finish_up") {
  FaultServer server({404});
  Fixture all;
  all.options.parallel = 1;
  all.options.max_failures = 2;
  for (int i = 0; i < 50; ++i) all.store.add(server.url());
  CHECK(all.run() == RunEnd::Failures);
  CHECK(all.store.ended.size() == 2);
  CHECK(all.store.queue.size() == 48);

  all.options.max_failures = 0;
  Runner runner(client_options(), all.store, all.jobs, all.options);
  runner.finish_up();
  CHECK(runner.run() == RunEnd::Stopped);
  CHECK(all.store.ended.size() == 2);
}

TEST_CASE("a run that is being stopped ends as Stopped, even if max_failures is reached then") {
  struct DyingJobs : SimpleJobs {
    Verdict judge(const Job& /*job*/, const Prepared& /*sent*/, Outcome /*outcome*/) override {
      Verdict verdict;
      verdict.end.state = State::Dead;
      return verdict;
    }
  };
  Step hang(Fault::Hang);
  FaultServer server({hang});
  MemoryStore store;
  store.add(server.url());
  DyingJobs jobs;
  RunnerOptions options;
  options.max_failures = 1;
  Runner runner(client_options(), store, jobs, options);
  std::thread stopper([&] {
    CHECK(server.wait_for_requests(1, 60s));
    runner.stop();
  });
  CHECK(runner.run() == RunEnd::Stopped);
  stopper.join();
  CHECK(store.ended.size() == 1);
}

TEST_CASE("stop ends calls under way, and their jobs are given back") {
  Step hang(Fault::Hang);
  FaultServer server({hang});
  Fixture all;
  all.store.add(server.url());
  Runner runner(client_options(), all.store, all.jobs, all.options);
  std::thread stopper([&] {
    CHECK(server.wait_for_requests(1, 60s));
    runner.stop();
  });
  CHECK(runner.run() == RunEnd::Stopped);
  stopper.join();
  CHECK(all.store.queue.size() == 1);
  CHECK(all.store.ended.empty());
}

TEST_CASE("the rate of a run counts retries, too") {
  FaultServer server({503, 503, 503, {200, "ok"}});
  Fixture all;
  RatePolicy rate;
  rate.requests = 50;
  all.options.rate = rate;
  for (int i = 0; i < 7; ++i) all.store.add(server.url());
  const Time before = std::chrono::steady_clock::now();
  CHECK(all.run() == RunEnd::Finished);
  const auto seen = server.seen();
  REQUIRE(seen.size() == 10);
  CHECK(seen.back().arrived - before >= 9 * 20ms);
}

TEST_CASE("a job is not started before the rate of the run allows its first send") {
  for (const bool unsafe : {false, true}) {
    for (const int burst : {1, 3}) {
      CAPTURE(unsafe);
      CAPTURE(burst);
      FaultServer server({404});
      Fixture all;
      all.jobs.unsafe = unsafe;
      all.options.parallel = 64;
      RatePolicy rate;
      rate.requests = 1;
      rate.per = 1h;
      rate.burst = burst;
      all.options.rate = rate;
      Runner* its_runner = nullptr;
      std::size_t most_in_flight = 0;
      all.options.progress_every = 0ms;
      all.options.on_progress = [&](const RunProgress& progress) {
        most_in_flight = std::max(most_in_flight, progress.in_flight);
        if (progress.counts.dead == static_cast<std::uint64_t>(burst)) its_runner->finish_up();
      };
      for (int i = 0; i < 100; ++i) all.store.add(server.url());
      Runner runner(client_options(), all.store, all.jobs, all.options);
      its_runner = &runner;
      CHECK(runner.run() == RunEnd::Stopped);
      const auto count = static_cast<std::size_t>(burst);
      CHECK(server.requests() == burst);
      CHECK(most_in_flight <= count);
      CHECK(all.store.intended.size() == (unsafe ? count : 0));
      CHECK(all.store.ended.size() == count);
      CHECK(all.store.queue.size() == 100 - count);
    }
  }
}

TEST_CASE("what this machine lacks for some calls costs no job, and fewer are made at once") {
  for (const std::size_t ahead : {std::size_t{0}, std::size_t{40}}) {
    for (const bool unsafe : {false, true}) {
      const auto machine = std::make_shared<Scarce>(7);
      Fixture all;
      all.jobs.unsafe = unsafe;
      all.options.parallel = 40;
      all.options.ahead = ahead;
      for (int i = 0; i < 200; ++i) all.store.add("http://a/" + std::to_string(i));
      CHECK(all.run_with(machine) == RunEnd::Finished);
      CHECK(all.store.ended.size() == 200);
      CHECK(all.store.counts().done == 200);
      // At most those of the first turn, and a few to see whether it is over.
      CHECK(machine->refused <= 45);
      CHECK(all.shortages == std::vector<std::string>{"no descriptor"});
    }
  }
}

TEST_CASE("thousands of hosts at once do not keep the jobs of others from being taken" *
          doctest::test_suite("large")) {
  constexpr int kHosts = 5000;
  Fixture all;
  all.options.parallel = kHosts;
  for (int i = 0; i < kHosts; ++i) all.store.add("http://a/", std::to_string(i));
  CHECK(all.run_with(std::make_shared<Scarce>(kHosts)) == RunEnd::Finished);
  CHECK(all.store.ended.size() == kHosts);
}

TEST_CASE("a run that cannot send even one request ends, and its jobs stay in the store") {
  const auto machine = std::make_shared<Scarce>(0);
  Fixture all;
  all.options.parallel = 10;
  all.options.max_shortage = 0ms;
  for (int i = 0; i < 50; ++i) all.store.add("http://a/" + std::to_string(i));
  CHECK(all.run_with(machine) == RunEnd::Shortage);
  CHECK(all.store.ended.empty());
  CHECK(all.store.queue.size() == 50);
  CHECK(machine->asked <= 10);
  CHECK(all.shortages.size() == 1);
}

TEST_CASE("a shortage that ends by itself is waited for, by one call at a time") {
  const auto machine = std::make_shared<Scarce>(0);
  machine->refusals_until_one = 12;
  Fixture all;
  all.options.parallel = 10;
  for (int i = 0; i < 20; ++i) all.store.add("http://a/" + std::to_string(i));
  CHECK(all.run_with(machine) == RunEnd::Finished);
  CHECK(all.store.counts().done == 20);
  CHECK(all.shortages.size() == 1);
}

namespace {

// A machine that lacks a descriptor for the first send, once the store had no more jobs.
struct ShortOnce final : Transport {
  Task<Outcome> send(Request /*request*/, Call& call) override {
    if (is_refused.exchange(true)) co_return Response(200);
    auto& clock = call.scheduler();
    while (!store_is_empty) {
      const bool has_slept = co_await clock.sleep_until(clock.now() + 1ms, call.stop());
      if (!has_slept) co_return Error(Errc::Canceled);
    }
    co_return Error(Errc::LocalShortage, "no descriptor");
  }

  std::atomic<bool> is_refused = false;
  std::atomic<bool> store_is_empty = false;
};

}  // namespace

TEST_CASE("a job that was given back is sent although another host is held for longer") {
  const auto machine = std::make_shared<ShortOnce>();
  Fixture all;
  all.store.when_empty = [&](int /*times*/) { machine->store_is_empty = true; };
  all.store.holds_before.emplace_back();
  all.store.holds_before[0].host = "b";
  all.store.holds_before[0].time = 1h;
  all.store.add("http://a/");
  auto client = client_options();
  client.transport = machine;
  CHECK(Runner(std::move(client), all.store, all.jobs, all.options).run() == RunEnd::Finished);
  CHECK(all.store.ended.size() == 1);
}

namespace {

// A server that answers once the first sends of all calls have arrived. It fails as many sends as
// `failures`, and all later ones succeed.
struct Outage final : Transport {
  Outage(int all_calls, int most_failures) : calls(all_calls), failures(most_failures) {}

  Task<Outcome> send(Request request, Call& call) override {
    note_send(request.url());
    auto& clock = call.scheduler();
    while (arrived < calls) {
      const bool has_slept = co_await clock.sleep_until(clock.now() + 1ms, call.stop());
      if (!has_slept) co_return Error(Errc::Canceled);
    }
    co_return Response(failures-- > 0 ? 500 : 200);
  }
  void note_send(const std::string& url) {
    const std::lock_guard lock(mutex);
    if (urls.insert(url).second) {
      ++arrived;
    } else if (failures > 0) {
      retried.insert(url);
    }
  }

  const int calls;
  std::atomic<int> failures;
  std::atomic<int> arrived = 0;
  std::mutex mutex;  // guards the rest
  std::set<std::string> urls;
  std::set<std::string> retried;  // while it fails
};

}  // namespace

TEST_CASE("with down_hosts, three calls retry while a host fails, and the others once it works") {
  Fixture fixture;
  constexpr int kCalls = 10;
  for (int i = 0; i < kCalls; ++i) fixture.store.add("http://a.test/" + std::to_string(i));
  fixture.options.parallel = kCalls;
  fixture.options.down_hosts = std::make_shared<DownHosts>();
  auto policy = quick_policy();
  policy.backoff = Backoff::constant(1ms);
  policy.max_attempts = 200;
  policy.budget.kind = BudgetPolicy::Kind::None;
  const auto server = std::make_shared<Outage>(kCalls, kCalls + 100);
  auto client = client_options(policy);
  client.transport = server;

  CHECK(Runner(client, fixture.store, fixture.jobs, fixture.options).run() == RunEnd::Finished);

  CHECK(server->retried.size() == 3);
  CHECK(fixture.store.ended.size() == kCalls);
  for (const auto& [number, state] : fixture.store.ended) CHECK(state == State::Done);
}

TEST_CASE("calls between two attempts make room for others, up to a limit") {
  struct Failing final : Transport {
    Task<Outcome> send(Request /*request*/, Call& /*call*/) override {
      ++asked;
      co_return Response(500);
    }
    std::atomic<std::size_t> asked = 0;
  };
  struct Row {
    std::size_t parallel, most;
  };
  for (const auto& row : {Row{1, 257}, Row{64, 320}, Row{100, 500}}) {
    CAPTURE(row.parallel);
    Fixture fixture;
    for (std::size_t i = 0; i < row.most + 10; ++i) fixture.store.add("http://a.test/");
    auto policy = quick_policy();
    policy.backoff = Backoff::constant(1h);
    policy.max_elapsed_time = kForever;
    policy.budget.kind = BudgetPolicy::Kind::None;
    const auto server = std::make_shared<Failing>();
    auto client = client_options(policy);
    client.transport = server;
    Runner* its_runner = nullptr;
    int times = 0;
    fixture.options.parallel = row.parallel;
    fixture.options.progress_every = 1ms;
    fixture.options.on_progress = [&](const RunProgress& progress) {
      // Goes on for a few more reports, so that another call could begin.
      if (progress.in_wait >= row.most && ++times == 5) its_runner->stop();
    };
    Runner runner(client, fixture.store, fixture.jobs, fixture.options);
    its_runner = &runner;
    CHECK(runner.run() == RunEnd::Stopped);
    CHECK(server->asked == row.most);
  }
}

TEST_CASE("progress is reported on time although the store has no jobs") {
  Fixture fixture;
  fixture.options.until_stopped = true;
  fixture.options.progress_every = 10ms;
  int reports = 0;
  fixture.options.on_progress = [&](const RunProgress&) { ++reports; };
  Runner* its_runner = nullptr;
  int reports_at_first_look = 0;
  fixture.store.when_empty = [&](int times) {
    if (times == 1) reports_at_first_look = reports;
    if (times == 2) its_runner->finish_up();
  };
  Runner runner(client_options(), fixture.store, fixture.jobs, fixture.options);
  its_runner = &runner;
  CHECK(runner.run() == RunEnd::Stopped);
  // The runner looks again after a second, in which a hundred reports are due.
  CHECK(reports - reports_at_first_look >= 5);
}

TEST_CASE("the rate of a run counts requests only, and has no further rates") {
  Fixture all;
  const auto make_runner = [&all](const RatePolicy& rate) {
    all.options.rate = rate;
    const Runner runner(client_options(), all.store, all.jobs, all.options);
  };
  const char* const message = "the rate of a run counts requests, and has no further rates";
  CHECK_THROWS_WITH_AS(make_runner(RatePolicy::of_cost(10, 1s)), message, std::invalid_argument);
  auto two_rates = RatePolicy::of_requests(10, 1s);
  two_rates.further = {RatePolicy::of_requests(100, 1min)};
  CHECK_THROWS_WITH_AS(make_runner(two_rates), message, std::invalid_argument);
  CHECK_NOTHROW(make_runner(RatePolicy::of_requests(10, 1s)));
}

TEST_CASE("the end of a job is committed although the run goes on") {
  FaultServer server;
  Fixture all;
  all.options.until_stopped = true;
  all.store.add(server.url());
  Runner* its_runner = nullptr;
  all.store.on_commit = [&] { its_runner->finish_up(); };
  int looks_after_end = 0;
  all.store.when_empty = [&](int /*times*/) {
    if (!all.store.ended.empty() && ++looks_after_end == 4) its_runner->finish_up();
  };
  Runner runner(client_options(), all.store, all.jobs, all.options);
  its_runner = &runner;
  CHECK(runner.run() == RunEnd::Stopped);
  CHECK(all.store.ended.size() == 1);
  CHECK(looks_after_end < 4);
}

TEST_CASE("calls that are prepared ahead do not count as in flight") {
  struct Hanging final : Transport {
    Task<Outcome> send(Request /*request*/, Call& call) override {
      auto& clock = call.scheduler();
      co_await clock.sleep_until(clock.now() + 1h, call.stop());
      co_return Error(Errc::Canceled);
    }
  };
  Fixture fixture;
  fixture.options.parallel = 2;
  fixture.options.ahead = 4;
  fixture.options.progress_every = 0ms;
  for (int i = 0; i < 10; ++i) fixture.store.add("http://a.test/");
  Runner* its_runner = nullptr;
  std::size_t in_flight = 0;
  fixture.options.on_progress = [&](const RunProgress& progress) {
    if (in_flight != 0 || progress.in_flight == 0) return;
    in_flight = progress.in_flight;
    its_runner->stop();
  };
  auto client = client_options();
  client.transport = std::make_shared<Hanging>();
  Runner runner(client, fixture.store, fixture.jobs, fixture.options);
  its_runner = &runner;
  CHECK(runner.run() == RunEnd::Stopped);
  CHECK(in_flight == 2);
  CHECK(fixture.store.queue.size() == 10);
}

TEST_CASE("calls that never reach the wire leave their places to those of another host") {
  constexpr std::uint64_t kQuick = 100;
  struct Answering final : Transport {
    Task<Outcome> send(Request /*request*/, Call& /*call*/) override { co_return Response(200); }
  };
  Fixture fixture;
  fixture.options.parallel = 4;
  for (int i = 0; i < 40; ++i) fixture.store.add("http://kept.test/", "kept");
  for (std::uint64_t i = 0; i < kQuick; ++i) fixture.store.add("http://quick.test/", "quick");
  std::atomic<std::size_t> kept = 0;
  auto limit = middleware("limit", [&](Request request, Call& call, Next next) -> Task<Outcome> {
    if (request.parsed_url()->host() == "kept.test") {
      ++kept;
      auto& clock = call.scheduler();
      const bool has_slept = co_await clock.sleep_until(clock.now() + 1h, call.stop());
      if (!has_slept) co_return Error(Errc::Canceled);
    }
    Outcome outcome = co_await next(std::move(request), call);
    co_return outcome;
  });
  auto client = client_options();
  client.transport = std::make_shared<Answering>();
  client.middlewares.push_back(std::move(limit));
  Runner* its_runner = nullptr;
  fixture.options.progress_every = 1ms;
  fixture.options.on_progress = [&](const RunProgress& progress) {
    if (progress.counts.done == kQuick) its_runner->stop();
  };
  Runner runner(client, fixture.store, fixture.jobs, fixture.options);
  its_runner = &runner;
  CHECK(runner.run() == RunEnd::Stopped);
  CHECK(fixture.store.ended.size() == kQuick);
  CHECK(fixture.store.queue.size() == 40);
  // No more calls of a host begin once eight of them are kept from the wire.
  CHECK(kept >= 4);
  CHECK(kept <= 11);
}
