// A queue on a server that is broken or hostile: a worker neither spins nor hangs.
#include "tests/fleet/fake_redis.hpp"

#include "lib/extras/queue/queue.hpp"
#include "lib/extras/queue/queue_store.hpp"
#include "tests/waiting.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <limits>
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
    if (name == "XREADGROUP") ++takes;
    if (name == "XRANGE") {
      lines_at_once = std::stoul(words.back());
      return ++pages == 1 ? page : "*0\r\n";
    }
    if (name == "SCAN") return scan(words[1]);
    if (name != "EVALSHA") return FakeRedis::usual(words);
    const auto is = [&](const fleet::Script& script) { return words[1] == script.text; };
    if (is(kOpen) && scan) return "$-1\r\n";
    if (is(kOpen)) return "*2\r\n" + FakeRedis::bulk("token") + FakeRedis::bulk("policy");
    if (is(kReadTotals)) {
      ++reads_of_totals;
      if (on_totals) on_totals();
      return FakeRedis::list(totals);
    }
    if (is(kReap) && on_reap) return on_reap();
    if (is(kTick)) ++ticks;
    if (is(kLeave)) takes_at_last_leave = takes.load();
    return is(kTick) || is(kLeave) ? ":1\r\n" : "$-1\r\n";
  }

  const std::vector<std::int64_t> totals;
  const std::string page;  // the first reply to XRANGE; the others have no entries
  const Scan scan;         // returns the replies to SCAN; if it is set, the queue does not exist
  // Called on the thread of the server.
  std::function<void()> on_totals{};
  std::function<std::string()> on_reap{};  // returns the reply to kReap
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
  QueueStore store(options_for(broken));
  std::vector<batch::Job> jobs;
  store.take(
      1, [](std::string_view) { return true; }, jobs);
  wait_until([&] { return broken.ticks >= 2; });  // a second
  // One with each tick of the link, ten in a second.
  CHECK(broken.takes < 60);
  // The server says each time that it has queued a job.
  CHECK(store.close(/*limit=*/5s).empty());
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
