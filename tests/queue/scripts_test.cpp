// The scripts of a queue, driven directly on a real server.
#include "tests/fleet/redis_server.hpp"

#include "lib/extras/queue/remote_queue.hpp"
#include "tests/rounds.hpp"

#include <httpretry/batch/store.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace httpretry::queue;
using fleet::Reply;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kLease = 3'600'000;  // ms; no test lasts as long

// A job that was delivered to a worker.
struct Taken {
  std::string entry;
  std::string id;
  std::int64_t deliveries = 0;
  std::int64_t attempts = 0;
  std::int64_t since = 0;
  std::string key;
  std::string request;
};

// How many jobs are queued, sent, waiting, done, dead, unknown.
using Numbers = std::vector<std::int64_t>;

class Scripts {
 public:
  Scripts() : remote_(options()) {
    static_cast<void>(remote_.connect());
    remote_.open_or_make("policy");
  }

  Reply run(const fleet::Script& script, std::vector<std::string> arguments) {
    auto reply = remote_.ask(script, std::move(arguments));
    CAPTURE(reply.text);
    REQUIRE(!reply.failed());
    return reply;
  }
  Reply plain(std::vector<std::string> words) {
    return remote_.ask(plain_command(std::move(words)));
  }
  Reply add(const std::string& id, const std::string& request = "http://a/",
            const std::string& key = "", std::int64_t not_before = 0) {
    return run(kEnqueue, {"", "1", id, "7", key, std::to_string(not_before), request});
  }

  std::vector<Taken> take(const std::string& worker, int count = 1) {
    const auto reply = plain({"XREADGROUP", "GROUP", "w", worker, "COUNT", std::to_string(count),
                              "STREAMS", remote_.key(Key::Entries), ">"});
    std::vector<std::string> arguments{worker};
    if (!reply.list.empty()) {
      for (const auto& entry : reply.list[0].list[1].list) {
        arguments.push_back(entry.list[0].text);
        arguments.push_back(entry.list[1].list[1].text);
      }
    }
    return taken_of(run(kFetch, arguments));
  }
  std::vector<Taken> reap(const std::string& worker, std::int64_t lease = kLease) {
    const auto reply = run(kReap, {worker, std::to_string(lease), "100", "0-0", "3600000"});
    return taken_of(reply.list.at(1));
  }
  // The same once all leases are over.
  std::vector<Taken> reap_later(const std::string& worker) {
    all_are_silent();
    return reap(worker);
  }
  // All leases end now.
  void all_are_silent() {
    const auto& stream = remote_.key(Key::Entries);
    for (const auto& one : plain({"XPENDING", stream, "w", "-", "+", "1000"}).list) {
      plain({"XCLAIM", stream, "w", one.list[1].text, "0", one.list[0].text, "IDLE",
             std::to_string(2 * kLease), "JUSTID"});
    }
  }
  // The server's time.
  void pass(std::int64_t ms) {
    const auto until = time() + ms;
    while (time() < until) std::this_thread::yield();
  }
  std::int64_t time() { return run(kReadTotals, {""}).at(9); }

  bool intend(const std::string& worker, const Taken& job) {
    return run(kIntend, {worker, job.entry, std::to_string(job.deliveries), job.id}).at(0) == 1;
  }
  std::int64_t finish(const std::string& worker, const Taken& job, const std::string& expected,
                      const std::string& state = "d", const std::string& reason = "") {
    const auto line = job.id + " by " + worker;
    return run(kFinish, {worker, job.entry, std::to_string(job.deliveries), job.id, expected, state,
                         "3", line, "dead " + line, reason})
        .integer;
  }
  std::int64_t wait(const std::string& worker, const Taken& job, const std::string& expected,
                    std::int64_t time) {
    return run(kWait, {worker, job.entry, std::to_string(job.deliveries), job.id, expected, "2",
                       std::to_string(time)})
        .integer;
  }
  std::int64_t release(const std::string& worker, const Taken& job, const std::string& expected) {
    return run(kWait, {worker, job.entry, std::to_string(job.deliveries), job.id, expected})
        .integer;
  }
  std::vector<std::string> beat(const std::string& worker, const std::vector<Taken>& jobs) {
    std::vector<std::string> arguments{worker};
    for (const auto& job : jobs) {
      arguments.push_back(job.entry);
      arguments.push_back(std::to_string(job.deliveries));
    }
    std::vector<std::string> entries;
    for (const auto& index : run(kBeat, arguments).list) {
      entries.push_back(jobs.at(static_cast<std::size_t>(index.integer)).entry);
    }
    return entries;
  }
  // Their ids.
  std::set<std::string> unknown() {
    std::set<std::string> ids;
    std::string cursor = "0";
    do {
      const auto page = run(kUnknown, {"", cursor, "10"});
      REQUIRE(page.list.size() == 2);
      for (const auto& job : page.list[1].list) {
        REQUIRE(job.list.size() == 4);
        ids.insert(job.list[0].text);
      }
      cursor = page.list[0].text;
    } while (cursor != "0");
    return ids;
  }
  std::int64_t retry(int most) { return run(kRetry, {"", std::to_string(most)}).integer; }
  Numbers numbers() {
    const auto totals = run(kReadTotals, {""});
    Numbers found;
    for (std::size_t i = 0; i < 6; ++i) found.push_back(totals.at(i));
    return found;
  }
  std::int64_t late() { return run(kReadTotals, {""}).at(6); }
  std::int64_t poison() { return run(kReadTotals, {""}).at(7); }
  // The lines of the results, or of dead letters.
  std::vector<std::string> lines(Key key = Key::Results) {
    std::vector<std::string> found;
    for (const auto& entry : plain({"XRANGE", remote_.key(key), "-", "+"}).list) {
      found.push_back(entry.list[1].list[3].text);
    }
    return found;
  }
  // Entries that were delivered and not ended.
  std::size_t pending() {
    return plain({"XPENDING", remote_.key(Key::Entries), "w", "-", "+", "1000"}).list.size();
  }
  std::int64_t length() { return plain({"XLEN", remote_.key(Key::Entries)}).integer; }
  RemoteQueue& remote() { return remote_; }
  RedisServer& server() { return server_; }

 private:
  RemoteOptions options() {
    RemoteOptions options;
    options.address = server_.address();
    options.address.job = "jobs";
    options.reply_timeout = 10s;
    return options;
  }
  static std::vector<Taken> taken_of(const Reply& reply) {
    std::vector<Taken> found;
    for (const auto& one : reply.list) {
      REQUIRE(one.list.size() == 8);
      CHECK(one.at(5) == 7);  // the line
      found.push_back({one.list[0].text, one.list[1].text, one.at(2), one.at(3), one.at(4),
                       one.list[6].text, one.list[7].text});
    }
    return found;
  }

  RedisServer server_;
  RemoteQueue remote_;
};

Taken only(const std::vector<Taken>& jobs) {
  REQUIRE(jobs.size() == 1);
  return jobs.front();
}

}  // namespace

TEST_CASE("a job is added once, and its id is that of one request") {
  Scripts queue;
  CHECK(queue.add("a").at(0) == 1);
  CHECK(queue.add("a").at(0) == 0);
  CHECK(queue.add("a").at(1) == 1);
  // Another request: nothing of the list is added.
  const auto reply = queue.run(
      kEnqueue, {"", "1", "b", "7", "", "0", "http://b/", "a", "7", "", "0", "http://c/"});
  REQUIRE(reply.list.at(2).list.size() == 1);
  CHECK(reply.list.at(2).list[0].integer == 1);
  CHECK(queue.numbers() == Numbers{1, 0, 0, 0, 0, 0});
  // Also when it has ended.
  CHECK(queue.finish("w1", only(queue.take("w1", 10)), "q") == 1);
  CHECK(queue.add("a").at(1) == 1);
  CHECK(queue.add("a", "http://c/").list.at(2).list.size() == 1);
  CHECK(queue.numbers() == Numbers{0, 0, 0, 1, 0, 0});
  // To compare adds nothing.
  CHECK(queue.run(kEnqueue, {"", "0", "z", "7", "", "0", "http://z/"}).at(0) == 1);
  CHECK(queue.numbers() == Numbers{0, 0, 0, 1, 0, 0});
}

TEST_CASE("a request and a key come back as they were, whatever bytes they have") {
  Scripts queue;
  const std::string request("{\"a\":\"|%d|\n\0ä\"}", 16);
  queue.add("1|x", request, "k|12|e|y");
  const auto job = only(queue.take("w1"));
  CHECK(job.id == "1|x");
  CHECK(job.request == request);
  CHECK(job.key == "k|12|e|y");
  CHECK(job.since == 0);
  // It may have been sent since it was delivered first.
  const auto again = only(queue.reap_later("w2"));
  CHECK(again.key == "k|12|e|y");
  CHECK(again.since > 1'700'000'000'000);
  CHECK(again.since <= queue.time());
  CHECK(again.deliveries == 2);
}

TEST_CASE("a job that ended has one line in the results, and leaves the stream") {
  Scripts queue;
  queue.add("a");
  queue.add("b");
  const auto jobs = queue.take("w1", 2);
  REQUIRE(jobs.size() == 2);
  CHECK(queue.finish("w1", jobs[0], "q") == 1);
  CHECK(queue.finish("w1", jobs[1], "q", "x") == 1);
  // Once more, because the reply was lost.
  CHECK(queue.finish("w1", jobs[0], "q") == 1);
  CHECK(queue.lines() == std::vector<std::string>{"a by w1", "b by w1"});
  CHECK(queue.lines(Key::DeadLetters) == std::vector<std::string>{"dead b by w1"});
  CHECK(queue.numbers() == Numbers{0, 0, 0, 1, 1, 0});
  CHECK(queue.pending() == 0);
  CHECK(queue.length() == 0);
  CHECK(queue.late() == 0);
}

TEST_CASE("two workers race to finish: the one that has the job wins, the other is late") {
  for (const bool owner_first : {true, false}) {
    CAPTURE(owner_first);
    Scripts queue;
    queue.add("a");
    const auto first = only(queue.take("w1"));
    const auto second = only(queue.reap_later("w2"));
    CHECK(second.entry == first.entry);
    if (owner_first) CHECK(queue.finish("w2", second, "q") == 1);
    CHECK(queue.finish("w1", first, "q") == 0);
    if (!owner_first) CHECK(queue.finish("w2", second, "q") == 1);
    CHECK(queue.lines() == std::vector<std::string>{"a by w2"});
    CHECK(queue.late() == 1);
  }
}

TEST_CASE("a worker that took over its own job is fenced from its earlier self") {
  Scripts queue;
  queue.add("a");
  const auto before = only(queue.take("w1"));
  const auto now = only(queue.reap_later("w1"));
  CHECK(queue.finish("w1", before, "q") == 0);
  CHECK(queue.wait("w1", before, "q", 0) == 0);
  CHECK(queue.release("w1", before, "q") == 0);
  CHECK(!queue.intend("w1", before));
  CHECK(queue.beat("w1", {before}).empty());
  CHECK(queue.finish("w1", now, "q") == 1);
}

TEST_CASE("a heartbeat keeps a job, and does not take it back") {
  Scripts queue;
  queue.add("a");
  queue.add("b");
  const auto jobs = queue.take("w1", 2);
  queue.all_are_silent();
  CHECK(queue.beat("w1", jobs).size() == 2);
  CHECK(queue.reap("w2").empty());
  queue.all_are_silent();
  CHECK(queue.beat("w1", {jobs[0]}) == std::vector<std::string>{jobs[0].entry});
  const auto taken = only(queue.reap("w2"));
  CHECK(taken.id == "b");
  // Without the guard, XCLAIM would give it back.
  CHECK(queue.beat("w1", jobs) == std::vector<std::string>{jobs[0].entry});
  CHECK(queue.finish("w1", jobs[1], "q") == 0);
  CHECK(queue.finish("w2", taken, "q") == 1);
  CHECK(queue.finish("w1", jobs[0], "q") == 1);
}

TEST_CASE("what may have been sent and must not be again is unknown when its worker is silent") {
  Scripts queue;
  queue.add("a");
  const auto job = only(queue.take("w1"));
  CHECK(queue.intend("w1", job));
  CHECK(queue.intend("w1", job));  // the reply was lost
  CHECK(queue.numbers() == Numbers{0, 1, 0, 0, 0, 0});
  CHECK(queue.reap_later("w2").empty());
  CHECK(queue.numbers() == Numbers{0, 0, 0, 0, 0, 1});
  CHECK(queue.pending() == 0);
  CHECK(!queue.intend("w1", job));
  CHECK(queue.lines().empty());

  SUBCASE("its late outcome resolves it") {
    CHECK(queue.finish("w1", job, "s") == 2);
    CHECK(queue.finish("w1", job, "s") == 1);
    CHECK(queue.numbers() == Numbers{0, 0, 0, 1, 0, 0});
    CHECK(queue.lines() == std::vector<std::string>{"a by w1"});
    CHECK(queue.late() == 0);
  }
  SUBCASE("not that of another") {
    CHECK(queue.finish("w2", job, "s") == 0);
    CHECK(queue.numbers() == Numbers{0, 0, 0, 0, 0, 1});
    CHECK(queue.late() == 1);
  }
  SUBCASE("nothing was sent: it is queued again") {
    CHECK(queue.release("w1", job, "*") == 1);
    CHECK(queue.release("w1", job, "*") == 1);
    CHECK(only(queue.take("w2", 10)).id == "a");
  }
  SUBCASE("it has to wait") {
    CHECK(queue.wait("w1", job, "*", 1000) == 1);
    CHECK(queue.numbers() == Numbers{0, 0, 1, 0, 0, 0});
  }
  SUBCASE("it is queued again on request, and its late outcome does not count") {
    CHECK(queue.unknown() == std::set<std::string>{"a"});
    CHECK(queue.retry(10) == 1);
    CHECK(queue.retry(10) == 0);
    CHECK(queue.unknown().empty());
    CHECK(queue.numbers() == Numbers{1, 0, 0, 0, 0, 0});
    CHECK(queue.finish("w1", job, "s") == 0);
    CHECK(queue.wait("w1", job, "*", 1000) == 0);
    CHECK(queue.release("w1", job, "*") == 0);
    const auto again = only(queue.take("w2", 10));
    CHECK(again.deliveries == 1);
    CHECK(queue.intend("w2", again));
    CHECK(queue.finish("w1", job, "s") == 0);
    CHECK(queue.finish("w2", again, "s") == 1);
    CHECK(queue.lines() == std::vector<std::string>{"a by w2"});
    CHECK(queue.late() == 2);
  }
  SUBCASE("it ends as unknown") {
    CHECK(queue.finish("w1", job, "s", "u") == 0);
    CHECK(queue.numbers() == Numbers{0, 0, 0, 0, 0, 1});
  }
}

TEST_CASE("an intent is only for who has the job in the state that it expects") {
  Scripts queue;
  queue.add("a");
  const auto first = only(queue.take("w1"));
  const auto second = only(queue.reap_later("w2"));
  CHECK(!queue.intend("w1", first));
  CHECK(queue.intend("w2", second));
  CHECK(queue.finish("w2", second, "q") == 0);  // the state is another
  CHECK(queue.finish("w2", second, "s") == 1);
}

TEST_CASE("a second entry of a job lets no other worker send it") {
  Scripts queue;
  queue.add("a");
  const auto add_entry = [&] {
    queue.plain({"XADD", queue.remote().key(Key::Entries), "*", "i", "a"});
  };

  SUBCASE("both have it before one says that it sends") {
    add_entry();
    const auto first = only(queue.take("w1"));
    const auto second = only(queue.take("w2"));
    CHECK(queue.intend("w1", first));
    CHECK(!queue.intend("w2", second));
    SUBCASE("the other gives it back") { CHECK(queue.release("w2", second, "*") == 0); }
    SUBCASE("the other lets it wait") { CHECK(queue.wait("w2", second, "*", 0) == 0); }
    SUBCASE("the other ends it") { CHECK(queue.finish("w2", second, "s") == 0); }
    SUBCASE("the other leaves") { CHECK(queue.run(kLeave, {"w2"}).integer == 0); }
    queue.run(kTick, {"", "10"});
    CHECK(queue.take("w3", 10).empty());
    CHECK(queue.numbers() == Numbers{0, 1, 0, 0, 0, 0});
    CHECK(queue.finish("w1", first, "s") == 1);
    CHECK(queue.lines() == std::vector<std::string>{"a by w1"});
    // The second entry is dropped when its lease ends.
    CHECK(queue.reap_later("w3").empty());
    CHECK(queue.length() == 0);
  }
  SUBCASE("one worker has both") {
    add_entry();
    const auto both = queue.take("w1", 10);
    REQUIRE(both.size() == 2);
    CHECK(queue.intend("w1", both[0]));
    CHECK(!queue.intend("w1", both[1]));
    CHECK(queue.release("w1", both[1], "*") == 0);
    CHECK(queue.take("w2", 10).empty());
    CHECK(queue.finish("w1", both[0], "s") == 1);
  }
  SUBCASE("it is delivered while the job is sent, which goes on") {
    const auto first = only(queue.take("w1"));
    CHECK(queue.intend("w1", first));
    add_entry();
    CHECK(queue.take("w2").empty());
    CHECK(queue.numbers() == Numbers{0, 1, 0, 0, 0, 0});
    CHECK(queue.unknown().empty());
    CHECK(queue.length() == 1);
    SUBCASE("to its end") { CHECK(queue.finish("w1", first, "s") == 1); }
    SUBCASE("until its worker is silent") {
      CHECK(queue.reap_later("w2").empty());
      CHECK(queue.numbers() == Numbers{0, 0, 0, 0, 0, 1});
    }
  }
  SUBCASE("and the first is lost: nobody knows what became of the job") {
    const auto first = only(queue.take("w1"));
    CHECK(queue.intend("w1", first));
    queue.plain({"XACK", queue.remote().key(Key::Entries), "w", first.entry});
    queue.plain({"XDEL", queue.remote().key(Key::Entries), first.entry});
    add_entry();
    CHECK(queue.take("w2").empty());
    CHECK(queue.numbers() == Numbers{0, 0, 0, 0, 0, 1});
  }
}

TEST_CASE("a job that waits is due by the server's clock, and then like any other") {
  Scripts queue;
  queue.add("a");
  const auto job = only(queue.take("w1"));
  CHECK(queue.wait("w1", job, "q", 1) == 1);
  CHECK(queue.wait("w1", job, "q", 1) == 1);
  CHECK(queue.numbers() == Numbers{0, 0, 1, 0, 0, 0});
  queue.add("later", "http://a/", "", queue.time() + kLease);
  queue.pass(2);
  CHECK(queue.run(kTick, {"", "100"}).integer == 1);
  const auto due = queue.run(kReadTotals, {""}).at(8);
  CHECK(due > 0);
  CHECK(due <= kLease);
  const auto again = only(queue.take("w2"));
  CHECK(again.deliveries == 1);
  CHECK(again.attempts == 2);
  CHECK(queue.finish("w1", job, "q") == 0);
  CHECK(queue.finish("w2", again, "q") == 1);
}

TEST_CASE("times are exact to the millisecond, and a date in the past is none") {
  Scripts queue;
  const auto date = queue.time() + 3'600'000;
  queue.add("a", "http://a/", "", date);
  queue.add("b", "http://b/", "", queue.time() - 5);
  CHECK(queue.numbers() == Numbers{1, 0, 1, 0, 0, 0});
  CHECK(queue.plain({"ZSCORE", queue.remote().key(Key::Waiting), "a"}).text ==
        std::to_string(date));
}

TEST_CASE("a tick moves so many jobs at most") {
  Scripts queue;
  for (int i = 0; i < 7; ++i) {
    queue.add(std::to_string(i));
    queue.wait("w1", only(queue.take("w1")), "q", 1);
  }
  queue.pass(2);
  CHECK(queue.run(kTick, {"", "5"}).integer == 5);
  CHECK(queue.run(kTick, {"", "5"}).integer == 2);
  CHECK(queue.numbers()[0] == 7);
}

TEST_CASE("a worker that leaves gives back what it has") {
  Scripts queue;
  queue.add("a");
  queue.add("b");
  const auto jobs = queue.take("w1", 2);
  CHECK(queue.intend("w1", jobs[1]));
  CHECK(queue.run(kLeave, {"w1"}).integer == 1);
  CHECK(queue.numbers() == Numbers{1, 0, 0, 0, 0, 1});
  CHECK(queue.plain({"XINFO", "CONSUMERS", queue.remote().key(Key::Entries), "w"}).list.empty());
  CHECK(only(queue.take("w2", 10)).id == "a");
}

TEST_CASE("consumers without jobs are forgotten after their time") {
  Scripts queue;
  queue.add("a");
  CHECK(queue.finish("w1", only(queue.take("w1")), "q") == 1);
  queue.pass(5);
  queue.run(kReap, {"w2", "20", "10", "0-0", "3600000"});
  // From Redis 7.2 on, w2 is one, too, though it has claimed nothing.
  const auto has_first = [&] {
    const auto consumers =
        queue.plain({"XINFO", "CONSUMERS", queue.remote().key(Key::Entries), "w"}).list;
    return std::ranges::any_of(consumers, [](const auto& one) { return one.list[1].text == "w1"; });
  };
  CHECK(has_first());
  queue.run(kReap, {"w2", "20", "10", "0-0", "1"});
  CHECK_FALSE(has_first());
}

TEST_CASE("what is unknown is listed, and queued again so many at a time") {
  Scripts queue;
  for (int i = 0; i < 300; ++i) {
    queue.add(std::to_string(i), "http://a/" + std::to_string(i), i % 2 == 0 ? "key" : "");
  }
  const auto jobs = queue.take("w1", 300);
  for (const auto& job : jobs) CHECK(queue.finish("w1", job, "q", "u") == 1);
  CHECK(queue.unknown().size() == 300);
  for (const auto count : {100, 100, 100, 0}) CHECK(queue.retry(100) == count);
  CHECK(queue.unknown().empty());
  CHECK(queue.numbers() == Numbers{300, 0, 0, 0, 0, 0});
  // A key counts as new: it may have been sent since now.
  const auto now = queue.time();
  for (const auto& job : queue.take("w2", 300)) {
    CHECK(job.request == "http://a/" + job.id);
    CHECK((job.since > 0) == !job.key.empty());
    CHECK(job.since <= now);
  }
}

TEST_CASE("of two deliveries of one entry to one worker, only the newer is renewed") {
  Scripts queue;
  queue.add("a");
  const auto before = only(queue.take("w1"));
  const auto now = only(queue.reap_later("w1"));
  REQUIRE(now.entry == before.entry);
  const auto renewed = [&](const Taken& first, const Taken& second) {
    std::vector<std::int64_t> indexes;
    for (const auto& index : queue
                                 .run(kBeat, {"w1", first.entry, std::to_string(first.deliveries),
                                              second.entry, std::to_string(second.deliveries)})
                                 .list) {
      indexes.push_back(index.integer);
    }
    return indexes;
  };
  CHECK(renewed(before, now) == std::vector<std::int64_t>{1});
  CHECK(renewed(now, before) == std::vector<std::int64_t>{0});
}

TEST_CASE("a queue that is not there is not made by a look, and the others are named") {
  Scripts queue;
  RemoteOptions options;
  options.address = queue.server().address();
  options.address.job = "jbos";
  RemoteQueue other(options);
  static_cast<void>(other.connect());
  const auto where = options.address.text();
  CHECK_THROWS_WITH_AS(other.open_existing(),
                       ("there is no queue jbos on " + where + "; queues there: jobs").c_str(),
                       batch::StoreError);
  CHECK(queue.plain({"KEYS", "*jbos*"}).list.empty());
  CHECK(queue.plain({"FLUSHALL"}).text == "OK");
  CHECK_THROWS_WITH_AS(other.open_existing(), ("there is no queue jbos on " + where).c_str(),
                       batch::StoreError);
}

TEST_CASE("keys that are not those of a queue are an error, which is printable") {
  Scripts queue;
  CHECK(queue.plain({"SET", "{hr:other}:s", "text"}).text == "OK");
  RemoteOptions options;
  options.address = queue.server().address();
  options.address.job = "other";
  RemoteQueue other(options);
  static_cast<void>(other.connect());
  CHECK_THROWS_WITH_AS(other.open_or_make(""), doctest::Contains("WRONGTYPE"), batch::StoreError);
  // Nothing is half made.
  CHECK(queue.plain({"EXISTS", "{hr:other}:m"}).integer == 0);

  Reply reply;
  reply.kind = Reply::Kind::Error;
  reply.text = "ERR \x1b[2J\nmore";
  CHECK(std::string(other.error(reply).what()) == other.name() + ": ERR \\x1b[2J\\x0amore");
}

TEST_CASE("lost and changed keys show in the totals once no worker can get a job") {
  Scripts queue;
  const auto damaged = [&] { return read_totals(queue.run(kReadTotals, {""}))->damaged; };
  CHECK(!damaged());
  queue.add("a");
  queue.add("b", "http://a/", "", 4'000'000'000'000);
  CHECK(!damaged());
  const auto job = only(queue.take("w1", 10));
  CHECK(queue.intend("w1", job));
  CHECK(!damaged());
  SUBCASE("the stream") { queue.plain({"DEL", queue.remote().key(Key::Entries)}); }
  SUBCASE("the jobs") {
    queue.plain({"DEL", queue.remote().key(Key::Jobs)});
    CHECK(!damaged());
    queue.run(kLeave, {"w1"});
  }
  SUBCASE("a counter that is no number") {
    queue.plain({"HSET", queue.remote().key(Key::Properties), "n:d", "many"});
  }
  SUBCASE("a counter that is another number") {
    CHECK(queue.finish("w1", job, "s") == 1);
    CHECK(!damaged());
    queue.plain({"HSET", queue.remote().key(Key::Properties), "n:w", "0"});
  }
  CHECK(damaged());
}

TEST_CASE("counters that somebody changed are not below zero, and other replies are none") {
  Scripts queue;
  queue.plain({"HSET", queue.remote().key(Key::Properties), "n:q", "-3", "late", "-1", "n:d", "2"});
  const auto totals = read_totals(queue.run(kReadTotals, {""}));
  REQUIRE(totals);
  CHECK(totals->counts.queued == 0);
  CHECK(totals->late == 0);
  CHECK(totals->counts.total() == 2);
  CHECK(!totals->next_due);
  CHECK(!read_totals(Reply()));
  CHECK(!read_totals(queue.plain({"KEYS", "*"})));
}

TEST_CASE("deliveries are counted, so that a job that ends its workers can be given up") {
  Scripts queue;
  queue.add("a");
  auto job = only(queue.take("w0"));
  for (int i = 1; i <= 5; ++i) job = only(queue.reap_later("w" + std::to_string(i)));
  CHECK(job.deliveries == 6);
  CHECK(queue.finish("w5", job, "q", "x", "poison") == 1);
  CHECK(queue.poison() == 1);
  CHECK(queue.numbers() == Numbers{0, 0, 0, 0, 1, 0});
}

TEST_CASE("a queue that was deleted, or made anew, is told apart") {
  Scripts queue;
  queue.add("a");
  const auto job = only(queue.take("w1"));
  CHECK(queue.plain({"FLUSHALL"}).text == "OK");
  const auto finish = [&] {
    return queue.remote().ask(kFinish, {"w1", job.entry, "1", "a", "q", "d", "1", "line", "", ""});
  };
  CHECK(says_gone(finish()));
  // Another one of the same name.
  RemoteOptions options;
  options.address = queue.server().address();
  options.address.job = "jobs";
  RemoteQueue other(options);
  static_cast<void>(other.connect());
  CHECK_THROWS_AS(other.open_existing(), batch::StoreError);
  other.open_or_make("");
  CHECK(says_gone(finish()));
  CHECK(other.token() != queue.remote().token());
}

TEST_CASE("a server that is full refuses a step, and nothing of it is done") {
  Scripts queue;
  queue.add("u");
  CHECK(queue.intend("w1", only(queue.take("w1"))));
  CHECK(queue.reap_later("w2").empty());
  queue.add("w");
  queue.wait("w1", only(queue.take("w1")), "q", 1);
  queue.pass(2);
  queue.add("a");
  queue.add("b", "http://b/", "key");
  const auto jobs = queue.take("w1", 2);
  REQUIRE(jobs.size() == 2);
  CHECK(queue.plain({"CONFIG", "SET", "maxmemory", "1"}).text == "OK");
  queue.all_are_silent();
  const auto before = queue.numbers();
  const auto refused = [&](const fleet::Script& script, std::vector<std::string> arguments) {
    const auto reply = queue.remote().ask(script, std::move(arguments));
    CHECK(reply.text.find("OOM") != std::string::npos);
  };
  const auto& job = jobs[0];
  refused(kFinish, {"w1", job.entry, "1", "a", "q", "d", "1", "line", "", ""});
  refused(kWait, {"w1", job.entry, "1", "a", "q", "1", "10"});
  refused(kWait, {"w1", job.entry, "1", "a", "q"});
  refused(kIntend, {"w1", job.entry, "1", "a"});
  refused(kReap, {"w2", std::to_string(kLease), "100", "0-0", "3600000"});
  refused(kLeave, {"w1"});
  refused(kTick, {"", "100"});
  refused(kRetry, {"", "100"});
  refused(kEnqueue, {"", "1", "c", "7", "", "0", "http://c/"});
  CHECK(queue.numbers() == before);
  CHECK(queue.plain({"CONFIG", "SET", "maxmemory", "0"}).text == "OK");
  CHECK(queue.run(kTick, {"", "100"}).integer == 1);
  CHECK(queue.retry(100) == 1);
  CHECK(queue.finish("w1", jobs[0], "q") == 1);
  CHECK(queue.finish("w1", jobs[1], "q") == 1);
  for (const auto& again : queue.take("w2", 10)) CHECK(queue.finish("w2", again, "q") == 1);
  CHECK(queue.numbers() == Numbers{0, 0, 0, 4, 0, 0});
}

TEST_CASE("scripts that the server forgot are sent again") {
  Scripts queue;
  CHECK(queue.plain({"SCRIPT", "FLUSH"}).text == "OK");
  queue.add("a");
  CHECK(queue.finish("w1", only(queue.take("w1")), "q") == 1);
}

TEST_CASE("what a server must have to keep a queue") {
  const std::string good = "# Server\r\nredis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n";
  CHECK(check_server("r", good + "aof_enabled:1\r\n", "", false).empty());
  CHECK(check_server("r", good + "aof_enabled:0\r\n", "3600 1", false).empty());
  CHECK(check_server("r", good + "aof_enabled:0\r\n", "", false) ==
        "r keeps its data in memory only: a restart loses the queue. Set appendonly to yes");
  CHECK_THROWS_WITH_AS(
      static_cast<void>(check_server("r", "\r\nredis_version:6.0.16\r\n", "", true)),
      "r is Redis 6.0.16, and a queue needs 6.2 or newer", batch::StoreError);
  CHECK(check_server("r", "\r\nredis_version:6.2.0\r\n", "", false).empty());
  CHECK(check_server("r", "\r\nredis_version:10.0\r\n", "", false).empty());
  const std::string bad = "\r\nredis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\n";
  CHECK_THROWS_WITH_AS(static_cast<void>(check_server("r", bad, "", false)),
                       "r has maxmemory-policy allkeys-lru: when its memory is full it deletes "
                       "jobs. Set it to noeviction, or add --force",
                       batch::StoreError);
  CHECK(check_server("r", bad, "", true).empty());
}

// Random steps of three workers, against a model of what each job is.
namespace {

struct Model {
  char state = 'q';
  int results = 0;
};

struct Flight {
  std::string worker;
  Taken job;
  bool intended = false;
};

class ModelTest {
 public:
  explicit ModelTest(unsigned seed) : random_(seed) {}

  // Returns how many jobs were queued again that were unknown.
  std::size_t run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      check();
    }
    return retried_;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  std::string worker() { return "w" + std::to_string(below(3)); }

  void step() {
    switch (below(10)) {
      case 9: return retry();
      case 0: return add();
      case 1:
      case 2: return take(queue_.take(worker_ = worker(), static_cast<int>(below(3)) + 1), false);
      case 3: return silence();
      case 4: return tick();
      default: return with_flight();
    }
  }
  void add() {
    const auto id = std::to_string(jobs_.size());
    queue_.add(id);
    jobs_[id] = Model();
  }
  void take(const std::vector<Taken>& taken, bool again) {
    for (const auto& job : taken) {
      CHECK(jobs_.at(job.id).state == 'q');
      CHECK((job.deliveries > 1) == again);
      // A flight that had it before stays, and is late.
      flights_.push_back({worker_, job});
      owner_[job.id] = flights_.size() - 1;
    }
  }
  // All that is delivered is taken over by one worker.
  void silence() {
    if (below(3) != 0) return;
    worker_ = worker();
    std::vector<std::string> sent;
    for (const auto& [id, flight] : owner_) {
      if (flights_[flight].intended) sent.push_back(id);
    }
    take(queue_.reap(worker_, 0), true);
    for (const auto& id : sent) {
      jobs_.at(id).state = 'u';
      owner_.erase(id);
    }
  }
  // Which of them, the server chooses.
  void retry() {
    if (below(3) != 0) return;
    const auto most = static_cast<std::int64_t>(below(2)) + 1;
    const auto before = unknown();
    const auto count = std::min(most, static_cast<std::int64_t>(before.size()));
    CHECK(queue_.retry(static_cast<int>(most)) == count);
    const auto after = queue_.unknown();
    for (const auto& id : before) {
      if (after.contains(id)) continue;
      jobs_.at(id).state = 'q';
      holder_.erase(id);
    }
    retried_ += static_cast<std::size_t>(count);
  }
  std::set<std::string> unknown() const {
    std::set<std::string> ids;
    for (const auto& [id, job] : jobs_) {
      if (job.state == 'u') ids.insert(id);
    }
    return ids;
  }
  void tick() {
    queue_.pass(2);
    queue_.run(kTick, {"", "1000"});
    for (auto& [id, job] : jobs_) {
      if (job.state == 'w') job.state = 'q';
    }
  }
  void with_flight() {
    if (flights_.empty()) return;
    const auto index = below(flights_.size());
    auto& flight = flights_[index];
    const auto& id = flight.job.id;
    auto& job = jobs_.at(id);
    const auto owner = owner_.find(id);
    const bool mine = owner != owner_.end() && owner->second == index;
    const auto holder = holder_.find(id);
    const bool resolves = job.state == 'u' && holder != holder_.end() && holder->second == index;
    if (ended_.contains(index)) return;
    const std::string expected = flight.intended ? "s" : "q";
    const auto act = below(4);
    if (act == 0) {
      CHECK(queue_.intend(flight.worker, flight.job) == mine);
      if (!mine) return;
      flight.intended = true;
      holder_[id] = index;
      job.state = 's';
      return;
    }
    ended_.insert({index, true});
    const bool good = mine || resolves;
    if (act == 1) {
      CHECK((queue_.wait(flight.worker, flight.job, expected, 1) == 1) == good);
      if (good) job.state = 'w';
    } else if (act == 2) {
      CHECK((queue_.release(flight.worker, flight.job, expected) == 1) == good);
      if (good) job.state = 'q';
    } else {
      const bool dead = below(4) == 0;
      CHECK(queue_.finish(flight.worker, flight.job, expected, dead ? "x" : "d") == (mine ? 1
                                                                                     : resolves
                                                                                         ? 2
                                                                                         : 0));
      if (good) job.state = dead ? 'x' : 'd';
      if (good) ++job.results;
    }
    if (mine) owner_.erase(id);
  }
  void check() {
    std::map<char, std::int64_t> counts;
    std::size_t results = 0;
    for (const auto& [id, job] : jobs_) {
      ++counts[job.state];
      CHECK(job.results <= 1);
      results += static_cast<std::size_t>(job.results);
    }
    CHECK(queue_.numbers() ==
          Numbers{counts['q'], counts['s'], counts['w'], counts['d'], counts['x'], counts['u']});
    CHECK(queue_.unknown() == unknown());
    CHECK(queue_.lines().size() == results);
    CHECK(queue_.pending() == owner_.size());
    CHECK(queue_.length() == counts['q'] + counts['s']);
    CHECK_FALSE(read_totals(queue_.run(kReadTotals, {""}))->damaged);
  }

  std::mt19937 random_;
  Scripts queue_;
  std::string worker_;
  std::map<std::string, Model> jobs_;
  std::vector<Flight> flights_;
  std::map<std::string, std::size_t> owner_;   // which flight has the job
  std::map<std::string, std::size_t> holder_;  // which said last that it sends
  std::size_t retried_ = 0;
  std::map<std::size_t, bool> ended_;
};

}  // namespace

TEST_CASE("random steps of three workers, against a model of the states") {
  std::size_t retried = 0;
  for (unsigned seed = 1; seed <= static_cast<unsigned>(rounds(4)); ++seed) {
    CAPTURE(seed);
    retried += ModelTest(seed).run(250);
  }
  CHECK(retried > 0);
}
