// The scripts of a queue, run directly on a real server.
#include "scripts.hpp"

#include <httpretry/batch/store.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::queue;

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

TEST_CASE("a search for silent jobs goes on from where the last one ended") {
  Scripts queue;
  queue.add("a");
  queue.add("b");
  const auto jobs = queue.take("w1", 2);
  REQUIRE(jobs.size() == 2);
  queue.all_are_silent();
  const auto search = [&](const std::string& from) {
    return queue.run(kReap, {"w2", std::to_string(kLease), "1", from, "3600000"});
  };
  // There is none after the last entry.
  CHECK(search("9999999999999-0").list.at(1).list.empty());
  const auto first = search("0-0");
  REQUIRE(first.list.at(1).list.size() == 1);
  CHECK(first.list[1].list[0].list.at(1).text == "a");
  CHECK(first.list[0].text == jobs[1].entry);
  const auto second = search(first.list[0].text);
  REQUIRE(second.list.at(1).list.size() == 1);
  CHECK(second.list[1].list[0].list.at(1).text == "b");
  CHECK(second.list[0].text == "0-0");
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
  CHECK(queue.remote().ask(kOpen, {"", "policy", "0"}).list.size() == 2);
  CHECK(queue.numbers() == before);
  CHECK(queue.plain({"CONFIG", "SET", "maxmemory", "0"}).text == "OK");
  CHECK(queue.run(kTick, {"", "100"}).integer == 1);
  CHECK(queue.retry(100) == 1);
  CHECK(queue.finish("w1", jobs[0], "q") == 1);
  CHECK(queue.finish("w1", jobs[1], "q") == 1);
  for (const auto& again : queue.take("w2", 10)) CHECK(queue.finish("w2", again, "q") == 1);
  CHECK(queue.numbers() == Numbers{0, 0, 0, 4, 0, 0});
}

TEST_CASE("an error of the server may mean that the queue is gone or damaged") {
  struct Row {
    const char* text;
    bool gone, damaged;
  };
  for (const auto& row : std::vector<Row>{
           {"GONE the queue is not there any more", true, false},
           {"ERR user_script:3: GONE the queue is not there any more", true, false},
           {"NOGROUP No such key", true, false},
           {"ERR NOGROUP No such key", true, false},
           {"UNBLOCKED the stream key no longer exists", true, false},
           {"ERR UNBLOCKED", false, false},
           {"ODD the reply does not fit", false, true},
           {"ERR ODD", false, false},
           {"WRONGTYPE Operation against a key", false, true},
           {"ERR user_script:3: WRONGTYPE Operation against a key", false, true},
           {"ERR hash value is not an integer", false, true},
           {"OOM command not allowed", false, false},
       }) {
    CAPTURE(row.text);
    Reply reply;
    reply.text = row.text;
    reply.kind = Reply::Kind::Error;
    CHECK(says_gone(reply) == row.gone);
    CHECK(says_damaged(reply) == row.damaged);
    reply.kind = Reply::Kind::Lost;
    CHECK_FALSE(says_gone(reply));
    CHECK_FALSE(says_damaged(reply));
  }
}

TEST_CASE("entries are ordered by their numbers, and times of the server are bounded") {
  CHECK(order_of("9-1") < order_of("10-0"));
  CHECK(order_of("5-9") < order_of("5-10"));
  CHECK(order_of("0-0") < order_of("0-1"));
  CHECK(order_of("x") == order_of("0-0"));
  CHECK(order_of("5") == order_of("5-0"));
  Reply reply;
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{7}, INT64_MAX}) {
    reply.list.emplace_back().integer = number;
  }
  using std::chrono::milliseconds;
  CHECK(ms_in(reply, 0) == milliseconds(0));
  CHECK(ms_in(reply, 1) == milliseconds(7));
  CHECK(ms_in(reply, 2) == milliseconds(Duration::max() / milliseconds(1) / 2));
  CHECK(ms_in(reply, 3) == milliseconds(0));
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
      "r is Redis 6.0.16, but a queue needs 6.2 or later", batch::StoreError);
  CHECK(check_server("r", "\r\nredis_version:6.2.0\r\n", "", false).empty());
  CHECK(check_server("r", "\r\nredis_version:10.0\r\n", "", false).empty());
  const std::string bad = "\r\nredis_version:7.0.15\r\nmaxmemory_policy:allkeys-lru\r\n";
  CHECK_THROWS_WITH_AS(static_cast<void>(check_server("r", bad, "", false)),
                       "r has maxmemory-policy allkeys-lru: when its memory is full, it evicts "
                       "jobs. Set it to noeviction, or add --force",
                       batch::StoreError);
  CHECK(check_server("r", bad, "", true).empty());
}
