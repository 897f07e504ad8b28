// A queue on a server that is broken or hostile: a worker neither spins nor hangs.
#include "tests/fleet/fake_redis.hpp"

#include "lib/extras/queue/queue.hpp"
#include "lib/extras/queue/queue_store.hpp"
#include "tests/waiting.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <limits>

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
    if (name == "XREADGROUP") ++takes;
    if (name != "EVALSHA") return FakeRedis::usual(words);
    const auto is = [&](const Script& script) { return words[1] == script.text; };
    if (is(kOpen)) return "*2\r\n" + FakeRedis::bulk("token") + FakeRedis::bulk("policy");
    if (is(kReadTotals)) return FakeRedis::list(totals);
    if (is(kTick)) ++ticks;
    return is(kTick) || is(kLeave) ? ":1\r\n" : "$-1\r\n";
  }

  const std::vector<std::int64_t> totals;
  std::atomic<int> takes = 0;
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
