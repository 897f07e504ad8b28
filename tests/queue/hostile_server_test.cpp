// A queue on a server that is broken or hostile: a worker neither spins nor hangs.
#include "tests/fleet/fake_redis.hpp"

#include "lib/extras/queue/queue.hpp"
#include "lib/extras/queue/queue_store.hpp"
#include "tests/batch/folder.hpp"
#include "tests/waiting.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace httpretry::queue;
using namespace std::chrono_literals;

namespace {

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

// A server on which a queue can be opened. Scripts are known by their texts, and the totals are
// `number` each.
struct BrokenServer {
  using Scan = std::function<std::string(const std::string& cursor)>;
  explicit BrokenServer(std::int64_t number, std::string first_page = {}, Scan scan_keys = {})
      : totals(11, number), page(std::move(first_page)), scan(std::move(scan_keys)) {}

  std::string respond(const FakeRedis::Words& words) {
    const auto& name = words[0];
    if (name == "SCRIPT") return FakeRedis::bulk(words[2]);
    if (name == "PING") ++pings;
    if (name == "XREADGROUP") {
      ++takes;
      jobs_at_once = std::stoul(words[5]);
    }
    if (name == "XRANGE") {
      lines_at_once = std::stoul(words.back());
      return ++pages == 1 ? page : "*0\r\n";
    }
    if (name == "SCAN") return scan(words[1]);
    if (name == "XINFO") return consumers;
    if (name != "EVALSHA") return FakeRedis::usual(words);
    const auto is = [&](const fleet::Script& script) { return words[1] == script.text; };
    if (is(kOpen) && scan) return "$-1\r\n";
    if (is(kOpen)) return "*2\r\n" + FakeRedis::bulk("token") + FakeRedis::bulk("policy");
    if (is(kReadTotals)) {
      ++reads_of_totals;
      if (on_totals) on_totals();
      return FakeRedis::list(totals);
    }
    if (is(kReap) && on_reap) {
      {
        const std::lock_guard lock(mutex);
        searches.emplace_back(words.begin() + 12, words.end());  // behind the consumer
      }
      return on_reap();
    }
    if (is(kEnqueue)) return enqueue_reply;
    if (is(kTick)) {
      ++ticks;
      return ":" + std::to_string(due.load()) + "\r\n";
    }
    if (is(kLeave)) takes_at_last_leave = takes.load();
    return is(kLeave) ? ":1\r\n" : "$-1\r\n";
  }

  const std::vector<std::int64_t> totals;
  const std::string page;  // the first reply to XRANGE; the others have no entries
  const Scan scan;         // returns the replies to SCAN; if it is set, the queue does not exist
  // Called on the thread of the server.
  std::function<void()> on_totals{};
  std::function<std::string()> on_reap{};     // returns the reply to kReap
  std::string consumers = "$-1\r\n";          // the reply to XINFO
  std::string enqueue_reply = "$-1\r\n";      // to kEnqueue
  std::atomic<int> due = 1;                   // the number of jobs that each kTick queues
  std::mutex mutex{};                         // guards the next member
  std::vector<FakeRedis::Words> searches{};   // the arguments of each kReap
  std::atomic<std::size_t> jobs_at_once = 0;  // the number that the last XREADGROUP requested
  std::atomic<int> pages = 0;
  std::atomic<std::size_t> lines_at_once = 0;  // the number that the last XRANGE requested
  std::atomic<int> reads_of_totals = 0;
  std::atomic<int> pings = 0;
  std::atomic<int> takes = 0;
  std::atomic<int> takes_at_last_leave = 0;
  std::atomic<int> ticks = 0;
  FakeRedis server{[this](const auto& words) { return respond(words); }};
};

StoreOptions options_for(const BrokenServer& broken) {
  StoreOptions options;
  options.remote.address = broken.server.address("?job=jobs");
  options.policy = "policy";
  options.tell = [](const std::string& /*text*/) {};
  return options;
}

// The bytes of a list.
std::string list_of(const std::vector<std::string>& texts) {
  auto bytes = "*" + std::to_string(texts.size()) + "\r\n";
  for (const auto& text : texts) bytes += FakeRedis::bulk(text);
  return bytes;
}

// The bytes of an entry of the results, which has these elements.
std::string entry(const std::string& id, const std::vector<std::string>& fields,
                  const std::vector<std::string>& more = {}) {
  auto bytes = "*" + std::to_string(2 + more.size()) + "\r\n" + FakeRedis::bulk(id);
  bytes += list_of(fields);
  for (const auto& text : more) bytes += FakeRedis::bulk(text);
  return bytes;
}

}  // namespace

TEST_CASE("a page of results that no queue has is an error, and is not printed") {
  const std::vector<std::string> good = {"i", "a", "l", "line"};
  const auto first = entry("1-0", good);
  struct Row {
    std::string page;
    std::uint64_t printed = 0;  // 0: an error
  };
  for (const auto& row : std::vector<Row>{
           {"*1\r\n" + first, 1},
           {"*2\r\n" + first + entry("1-1", good), 2},
           {"*2\r\n" + first + entry("1-0", good)},
           {"*2\r\n" + entry("2-0", good) + first},
           {"*1\r\n" + entry("0-0", good)},
           {"*1\r\n" + entry("x", good)},
           {"*1\r\n" + entry("1-0", good, {"more"})},
           {"*1\r\n" + entry("1-0", {"i", "a", "l"})},
           {"*1\r\n" + entry("1-0", {"i", "a", "l", "line", "m", "more"})},
           {"*1\r\n*1\r\n" + FakeRedis::bulk("1-0")},
           {"*1\r\n*2\r\n" + FakeRedis::bulk("1-0") + FakeRedis::bulk("line")},
           {"*1\r\n$-1\r\n"},
           {"$-1\r\n"},
           {":1\r\n"},
           {"+OK\r\n"},
       }) {
    CAPTURE(row.page);
    const BrokenServer broken(0, row.page);
    QueueOptions options;
    options.address = broken.server.address("?job=jobs");
    std::string printed;
    const auto print = [&] {
      return print_lines(options, Lines::Results,
                         [&](const std::string& lines) { printed += lines; });
    };
    if (row.printed > 0) {
      CHECK(print() == row.printed);
      CHECK(printed.starts_with("line\n"));
    } else {
      CHECK_THROWS_WITH_AS(print(), doctest::Contains("does not fit a queue"), batch::StoreError);
      CHECK(printed.empty());
    }
  }
}

TEST_CASE("a page of results with large bodies arrives in time over a slow connection") {
  const BrokenServer broken(0, "*0\r\n");
  QueueOptions options;
  options.address = broken.server.address("?job=jobs");
  CHECK(print_lines(options, Lines::Results, [](const std::string& /*lines*/) {}) == 0);
  // With 20 Mbit/s, 10 MB arrive within 4 s. A reply that takes 5 s counts as lost.
  CHECK(broken.lines_at_once * batch::kMostInline <= 10'000'000);
}

TEST_CASE("the names of other queues come from all pages, and the search for them ends") {
  const auto page = [](const std::string& next, const std::vector<std::string>& names) {
    std::vector<std::string> keys;
    for (const auto& name : names) keys.push_back("{hr:" + name + "}:m");
    return "*2\r\n" + FakeRedis::bulk(next) + list_of(keys);
  };
  struct Row {
    BrokenServer::Scan scan;
    std::string found;
    int scans;
  };
  for (const auto& row : std::vector<Row>{
           {[&](const auto&) { return page("0", {}); }, "", 1},
           {[&](const auto& cursor) {
              return cursor == "0" ? page("7", {"b"}) : page("0", {"a", "b"});
            },
            "; queues there: a, b", 2},
           {[&](const auto& cursor) { return cursor == "0" ? page("7", {}) : page("0", {"c"}); },
            "; queues there: c", 2},
           {[&](const auto&) {
              return page("7", {"a", "b", "c", "d", "e", "f"});
            },
            "; queues there: a, b, c, d, e, …", 1},
           {[&](const auto&) {
              return page("7", {"a", "b", "c", "d", "e"});
            },
            "; queues there: a, b, c, d, e", 1},
           {[&](const auto&) { return page("7", {}); }, "", 20},  // without an end
           {[&](const auto&) { return list_of({"7"}); }, "", 1},
           {[&](const auto&) { return std::string("-ERR unknown command\r\n"); }, "", 1},
           {[&](const auto&) {
              return "*2\r\n" + FakeRedis::bulk("0") + list_of({"x", "}:m"});
            },
            "", 1},
       }) {
    CAPTURE(row.found);
    std::atomic<int> scans = 0;
    const BrokenServer broken(0, /*first_page=*/{}, [&](const std::string& cursor) {
      ++scans;
      return row.scan(cursor);
    });
    RemoteOptions options;
    options.address = broken.server.address("?job=jobs");
    RemoteQueue remote(options);
    static_cast<void>(remote.connect());
    const auto where = options.address.text();
    CHECK_THROWS_WITH_AS(remote.open_existing(),
                         ("there is no queue jobs on " + where + row.found).c_str(),
                         batch::StoreError);
    CHECK(scans == row.scans);
  }
}

TEST_CASE("a worker without a job reads the totals before it ends, and not only once a second") {
  BrokenServer broken(0);
  QueueStore store(options_for(broken));
  std::vector<batch::Job> jobs;
  const auto before = broken.reads_of_totals.load();
  for (int i = 0; i < 50; ++i) {
    store.take(
        1, [](std::string_view) { return true; }, jobs);
  }
  CHECK(broken.reads_of_totals >= before + 50);
}

TEST_CASE("a server that has no jobs at once is not asked at once, and the end is not waited for") {
  BrokenServer broken(0);
  broken.on_reap = [] { return "*2\r\n" + FakeRedis::bulk("0-0") + "*0\r\n"; };
  std::atomic<int> wakes = 0;
  auto options = options_for(broken);
  options.lease = 500ms;
  QueueStore store(options);
  store.on_jobs([&] { ++wakes; });
  std::vector<batch::Job> jobs;
  store.take(
      1, [](std::string_view) { return true; }, jobs);
  wait_until([&] { return broken.reads_of_totals >= 4; });  // a second
  // As often as the totals, of which the first two were read at the beginning.
  const int ticks = broken.ticks;
  CHECK(ticks < broken.reads_of_totals);
  // One with each tick of the link, ten in a second.
  CHECK(broken.takes < 60);
  CHECK(wakes == 0);
  // The server says each time that it has queued a job.
  CHECK(store.close(/*limit=*/5s).empty());
}

TEST_CASE("a worker queues due jobs at once while there are more than one script may queue") {
  BrokenServer broken(0);
  broken.due = 100;
  const QueueStore store(options_for(broken));
  // With each tick of the link, and not once a second like the totals.
  wait_until([&] { return broken.ticks >= broken.reads_of_totals + 3; });
}

TEST_CASE("a worker requests as many jobs as it has places, and goes on with a search at once") {
  BrokenServer broken(0);
  std::atomic<int> count = 0;
  broken.on_reap = [&] {
    return "*2\r\n" + FakeRedis::bulk(++count == 1 ? "5-0" : "0-0") + "*0\r\n";
  };
  auto options = options_for(broken);
  options.parallel = 70;
  options.lease = 2h;
  const QueueStore store(options);
  wait_until([&] { return broken.takes > 0 && count >= 2; });
  CHECK(broken.jobs_at_once == 70);
  const std::lock_guard lock(broken.mutex);
  using Words = FakeRedis::Words;
  REQUIRE(broken.searches.size() == 2);
  CHECK(broken.searches[0] == Words{"7200000", "70", "0-0", "3600000"});
  CHECK(broken.searches[1] == Words{"7200000", "70", "5-0", "3600000"});
}

TEST_CASE("a job that is taken over wakes the worker, and is what the server says") {
  const std::string request = R"({"url":"http://h:81/p","priority":"low"})";
  std::atomic<int> wakes = 0;
  BrokenServer broken(0);
  broken.on_reap = [&] {
    return "*2\r\n" + FakeRedis::bulk("0-0") + "*1\r\n*8\r\n" + FakeRedis::bulk("7-0") +
           FakeRedis::bulk("a") + ":2\r\n:3\r\n:1700000000123\r\n:12\r\n" + FakeRedis::bulk("key") +
           FakeRedis::bulk(request);
  };
  auto options = options_for(broken);
  options.lease = 500ms;
  QueueStore store(options);
  store.on_jobs([&] { ++wakes; });
  wait_until([&] { return wakes > 0; });
  std::vector<batch::Job> jobs;
  store.take(
      1, [](std::string_view) { return true; }, jobs);
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].id == "a");
  CHECK(jobs[0].attempts == 3);
  CHECK(jobs[0].maybe_sent_since == WallTime(1'700'000'000'123ms));
  CHECK(jobs[0].key == "key");
  CHECK(jobs[0].text == request);
  CHECK(jobs[0].host == "http://h:81");
  CHECK(jobs[0].priority == Priority::Low);
  const auto taken = store.taken(jobs[0]);
  CHECK(taken.id == "a");
  CHECK(taken.entry == "7-0");
  CHECK(taken.deliveries == 2);
  CHECK(taken.line == 12);
  CHECK_FALSE(taken.intended);
}

TEST_CASE("a status has the numbers and the workers that the server names") {
  BrokenServer broken(3);
  broken.consumers = "*2\r\n*6\r\n" + FakeRedis::bulk("name") + FakeRedis::bulk("w1") +
                     FakeRedis::bulk("pending") + ":7\r\n" + FakeRedis::bulk("idle") +
                     ":1500\r\n*5\r\n" + FakeRedis::bulk("idle") + ":-1\r\n" +
                     FakeRedis::bulk("name") + FakeRedis::bulk("w2") + FakeRedis::bulk("pending");
  QueueOptions options;
  options.address = broken.server.address("?job=jobs");
  const auto status = read_status(options);
  CHECK(status.name == options.address.text() + ", queue jobs");
  CHECK(status.counts.queued == 3);
  CHECK(status.counts.unknown == 3);
  CHECK(status.late == 3);
  CHECK(status.poison == 3);
  REQUIRE(status.next_due);
  CHECK(*status.next_due == 3ms);
  CHECK_FALSE(status.damaged);
  REQUIRE(status.workers.size() == 2);
  CHECK(status.workers[0].name == "w1");
  CHECK(status.workers[0].jobs == 7);
  CHECK(status.workers[0].silent == 1500ms);
  CHECK(status.workers[1].name == "w2");
  CHECK(status.workers[1].jobs == 0);
  CHECK(status.workers[1].silent == 0ms);
}

TEST_CASE("a reply about jobs that were not asked for is an error, and nothing is added") {
  const batch::Folder folder;
  batch::BatchOptions input;
  input.input = folder.write("in", R"({"id":"a","url":"http://a/"})"
                                   "\n");
  struct Row {
    const char* reply;
    const char* result;
  };
  for (const auto& row : std::vector<Row>{
           {"*3\r\n:1\r\n:0\r\n*0\r\n", "opened"},
           {"*3\r\n:0\r\n:1\r\n*0\r\n", "opened"},
           {"*3\r\n:0\r\n:2\r\n*0\r\n", "error"},
           {"*3\r\n:0\r\n:-1\r\n*0\r\n", "error"},
           {"*3\r\n:0\r\n:0\r\n*1\r\n:0\r\n", "refused"},
           {"*3\r\n:0\r\n:0\r\n*1\r\n:1\r\n", "error"},
           {"*3\r\n:0\r\n:0\r\n*1\r\n:-1\r\n", "error"},
           {"*2\r\n:0\r\n:0\r\n", "error"},
           {"*4\r\n:0\r\n:0\r\n*0\r\n:0\r\n", "error"},
           {"$-1\r\n", "error"},
       }) {
    CAPTURE(row.reply);
    BrokenServer broken(0);
    broken.enqueue_reply = row.reply;
    QueueOptions options;
    options.address = broken.server.address("?job=jobs");
    int problems = 0;
    input.on_problem = [&](const Problem& problem) {
      ++problems;
      CHECK(problem.message ==
            "the queue already has a different job with the id \"a\": each job needs its own id");
    };
    std::string result;
    try {
      result = Enqueue::open(options, input) ? "opened" : "refused";
    } catch (const batch::StoreError& error) {
      CHECK(std::string(error.what()).find("does not fit a queue") != std::string::npos);
      CHECK(std::string(error.what()).ends_with("; nothing was added"));
      result = "error";
    }
    CHECK(result == row.result);
    CHECK(problems == (result == "refused" ? 1 : 0));
  }
}

TEST_CASE("totals out of range are bounded") {
  for (const auto number : {kMost, std::numeric_limits<std::int64_t>::min()}) {
    CAPTURE(number);
    const BrokenServer broken(number);
    QueueStore store(options_for(broken));
    static_cast<void>(store.next_due());
    CHECK(store.date().time_since_epoch() >= std::chrono::hours(0));
  }
}

TEST_CASE("a worker leaves only after the server has read its last request for jobs") {
  // The server reads the requests for jobs, which have a connection of their own, after those of
  // the other connection.
  constexpr int kOthers = 0;
  constexpr int kTakes = 1;
  BrokenServer broken(0);
  std::atomic<bool> stands_still = false;
  std::atomic<bool> is_taking = false;
  broken.on_totals = [&] {
    if (!stands_still.exchange(false)) return;
    while (!broken.server.has_unread(kTakes)) std::this_thread::yield();
    is_taking = true;
    while (!broken.server.has_unread(kOthers)) std::this_thread::yield();
  };
  QueueStore store(options_for(broken));
  wait_until([&] { return broken.pings >= 2; });  // both connections are open
  stands_still = true;
  wait_until([&] { return is_taking.load(); });
  CHECK(store.close(/*limit=*/5s).empty());
  CHECK(broken.takes_at_last_leave == broken.takes);
}

TEST_CASE("a worker takes over no jobs as soon as the server is back") {
  BrokenServer broken(0);
  std::atomic<int> searches = 0;
  // The first search for jobs has to go on at once. But the connection breaks at the next command,
  // which is that of kTick.
  broken.on_reap = [&] {
    broken.server.set_resets(++searches == 1);
    return "*2\r\n" + FakeRedis::bulk("5-0") + "*0\r\n";
  };
  auto options = options_for(broken);
  options.lease = 1h;
  options.tell = [&](const std::string& text) {
    if (text.find("cannot be reached") != std::string::npos) broken.server.set_resets(false);
  };
  const QueueStore store(options);
  wait_until([&] { return broken.ticks > 0; });  // the server is back
  CHECK(searches == 1);
}
