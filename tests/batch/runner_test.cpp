// The Runner with a store in memory, against servers on the loopback interface.
#include <httpretry/batch/runner.hpp>

#include <httpretry/guard/guards.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <array>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

namespace {

class MemoryStore final : public Store {
 public:
  void add(std::string url, std::string host = "a") {
    Job job;
    job.number = ++counts_.queued;
    job.text = std::move(url);
    job.host = std::move(host);
    queue.push_back(std::move(job));
  }

  void add_waiting(std::string url, Duration time) {
    Job job;
    job.number = ++counts_.waiting;
    job.text = std::move(url);
    job.host = "a";
    committed_waits_.push_back({job, later(std::chrono::steady_clock::now(), time)});
  }

  void take(std::size_t most, const WantsHost& wants, std::vector<Job>& jobs) override {
    if (fails_at_take) throw StoreError("the disk is broken");
    if (queue.empty() && when_empty) when_empty(++empty_takes);
    looked_at_ = std::chrono::steady_clock::now();
    std::erase_if(committed_waits_, [&](const auto& wait) {
      if (wait.due > looked_at_ || !wants(wait.job.host)) return false;
      queue.push_back(wait.job);
      --counts_.waiting;
      ++counts_.queued;
      return true;
    });
    for (auto next = queue.begin(); next != queue.end() && most > 0;) {
      if (!wants(next->host)) {
        ++next;
        continue;
      }
      jobs.push_back(*next);
      next = queue.erase(next);
      --most;
    }
  }
  std::vector<const Job*> intend(std::span<const Job* const> jobs) override {
    if (fails_at_intend) throw StoreError("the disk is full");
    largest_intent = std::max(largest_intent, jobs.size());
    std::vector<const Job*> refused;
    for (const auto* job : jobs) {
      intended.insert(job->number);
      if (refuses.erase(job->number) == 0) continue;
      give_back(*job);
      refused.push_back(job);
    }
    return refused;
  }
  void wait(const Job& job, Duration time, int /*attempts*/, std::string_view /*why*/) override {
    waits[job.number] = time;
    new_waits_.push_back({job, later(std::chrono::steady_clock::now(), time)});
    --counts_.queued;
    ++counts_.waiting;
  }
  void finish(const Job& job, JobEnd end) override {
    ended[job.number] = end.state;
    --counts_.queued;
    ++counts_.of(end.state);
  }
  void give_back(const Job& job) override { queue.push_front(job); }
  void stop_taking() override { stopped_taking = true; }
  void hold(std::string_view host, Duration time) override {
    held[std::string(host)] = time;
    if (on_hold) on_hold();
  }
  std::vector<HeldHost> holds() override { return holds_before; }
  void commit() override {
    if (on_commit) on_commit();
    ++commits;
    std::ranges::move(new_waits_, std::back_inserter(committed_waits_));
    new_waits_.clear();
  }
  [[nodiscard]] Counts counts() const override { return counts_; }
  std::optional<Duration> next_due() override {
    std::optional<Duration> next;
    for (const auto& wait : committed_waits_) {
      if (wait.due <= looked_at_) continue;
      const auto time = wait.due - std::chrono::steady_clock::now();
      if (!next || time < *next) next = time;
    }
    return next;
  }

  std::deque<Job> queue;
  std::set<std::uint64_t> intended;
  std::set<std::uint64_t> refuses;  // once
  std::size_t largest_intent = 0;
  std::map<std::uint64_t, State> ended;
  std::map<std::uint64_t, Duration> waits;
  std::map<std::string, Duration> held;
  std::function<void()> on_hold;
  std::function<void()> on_commit;
  std::vector<HeldHost> holds_before;
  int commits = 0;
  std::function<void(int times)> when_empty;
  int empty_takes = 0;
  bool stopped_taking = false;
  bool fails_at_take = false;
  bool fails_at_intend = false;

 private:
  struct Wait {
    Job job;
    Time due;
  };
  Time looked_at_{};
  std::vector<Wait> new_waits_;
  std::vector<Wait> committed_waits_;
  Counts counts_;
};

struct SimpleJobs : Jobs {
  std::variant<Prepared, JobEnd> prepare(const Job& job) override {
    Prepared prepared(unsafe ? Request::post(job.text, "x") : Request::get(job.text));
    prepared.unsafe = unsafe;
    return prepared;
  }
  Verdict judge(const Job& /*job*/, const Prepared& /*sent*/, Outcome outcome) override {
    Verdict verdict;
    if (fails) throw StoreError("the body cannot be written");
    const bool lacking = !outcome && outcome.error().code == Errc::LocalShortage;
    if (lacking || history_of(outcome).stop_reason == Reason::Canceled) {
      verdict.what = Verdict::What::GiveBack;
    }
    const bool held_back = !outcome && outcome.error().held_back();
    if (held_back || history_of(outcome).stop_reason == Reason::ServerDelayTooLong) {
      verdict.what = Verdict::What::Wait;
      verdict.wait = 1h;
    }
    if (std::exchange(first_waits, false)) {
      verdict.what = Verdict::What::Wait;
      verdict.wait = 10ms;
    }
    verdict.end.state = succeeded(outcome) ? State::Done : State::Dead;
    return verdict;
  }
  bool unsafe = false;
  bool fails = false;
  bool first_waits = false;
};

RetryPolicy quick_policy() {
  RetryPolicy policy;
  policy.backoff.initial = 1ms;
  policy.throttle_backoff->initial = 1ms;
  return policy;
}

ClientOptions client_options(const RetryPolicy& policy = quick_policy()) {
  ClientOptions options;
  options.middlewares.clear();
  options.middlewares.push_back(retry(policy));
  options.middlewares.push_back(guards());
  return options;
}

std::string date_in(std::chrono::seconds time) {
  const auto when = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + time);
  std::array<char, 64> text{};
  std::tm parts{};
  ::gmtime_r(&when, &parts);
  const auto size = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

// A machine whose descriptors limit the number of sends at once.
struct Scarce final : Transport {
  explicit Scarce(int most) : places(most) {}

  Task<Outcome> send(Request /*request*/, Call& call) override {
    ++asked;
    if (in_use >= places) {
      ++refused;
      if (refused == refusals_until_one) places = 1;
      co_return Error(Errc::LocalShortage, "no descriptor");
    }
    ++in_use;
    const Time end = call.scheduler().now() + 1ms;
    const bool slept = co_await call.scheduler().sleep_until(end, call.stop());
    --in_use;
    if (!slept) co_return Error(Errc::Canceled);
    co_return Response(200);
  }

  std::atomic<int> places;
  std::atomic<int> in_use = 0;
  std::atomic<int> asked = 0;
  std::atomic<int> refused = 0;
  int refusals_until_one = -1;
};

struct Fixture {
  MemoryStore store;
  SimpleJobs jobs;
  RunnerOptions options;
  RunEnd run() { return Runner(client_options(), store, jobs, options).run(); }
  RunEnd run_with(const std::shared_ptr<Scarce>& machine) {
    options.on_shortage = [this](const std::string& what) { shortages.push_back(what); };
    auto client = client_options();
    client.transport = machine;
    return Runner(std::move(client), store, jobs, options).run();
  }
  std::vector<std::string> shortages;
};

}  // namespace

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
  for (int i = 0; i < 300; ++i) all.store.add(server.url("/" + std::to_string(i)));
  CHECK(all.run() == RunEnd::Finished);
  CHECK(all.store.intended.size() == 300);
  CHECK(all.store.largest_intent > 1);
  CHECK(all.store.largest_intent <= 64);
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
