// A queue on a server that is broken or hostile: a worker neither spins nor hangs.
#include "tests/fleet/fake_redis.hpp"

#include "lib/extras/queue/queue.hpp"
#include "lib/extras/queue/queue_store.hpp"
#include "tests/waiting.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <thread>

using namespace httpretry;
using namespace httpretry::queue;
using namespace std::chrono_literals;

namespace {

constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

// A server on which a queue can be opened. Scripts are known by their texts, and the totals are
// `number` each.
struct BrokenServer {
  explicit BrokenServer(std::int64_t number) : totals(11, number) {}

  std::string respond(const FakeRedis::Words& words) {
    const auto& name = words[0];
    if (name == "SCRIPT") return FakeRedis::bulk(words[2]);
    if (name == "PING") ++pings;
    if (name == "XREADGROUP") ++takes;
    if (name != "EVALSHA") return FakeRedis::usual(words);
    const auto is = [&](const fleet::Script& script) { return words[1] == script.text; };
    if (is(kOpen)) return "*2\r\n" + FakeRedis::bulk("token") + FakeRedis::bulk("policy");
    if (is(kReadTotals)) {
      if (on_totals) on_totals();
      return FakeRedis::list(totals);
    }
    if (is(kTick)) ++ticks;
    if (is(kLeave)) takes_at_last_leave = takes.load();
    return is(kTick) || is(kLeave) ? ":1\r\n" : "$-1\r\n";
  }

  const std::vector<std::int64_t> totals;
  std::function<void()> on_totals{};  // called on the thread of the server
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

}  // namespace

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
