// Workers of one queue, in this process, on a real server.
#include "tests/fleet/redis_server.hpp"

#include "lib/extras/queue/queue.hpp"
#include "lib/extras/queue/queue_store.hpp"
#include "tests/batch/folder.hpp"
#include "tests/waiting.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

using namespace httpretry;
using namespace httpretry::queue;
using namespace std::chrono_literals;

namespace {

constexpr int kJobs = 300;

class Fixture {
 public:
  Fixture() : redis_({"--appendonly", "yes", "--appendfsync", "no"}) {}

  QueueOptions options() {
    QueueOptions options;
    options.address = parse_queue(redis_.url() + "?job=jobs").value();
    options.tell = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      told_ += text + "\n";
    };
    return options;
  }
  static batch::BatchOptions batch() {
    batch::BatchOptions batch;
    RetryPolicy policy;
    policy.backoff.initial = 1ms;
    ResolvedPolicy resolved;
    resolved.policy = std::make_shared<RetryPolicy>(policy);
    batch.policies = PolicySet(resolved);
    batch.client.middlewares = {retry()};
    batch.runner.parallel = 16;
    return batch;
  }

  EnqueueReport add(const batch::BatchOptions& input) {
    const auto its = Enqueue::open(options(), input);
    REQUIRE(its);
    const auto report = its->add();
    CHECK(report.problem.empty());
    return report;
  }
  // URLs, each with an id.
  batch::BatchOptions urls(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += R"({"id":")" + std::to_string(i) + R"(","url":"http://127.0.0.1:9/"})" + "\n";
    }
    folder_.append("urls", text);
    auto input = batch();
    input.input = folder_ / "urls";
    return input;
  }
  // A third each of GET, POST and POST with a key.
  void enqueue(const FaultServer& server) {
    std::string text;
    for (int i = 0; i < kJobs; ++i) {
      const auto number = std::to_string(i);
      text += R"({"id":")" + number + R"(","url":")" + server.url("/" + number) + "\"";
      if (i % 3 > 0) text += R"(,"body":"x")";
      if (i % 3 > 1) text += R"(,"key":true)";
      text += "}\n";
    }
    folder_.append("in", text);
    auto input = batch();
    input.input = folder_ / "in";
    CHECK(add(input).added == kJobs);
  }
  // A POST without a key.
  void enqueue_one() {
    folder_.append("in", R"({"id":"one","url":"http://127.0.0.1:9/","body":"x"})"
                         "\n");
    auto input = batch();
    input.input = folder_ / "in";
    CHECK(add(input).added == 1);
  }
  batch::RunEnd work() {
    Worker worker(options(), batch(), 30s);
    const auto end = worker.run();
    CHECK(worker.store().late() == 0);
    return end;
  }
  std::set<std::string> results() {
    const auto count = write_lines(options(), Lines::Results, folder_ / "results");
    std::ifstream file(folder_ / "results");
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.insert(line);
    CHECK(lines.size() == count);
    return lines;
  }
  RedisServer& redis() { return redis_; }
  std::string told() {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  RedisServer redis_;
  batch::Folder folder_;
  std::mutex mutex_;
  std::string told_;
};

Step counted(std::atomic<int>& seen) {
  Step step;
  step.respond = [&seen](const SeenRequest& /*request*/) {
    ++seen;
    return Step{200, "ok"};
  };
  return step;
}

}  // namespace

TEST_CASE("two workers send each job once, and end when none is left") {
  FaultServer server({200});
  Fixture queue;
  queue.enqueue(server);
  std::thread other([&] { CHECK(queue.work() == batch::RunEnd::Finished); });
  CHECK(queue.work() == batch::RunEnd::Finished);
  other.join();
  CHECK(server.requests() == kJobs);
  CHECK(queue.results().size() == kJobs);
  CHECK(read_status(queue.options()).counts.done == kJobs);
  CHECK(read_status(queue.options()).workers.empty());
}

TEST_CASE("a server that is killed and starts again loses nothing, and no job is sent twice") {
  Fixture queue;
  std::atomic<int> seen = 0;
  FaultServer server({counted(seen)});
  queue.enqueue(server);
  std::thread other([&] {
    wait_until([&] { return seen >= kJobs / 3; });
    queue.redis().kill();
    queue.redis().start();
  });
  CHECK(queue.work() == batch::RunEnd::Finished);
  other.join();
  CHECK(server.requests() == kJobs);
  CHECK(queue.results().size() == kJobs);
  CHECK(queue.told().find("cannot be reached") != std::string::npos);
  CHECK(queue.told().find("it is back") != std::string::npos);
}

namespace {

// The next job; there is one.
batch::Job next_job(QueueStore& store) {
  std::vector<batch::Job> jobs;
  while (jobs.empty()) {
    std::this_thread::yield();
    store.take(
        1, [](std::string_view /*host*/) { return true; }, jobs);
  }
  return jobs.front();
}

}  // namespace

TEST_CASE("a run is not over while a job that it gives back is not filed") {
  Fixture queue;
  queue.enqueue_one();
  StoreOptions options;
  options.remote.address = queue.options().address;
  options.tell = [](const std::string& /*text*/) {};
  QueueStore store(options);
  const auto job = next_job(store);
  const std::vector<const batch::Job*> jobs{&job};
  CHECK(store.intend(jobs).empty());
  // Another worker finds this one silent.
  RemoteQueue other(options.remote);
  CHECK(other.connect().empty());
  other.open_existing();
  CHECK_FALSE(other.ask(other.command(kReap, {"other", "0", "10", "0-0", "1000000"})).failed());
  CHECK(read_status(queue.options()).counts.unknown == 1);
  // A full server refuses the filing, and answers what only reads.
  const auto limit_memory = [&](const std::string& limit) {
    CHECK(other.ask(plain_command({"CONFIG", "SET", "maxmemory", limit})).text == "OK");
  };
  limit_memory("1");
  store.give_back(job);
  std::vector<batch::Job> none;
  store.take(
      1, [](std::string_view /*host*/) { return true; }, none);
  CHECK(none.empty());
  CHECK(store.counts().sending >= 1);  // the last counts of the server may include this job, too
  CHECK(store.next_due() <= 1s);
  limit_memory("0");
  CHECK(next_job(store).id == job.id);
}

TEST_CASE("after an intent that could not be recorded, a worker requests no jobs for a second") {
  Fixture queue;
  queue.enqueue_one();
  StoreOptions options;
  options.remote.address = queue.options().address;
  options.tell = [](const std::string& /*text*/) {};
  QueueStore store(options);
  auto job = next_job(store);
  RemoteQueue other(options.remote);
  CHECK(other.connect().empty());
  other.open_existing();
  // The job cannot be counted as sent, but can be given back.
  const auto set = other.ask(plain_command({"HSET", other.key(Key::Properties), "n:s", "x"}));
  CHECK_FALSE(set.failed());
  const auto began = std::chrono::steady_clock::now();
  const std::vector<const batch::Job*> jobs{&job};
  for (int i = 0; i < 2; ++i) {  // an earlier request may get the job once more
    CHECK(store.intend(jobs).size() == 1);
    job = next_job(store);
  }
  CHECK(std::chrono::steady_clock::now() - began >= 1s);
}

TEST_CASE("a worker that ends has no job, also if the server gives it what it gave back") {
  Fixture queue;
  queue.enqueue_one();
  StoreOptions options;
  options.remote.address = queue.options().address;
  options.parallel = 1;
  options.tell = [](const std::string& /*text*/) {};
  QueueStore store(options);
  const auto job = next_job(store);
  // Two connections of this worker of which the server does not know that they are closed.
  fleet::Link::Options link;
  link.address = options.remote.address;
  const auto name = read_status(queue.options()).workers.at(0).name;
  fleet::Link first(link);
  fleet::Link second(link);
  for (auto* const taker : {&first, &second}) {
    taker->post(plain_command({"XREADGROUP", "GROUP", "w", name, "BLOCK", "0", "STREAMS",
                               "{hr:jobs}:s", ">"}),
                [](const fleet::Reply& /*reply*/) {});
  }
  fleet::Link other(link);
  while (ask(other, {"INFO", "clients"}).text.find("blocked_clients:2") == std::string::npos) {
    std::this_thread::yield();
  }
  store.give_back(job);
  CHECK(store.close(5s).empty());
  const auto status = read_status(queue.options());
  CHECK(status.workers.empty());
  CHECK(status.counts.queued == 1);
}

TEST_CASE("a worker that is stopped gives back what it did not send") {
  Fixture queue;
  std::atomic<int> seen = 0;
  FaultServer server({counted(seen)});
  queue.enqueue(server);
  {
    auto batch = Fixture::batch();
    batch.runner.until_stopped = true;
    Worker worker(queue.options(), std::move(batch), 30s);
    std::thread other([&] {
      wait_until([&] { return seen >= 50; });
      worker.runner().finish_up();
    });
    CHECK(worker.run() == batch::RunEnd::Stopped);
    other.join();
  }
  const auto status = read_status(queue.options());
  CHECK(status.counts.done == server.requests());
  CHECK(status.counts.queued == kJobs - server.requests());
  CHECK(status.workers.empty());
  CHECK(queue.work() == batch::RunEnd::Finished);
  CHECK(server.requests() == kJobs);
  CHECK(queue.results().size() == kJobs);
}

TEST_CASE("jobs whose reply is lost are added again, once, while the server comes back") {
  Fixture queue;
  const auto input = queue.urls(500);
  const auto adding = Enqueue::open(queue.options(), input);
  REQUIRE(adding);
  std::thread restart;
  const auto report = adding->add([&] {
    if (!restart.joinable() && read_status(queue.options()).counts.queued > 0) {
      // Another program adds them all, as if only the reply had been lost.
      queue.add(input);
      queue.redis().kill();
      restart = std::thread([&] { queue.redis().start(); });
    }
    return false;
  });
  restart.join();
  CHECK(report.problem.empty());
  CHECK(report.line == 500);
  // Those of the lost reply, too: they were not there before.
  CHECK(report.added >= 400);
  CHECK(report.added + report.present == 500);
  CHECK(read_status(queue.options()).counts.queued == 500);
}

TEST_CASE("where adding is given up, it is known what was added and what may have been") {
  Fixture queue;
  auto options = queue.options();
  options.patience = 100ms;
  const auto adding = Enqueue::open(options, queue.urls(500));
  REQUIRE(adding);
  bool killed = false;
  const auto report = adding->add([&] {
    if (killed || read_status(queue.options()).counts.queued == 0) return false;
    queue.redis().kill();
    killed = true;
    return false;
  });
  CHECK(report.problem.find(options.address.text()) == 0);
  CHECK(report.added == report.line);
  CHECK(report.maybe_line == report.line + 200);
  CHECK(!report.without_id);
}

TEST_CASE("where adding is stopped before it began, nothing was added") {
  Fixture queue;
  const auto adding = Enqueue::open(queue.options(), queue.urls(1));
  REQUIRE(adding);
  const auto report = adding->add([] { return true; });
  CHECK(report.problem == "it was stopped");
  CHECK(report.added == 0);
  CHECK(report.present == 0);
  CHECK(report.line == 0);
  CHECK(report.maybe_line == 0);
  CHECK(read_status(queue.options()).counts.total() == 0);
}

TEST_CASE("a job that waits for ten seconds waits on the server, and a shorter wait is kept here") {
  Fixture queue;
  queue.add(queue.urls(2));
  StoreOptions options;
  options.remote.address = queue.options().address;
  options.tell = [](const std::string& /*text*/) {};
  QueueStore store(options);
  const auto first = next_job(store);
  const auto second = next_job(store);
  store.wait(first, 10s - 1ns, /*attempts=*/3, "");
  store.wait(second, 10s, /*attempts=*/4, "");
  wait_until([&] { return read_status(queue.options()).counts.waiting > 0; });
  CHECK(read_status(queue.options()).counts.waiting == 1);
  CHECK(store.close(5s).empty());
  CHECK(read_status(queue.options()).counts.waiting == 2);
  RemoteQueue other(options.remote);
  CHECK(other.connect().empty());
  const auto record = [&](const batch::Job& job) {
    return other.ask(plain_command({"HGET", other.key(Key::Jobs), job.id})).text;
  };
  CHECK(record(first).starts_with("w|3|"));
  CHECK(record(second).starts_with("w|4|"));
}

TEST_CASE("the jobs of a host that asked for a pause wait on the server") {
  Fixture queue;
  queue.add(queue.urls(2));
  StoreOptions options;
  options.remote.address = queue.options().address;
  options.tell = [](const std::string& /*text*/) {};
  QueueStore store(options);
  const auto job = next_job(store);
  store.hold(job.host, 1h);
  store.hold(job.host, 1min);  // the later end counts
  store.give_back(job);
  std::vector<batch::Job> none;
  wait_until([&] {
    store.take(
        1, [](std::string_view /*host*/) { return true; }, none);
    return read_status(queue.options()).counts.waiting == 2;
  });
  CHECK(none.empty());
  const auto due = read_status(queue.options()).next_due;
  REQUIRE(due);
  CHECK(*due > 50min);
  CHECK(*due <= 1h);
}

TEST_CASE("a lease that the worker itself took over is not renewed") {
  Fixture queue;
  queue.enqueue_one();
  StoreOptions options;
  options.remote.address = queue.options().address;
  options.lease = 1s;
  options.tell = [](const std::string& /*text*/) {};
  QueueStore store(options);
  RemoteQueue other(options.remote);
  CHECK(other.connect().empty());
  const auto first = next_job(store);
  const auto before = store.taken(first);
  // As if it had stood still: it finds its own job silent.
  std::vector<batch::Job> again;
  while (again.empty()) {
    const auto pending =
        other.ask(plain_command({"XPENDING", other.key(Key::Entries), "w", "-", "+", "1"})).list;
    REQUIRE(pending.size() == 1);
    CHECK_FALSE(
        other
            .ask(plain_command({"XCLAIM", other.key(Key::Entries), "w", pending[0].list[1].text,
                                "0", before.entry, "IDLE", "5000", "JUSTID"}))
            .failed());
    store.take(
        1, [](std::string_view /*host*/) { return true; }, again);
  }
  const auto after = store.taken(again.front());
  CHECK(after.entry == before.entry);
  CHECK(after.deliveries == before.deliveries + 1);
  wait_until([&] { return !before.lease->allows_sends(std::chrono::steady_clock::now()); });
  CHECK(after.lease->allows_sends(std::chrono::steady_clock::now()));
}

// root may write everywhere, so the thread first becomes another user.
TEST_CASE("a worker does not start if it could not write response bodies into their directory") {
  const batch::Folder folder;
  const auto file = folder.write("file", "text");
  const auto closed = folder / "closed";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(
      closed, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  for (const auto& directory : {file, file + "/below", closed}) {
    CAPTURE(directory);
    std::string error = "none";
    std::thread([&] {
      constexpr long kNobody = 65534;
      ::syscall(SYS_setresuid, kNobody, -1L, -1L);  // of this thread only
      auto batch = Fixture::batch();
      batch.directory = directory;
      QueueOptions options;
      options.address = parse_queue("redis://127.0.0.1:1/0?job=jobs").value();
      try {
        const Worker worker(options, batch, /*lease=*/10s);
      } catch (const batch::StoreError& thrown) {
        error = thrown.what();
      }
    }).join();
    CHECK(error.starts_with("cannot write bodies into the directory " + directory + ": "));
  }
}
