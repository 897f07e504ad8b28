// The queries of processes that share limits, and what they make of the replies, which the tests
// choose.
#include "fake_fleet.hpp"
#include "limits.hpp"
#include "sender.hpp"

#include "lib/extras/fleet/fleet_state.hpp"
#include "lib/extras/fleet/redis_state.hpp"
#include "tests/waiting.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace httpretry::fleet;
using namespace std::chrono_literals;

namespace {

// The arguments of the calls of one script, from one index to another.
class Arguments {
 public:
  Arguments(std::size_t first, std::size_t last) : first_(first), last_(last) {}
  void note(const FakeRedis::Words& words) {
    std::string text = words.at(first_);
    for (auto index = first_ + 1; index <= last_; ++index) text += " " + words.at(index);
    const std::lock_guard lock(mutex_);
    calls_.push_back(text);
  }
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  const std::size_t first_;
  const std::size_t last_;
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
};

bool is_about(const FakeRedis::Words& words, const std::string& kind) {
  return FakeRedis::key_of(words).starts_with("{httpretry}:" + kind + ":");
}

}  // namespace

TEST_CASE("changes of a budget are sent together while a query has no reply, and none twice") {
  Arguments changes(4, 6);  // the capacity, what was taken and what was given
  std::atomic<bool> stands_still = true;
  std::int64_t balance = 20'000;
  FakeRedis server([&](const FakeRedis::Words& words) {
    if (!is_about(words, "budget")) return usual(words);
    changes.note(words);
    while (stands_still) std::this_thread::yield();
    balance += std::stoll(words[6]) - std::stoll(words[5]);
    return ":" + std::to_string(balance) + "\r\n";
  });
  const auto state = std::make_shared<FleetState>(options_for(server));
  const auto account = state->account("budget https://h", tokens_of(20, 5), now_is());
  account->begin_call(now_is());
  wait_until([&] { return changes.calls().size() == 1; });
  CHECK(may_retry(*account));
  CHECK(may_retry(*account));
  CHECK(account->left(now_is()) == 10);
  stands_still = false;
  wait_until([&] { return changes.calls().size() == 2; });
  // The next tick sends what has been given.
  BudgetClaim claim;
  claim.retry.amount = 5'000;
  Classified good;
  good.cls = Class::Success;
  account->end_attempt(claim, good, AfterAttempt::Stop, now_is());
  wait_until([&] { return changes.calls().size() == 3; });
  repeat_for_ticks(server, [] {});
  CHECK(account->left(now_is()) == 15);
  // A balance that is not full is refreshed with the next tick if the budget is used.
  account->begin_call(now_is());
  wait_until([&] { return changes.calls().size() == 4; });
  repeat_for_ticks(server, [] {});
  CHECK(changes.calls() ==
        std::vector<std::string>{"20000 0 0", "20000 10000 0", "20000 0 5000", "20000 0 0"});
}

TEST_CASE("an account that was not used for long is dropped if nothing has it") {
  FakeRedis server(usual);
  const auto state = std::make_shared<FleetState>(options_for(server));
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Concurrent;  // counts what is in flight in this process
  policy.ratio = 0;
  policy.min = 1;
  const auto long_ago = now_is() - 11s;
  const auto find = [&] { return state->account("budget https://h", policy, long_ago); };
  auto account = find();
  BudgetClaim claim;
  account->begin_call(long_ago);
  CHECK(account->take_hedge(claim, long_ago));
  repeat_for_ticks(server, [] {});
  CHECK(find()->left(long_ago) == 0);
  account.reset();
  wait_until([&] { return find()->left(long_ago) == 1; });
  // One that was used is kept.
  account = find();
  BudgetClaim second;
  CHECK(account->take_hedge(second, now_is()));
  account.reset();
  repeat_for_ticks(server, [] {});
  CHECK(find()->left(long_ago) == 0);
  CHECK(server.commands("{httpretry}:budget") == 0);
}

TEST_CASE("the reason why a circuit is open tells what the votes of all processes were") {
  struct Row {
    int failures;
    std::int64_t all, good, slow, in_a_row;
    const char* why;
  };
  const std::vector<Row> rows = {
      {5, 10, 4, 0, 5, "5 failures in a row, of all processes"},
      {5, 10, 4, 0, 4, "6 of 10 failed, of all processes"},
      {0, 10, 4, 0, 9, "6 of 10 failed, of all processes"},
      {0, 10, 5, 9, 0, "5 of 10 failed, of all processes"},
      {0, 10, 6, 9, 0, "9 of 10 were slow, of all processes"},
      {0, 1, 0, 0, 1, "1 of 1 failed, of all processes"},
      {0, 0, 0, 0, 0, "it was opened by a program"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.why);
    FakeRedis server([&](const FakeRedis::Words& words) {
      if (!is_about(words, "circuit")) return usual(words);
      return FakeRedis::list(
          {1, 3'600'000'000, 1, 1, row.all, row.good, row.slow, row.in_a_row, 0});
    });
    auto policy = breaker_of(20, 1h);
    policy.breaker->failures = row.failures;
    Sender sender(std::make_shared<FleetState>(options_for(server)), policy);
    const auto sent = sender.begin();
    CHECK(sent.grant.held == QueuedBy::Circuit);
    CHECK(sent.grant.why_open == row.why);
    CHECK(sender.reasons() == std::vector<std::string>{row.why});
    const auto changes = sender.circuit_changes();
    REQUIRE(changes.size() == 1);
    CHECK(changes[0].from == Circuit::Closed);
    CHECK(changes[0].to == Circuit::Open);
    CHECK(changes[0].failed == row.all - row.good);
    CHECK(changes[0].total == row.all);
  }
}

TEST_CASE("slots that no send uses are given back, by a process that ends, too") {
  Arguments slots(6, 7);  // used and wanted
  std::atomic<int> pings = 0;
  FakeRedis server([&](const FakeRedis::Words& words) {
    if (words[0] == "PING") ++pings;
    if (!is_about(words, "slots")) return usual(words);
    slots.note(words);
    return FakeRedis::list({std::stoll(words[7]), 1, 0});
  });
  {
    Sender sender(std::make_shared<FleetState>(options_for(server)), slots_of(4));
    CHECK(sender.send());
    CHECK(slots.calls().front() == "0 1");
    // A tick keeps as many as were used since the one before.
    wait_until([&] { return slots.calls().back() == "0 0"; });
    const auto before = slots.calls().size();
    repeat_for_ticks(server, [] {});
    CHECK(slots.calls().size() == before);
    CHECK(sender.send());
    CHECK(slots.calls().size() > before);
    CHECK(pings == 1);
  }
  // The server has read what it sent last.
  CHECK(slots.calls().back() == "0 0");
  CHECK(pings == 2);
}

TEST_CASE("a slot is given back at once if other processes wait for one, and kept otherwise") {
  for (const bool contended : {false, true}) {
    CAPTURE(contended);
    Arguments slots(6, 7);  // used and wanted
    FakeRedis server([&](const FakeRedis::Words& words) {
      if (!is_about(words, "slots")) return usual(words);
      slots.note(words);
      return FakeRedis::list({std::stoll(words[7]), 2, contended ? 1 : 0});
    });
    auto options = options_for(server);
    options.tick = 1h;
    Sender sender(std::make_shared<FleetState>(std::move(options)), slots_of(4));
    wait_until([&] { return sender.state().salt() == 1; });  // of the first and only snapshot
    CHECK(sender.send());
    if (contended) wait_until([&] { return slots.calls().back() == "0 0"; });
    CHECK(!sender.begin().refused());
    CHECK(!sender.begin().refused());
    using Calls = std::vector<std::string>;
    CHECK(slots.calls() == (contended ? Calls{"0 1", "0 0", "0 1", "1 2"} : Calls{"0 1", "1 2"}));
  }
}

TEST_CASE("a send of low priority leaves a fifth of the slots to others if others wait") {
  FakeRedis server([&](const FakeRedis::Words& words) {
    if (!is_about(words, "slots")) return usual(words);
    return FakeRedis::list({std::stoll(words[7]), 1, 0});
  });
  Sender sender(std::make_shared<FleetState>(options_for(server)), slots_of(5));
  for (int count = 0; count < 4; ++count) CHECK(!sender.begin().refused());
  const auto look = [&](Priority priority) {
    SendAsk ask;
    ask.now = now_is();
    ask.priority = priority;
    return sender.limits().look(ask);
  };
  sender.limits().wait(2, 2);
  wait_until([&] {
    SendAsk ask;
    ask.now = now_is();
    ask.priority = Priority::Low;
    StateChanges changes;
    CHECK(sender.limits().enter(ask, changes).held != QueuedBy::Nothing);
    return look(Priority::Normal).held == QueuedBy::Nothing;  // it has the fifth slot
  });
  CHECK(look(Priority::Low).held == QueuedBy::Concurrency);
  CHECK(look(Priority::Low).until == kNever);
  sender.limits().wait(-1, -1);
  CHECK(look(Priority::Low).held == QueuedBy::Nothing);
  sender.limits().wait(-1, -1);
}

TEST_CASE("a send that joins those that wait gets its token after theirs") {
  FakeRedis server([&](const FakeRedis::Words& words) {
    return is_about(words, "rate") ? FakeRedis::list({0, 0, 3'600'000'000}) : usual(words);
  });
  auto options = options_for(server);
  options.tick = 1h;
  Sender sender(std::make_shared<FleetState>(std::move(options)), rate_of(1, 1h, 5));
  CHECK(sender.begin(0s).refused());
  wait_until([&] { return sender.look().held == QueuedBy::Rate; });
  const auto until = sender.look().until;
  CHECK(until > now_is() + 59min);
  SendAsk ask;
  ask.now = now_is();
  CHECK(sender.limits().waiting(ask).token_at == until);
  sender.limits().wait(2, 2);
  CHECK(sender.limits().waiting(ask).token_at == until + 2h);
  CHECK(sender.limits().waiting(ask).for_slots == 0);
  sender.limits().wait(-2, -2);
}

TEST_CASE("a limit that was not used for long is dropped") {
  FakeRedis server(usual);
  const auto state = std::make_shared<FleetState>(options_for(server));
  LimitKeys keys;
  keys.policy = std::make_shared<const GuardPolicy>(rate_of(1, 1s, 1));
  keys.rate = "rate old";
  state->limits(keys, now_is() - 11s).reset();
  keys.rate = "rate new";
  state->limits(keys, now_is()).reset();
  wait_until([&] { return state->states("rate old", now_is()).empty(); });
  CHECK(state->states("rate", now_is()).size() == 1);
}

TEST_CASE("a reply wakes the sends that wait, without a tick") {
  std::atomic<bool> listens = false;
  FakeRedis server([&](const FakeRedis::Words& words) {
    while (is_about(words, "processes") && !listens) std::this_thread::yield();
    return is_about(words, "rate") ? FakeRedis::list({1, 0, 0}) : usual(words);
  });
  auto options = options_for(server);
  options.tick = 1h;
  const auto state = std::make_shared<FleetState>(std::move(options));
  std::atomic<int> told = 0;
  const auto listener = std::make_shared<const SharedState::Listener>([&](Time) { ++told; });
  state->listen(listener);
  listens = true;
  Sender sender(state, rate_of(1, 1h, 5));
  wait_until([&] { return told == 1; });  // by the first snapshot
  sender.limits().wait(1, 1);
  CHECK(sender.begin(0s).refused());
  wait_until([&] { return told == 2; });
  sender.limits().wait(-1, -1);
  // No send waits.
  CHECK_FALSE(sender.begin(0s).refused());
  CHECK(sender.begin(0s).refused());
  wait_until([&] { return sender.look().held == QueuedBy::Nothing; });
  sender.limits().wait(1, 1);
  CHECK_FALSE(sender.begin(0s).refused());
  CHECK(sender.begin(0s).refused());
  wait_until([&] { return told >= 3; });
  sender.limits().wait(-1, -1);
  CHECK(told == 3);
}

TEST_CASE(
    "tokens that were reserved are kept for the sends that wait, and given back without any") {
  Arguments tokens(7, 8);  // wanted and given back
  FakeRedis server([&](const FakeRedis::Words& words) {
    if (!is_about(words, "rate")) return usual(words);
    tokens.note(words);
    return FakeRedis::list({0});
  });
  GuardPolicy policy;
  policy.rate = RatePolicy::of_cost(100, 1h);
  Sender sender(std::make_shared<FleetState>(options_for(server)), policy);
  sender.limits().wait(1, 5);
  CHECK(sender.begin(0s, 5).refused());
  wait_until([&] { return sender.look().held == QueuedBy::Nothing; });
  repeat_for_ticks(server, [] {});
  CHECK(tokens.calls() == std::vector<std::string>{"5 0"});
  sender.limits().wait(-1, -5);
  wait_until([&] { return tokens.calls().size() == 2; });
  repeat_for_ticks(server, [] {});
  CHECK(tokens.calls() == std::vector<std::string>{"5 0", "0 5"});
}

TEST_CASE("a snapshot has what its reply lists, and leaves out what is incomplete") {
  const auto circuit = [](const std::string& name, const std::vector<std::int64_t>& numbers) {
    auto text = FakeRedis::bulk(name);
    for (const auto number : numbers) text += ":" + std::to_string(number) + "\r\n";
    return text;
  };
  const auto bytes = "*4\r\n:3\r\n*5\r\n" + circuit("pause a", {1'000'000}) +
                     circuit("pause b", {3'000'000}) + circuit("pause c", {}) + "*19\r\n" +
                     circuit("breaker a", {1, 5'000'000, 7, 2, 10, 4, 3, 6}) +
                     circuit("breaker b", {2, 9'000'000, 8, 1, 20, 9, 5, 0}) +
                     circuit("breaker c", {}) + FakeRedis::bulk("42");
  FakeRedis server([&](const FakeRedis::Words& words) {
    return is_about(words, "processes") ? bytes : FakeRedis::usual(words);
  });
  std::promise<RedisState::Snapshot> promise;
  RedisState state(options_for(server), [&, is_first = true](const auto& got, Time) mutable {
    if (std::exchange(is_first, false)) promise.set_value(got);
  });
  const auto snapshot = promise.get_future().get();
  CHECK(state.workers() == 3);
  CHECK_FALSE(snapshot.away);
  CHECK(snapshot.salt == 42);
  REQUIRE(snapshot.pauses.size() == 2);
  CHECK(snapshot.pauses[0].first == "pause a");
  CHECK(snapshot.pauses[1].first == "pause b");
  CHECK(snapshot.pauses[1].second - snapshot.pauses[0].second == 2s);
  REQUIRE(snapshot.circuits.size() == 2);
  CHECK(snapshot.circuits[0].first == "breaker a");
  CHECK(snapshot.circuits[1].first == "breaker b");
  const auto& first = snapshot.circuits[0].second;
  const auto& second = snapshot.circuits[1].second;
  CHECK(first.state == Circuit::Open);
  CHECK(second.state == Circuit::HalfOpen);
  CHECK(first.until - snapshot.pauses[0].second == 4s);
  CHECK(second.until - first.until == 4s);
  CHECK(first.generation == 7);
  CHECK(first.openings == 2);
  CHECK(first.counts.all == 10);
  CHECK(first.counts.good == 4);
  CHECK(first.counts.slow == 3);
  CHECK(first.failed_in_a_row == 6);
  CHECK_FALSE(first.probe);
  CHECK_FALSE(first.away);
  CHECK(second.generation == 8);
  CHECK(second.openings == 1);
  CHECK(second.counts.all == 20);
  CHECK(second.counts.good == 9);
  CHECK(second.counts.slow == 5);
  CHECK(second.failed_in_a_row == 0);
}
