// Limits that several processes share on a real server. Each Sender has a state of its own.
#include "limits.hpp"
#include "lines.hpp"

#include "lib/extras/fleet/redis_state.hpp"

#include <httpretry/fleet/redis.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace httpretry;
using namespace httpretry::fleet;
using namespace std::chrono_literals;

TEST_CASE("eight processes together send no more than their rate gives") {
  RedisServer server;
  const auto senders = make_senders(server, rate_of(100, 1s, 10), 8);
  std::mutex mutex;
  std::vector<Time> sent;
  std::vector<std::thread> threads;
  for (const auto& sender : senders) {
    threads.emplace_back([&, one = sender.get()] {
      for (;;) {
        const auto send = one->begin();
        CHECK(!send.refused());
        one->end(send);
        const std::lock_guard lock(mutex);
        sent.push_back(send.when);
        if (sent.size() >= 210) return;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::sort(sent.begin(), sent.end());
  // The burst, the rate, and a chunk of 100 ms a process.
  CHECK(most_in_a_second(sent) <= 10 + 100 + 8 * 10);
  // In all: the burst, the rate, and what was taken ahead by those that did not use it.
  const auto seconds = std::chrono::duration<double>(sent.back() - sent.front()).count();
  CHECK(static_cast<double>(sent.size()) <= 10 + 100 * seconds + 11);
}

TEST_CASE("what one process takes of a rate is missing for another") {
  RedisServer server;
  const auto senders = make_senders(server, rate_of(1, 1h, 3), 2);
  CHECK(senders[0]->send());
  CHECK(senders[1]->send());
  CHECK(senders[0]->send());
  const auto fourth = senders[1]->begin(0s);
  CHECK(fourth.refused());
  CHECK(senders[1]->wait_until([&] { return senders[1]->begin(0s).grant.held == QueuedBy::Rate; }));
  CHECK(senders[1]->begin(0s).grant.until > now_is() + 50min);
}

TEST_CASE("processes together send no more than two rates give, whatever the sends cost") {
  const unsigned seed = std::random_device()();
  MESSAGE("seed ", seed);
  RedisServer server;
  auto policy = rate_of(60, 1s, 20);
  policy.rate->further = {RatePolicy::of_cost(1'000, 1s)};
  policy.rate->further[0].burst = 100;
  const auto senders = make_senders(server, policy, 4);
  std::mutex mutex;
  std::vector<std::pair<Time, double>> sent;
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < senders.size(); ++index) {
    threads.emplace_back([&, index] {
      std::mt19937 random(seed + static_cast<unsigned>(index));
      for (int sends = 0; sends < 20; ++sends) {
        const auto cost = static_cast<std::int64_t>(random() % 101);
        const auto send = senders[index]->begin(30s, cost);
        CHECK(!send.refused());  // none starves
        senders[index]->end(send);
        const std::lock_guard lock(mutex);
        sent.emplace_back(send.when, static_cast<double>(cost));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  REQUIRE(sent.size() == 80);
  std::sort(sent.begin(), sent.end());
  for (std::size_t first = 0; first < sent.size(); ++first) {
    double cost = 0;
    for (std::size_t last = first; last < sent.size(); ++last) {
      cost += sent[last].second;
      // A reply may take longer for one process than for another.
      const std::chrono::duration<double> window = sent[last].first - sent[first].first + 100ms;
      REQUIRE(cost <= 100 + 1'000 * window.count());
      REQUIRE(static_cast<double>(last - first + 1) <= 20 + 60 * window.count());
    }
  }
}

TEST_CASE("tokens that were reserved for a send that gave up are there for another process") {
  RedisServer server;
  GuardPolicy policy;
  policy.rate = RatePolicy::of_cost(100, 1h);
  const auto senders = make_senders(server, policy, 3);
  const auto first = senders[0]->begin(10s, 60);
  REQUIRE(!first.refused());
  senders[0]->end(first);
  CHECK(senders[1]->wait_until(
      [&] { return senders[1]->begin(0s, 50).grant.held == QueuedBy::Rate; }));
  const auto last = senders[2]->begin(10s, 40);
  CHECK(!last.refused());
  senders[2]->end(last);
}

TEST_CASE("tokens that nobody needs are given back, those of a process that ends, too") {
  RedisServer server;
  const auto policy = rate_of(3600, 1h, 60);
  auto first = std::make_unique<Sender>(patient(server), policy);
  for (int count = 0; count < 30; ++count) REQUIRE(first->send());
  // 60 an hour are one a second, so this process takes no more than one ahead.
  first.reset();
  Sender second(patient(server), policy);
  for (int count = 0; count < 30; ++count) CHECK(!second.begin(1s).refused());
}

TEST_CASE("a process that waits for a slow rate finds what another has given back") {
  RedisServer server;
  const auto policy = rate_of(1, 1h, 1);
  Sender waits(patient(server), policy);
  CHECK(waits.send());
  waits.limits().wait(1, 1);
  CHECK(waits.begin(0s).refused());
  CHECK(waits.wait_until([&] { return waits.begin(0s).grant.held == QueuedBy::Rate; }));
  Link::Options link;
  link.address = server.address();
  link.reply_timeout = 5s;
  RedisState other(std::move(link), {});
  other.take_tokens("rate https://api.example.com", *policy.rate, 0, 1,
                    [](const RedisState::Tokens&, Time) {});
  CHECK(waits.wait_until([&] { return !waits.begin(0s).refused(); }));
  waits.limits().wait(-1, -1);
}

TEST_CASE("processes together have no more sends under way than the limit") {
  RedisServer server;
  const auto senders = make_senders(server, slots_of(2), 3);
  std::atomic<int> under_way = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (const auto& sender : senders) {
    threads.emplace_back([&, one = sender.get()] {
      for (int round = 0; round < 20; ++round) {
        const auto sent = one->begin();
        CHECK(!sent.refused());
        const int now = ++under_way;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --under_way;
        one->end(sent);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(most.load() >= 1);
  CHECK(most.load() <= 2);
}

TEST_CASE("a process that ends gives its slots back") {
  RedisServer server;
  auto first = std::make_unique<Sender>(patient(server), slots_of(2));
  first->end(first->begin());
  const auto held = first->begin();
  CHECK(!held.refused());
  first->end(held);
  first.reset();
  Sender second(patient(server), slots_of(2));
  const auto one = second.begin();
  const auto two = second.begin();
  CHECK(!one.refused());
  CHECK(!two.refused());
  CHECK(second.begin(0s).refused());
}

TEST_CASE("a circuit that one process opens refuses in another, and a probe of any closes it") {
  RedisServer server;
  const auto senders = make_senders(server, breaker_of(10, 300ms), 2);
  CHECK(senders[1]->send());
  int sent = 0;
  CHECK(senders[0]->wait_until([&] {
    if (!senders[0]->send(true)) return true;
    ++sent;
    return false;
  }));
  CHECK(sent >= 9);  // with the one that was good
  // The other has seen no failure.
  CHECK(senders[1]->wait_until([&] { return !senders[1]->send(true); }));
  const auto changes = senders[1]->circuit_changes();
  REQUIRE(!changes.empty());
  CHECK(changes[0].key == "https://api.example.com");
  CHECK(changes[0].to == Circuit::Open);
  CHECK(changes[0].total >= 10);
  CHECK(senders[1]->reasons()[0].find("failed, of all processes") != std::string::npos);
  // From `open_for` on one of them probes, and all follow.
  CHECK(senders[1]->wait_until([&] { return senders[1]->send(); }));
  for (const auto& sender : senders) {
    CHECK(sender->wait_until([&] {
      const auto facts = sender->limits().facts(now_is(), WallTime());
      return facts.circuit->state == Circuit::Closed;
    }));
    CHECK(sender->send());
  }
}

TEST_CASE("a process that begins while a circuit is open sends nothing") {
  RedisServer server;
  Sender first(patient(server), breaker_of(5, 1h));
  CHECK(first.wait_until([&] { return !first.send(true); }));
  Sender second(patient(server), breaker_of(5, 1h));
  CHECK(second.begin().grant.held == QueuedBy::Circuit);
}

TEST_CASE("a probe that fails keeps the circuit open in all processes") {
  RedisServer server;
  const auto senders = make_senders(server, breaker_of(5, 200ms), 2);
  CHECK(senders[0]->wait_until([&] { return !senders[0]->send(true); }));
  const auto openings = [&] {
    const auto changes = senders[0]->circuit_changes();
    return std::count_if(changes.begin(), changes.end(),
                         [](const auto& change) { return change.to == Circuit::Open; });
  };
  // Each failed probe opens it again.
  CHECK(senders[0]->wait_until([&] {
    senders[0]->send(true);
    return openings() >= 3;
  }));
}

TEST_CASE("a breaker of a program is open for all, and closed for all") {
  RedisServer server;
  const auto senders = make_senders(server, breaker_of(10, 1h), 2);
  for (const auto& sender : senders) CHECK(sender->send());
  const auto& key = "breaker https://api.example.com";
  CHECK(!senders[0]->state().open_circuit("breaker https://other", now_is() + 1h, now_is()));
  CHECK(senders[0]->state().open_circuit(key, now_is() + 1h, now_is()));
  CHECK(!senders[0]->send());
  CHECK(senders[1]->wait_until([&] { return !senders[1]->send(); }));
  REQUIRE(senders[1]->state().states("breaker", now_is()).size() == 1);
  CHECK(senders[1]->state().states("breaker", now_is())[0].circuit == Circuit::Open);
  CHECK(senders[1]->state().close_circuit(key, now_is()));
  CHECK(senders[1]->send());
  CHECK(senders[0]->wait_until([&] { return senders[0]->send(); }));
}

TEST_CASE("a limit that a program resets is as new, here and on the server") {
  RedisServer server;
  auto policy = rate_of(1, 1h, 1);
  policy.breaker.emplace();
  Sender sender(patient(server), policy);
  auto& state = sender.state();
  const auto waits_for_rate = [&] { return sender.begin(0s).grant.held == QueuedBy::Rate; };
  CHECK(sender.send());
  CHECK(sender.wait_until(waits_for_rate));
  CHECK(!state.reset("rate https://other", now_is()));
  CHECK(!state.reset("hedge https://api.example.com", now_is()));
  CHECK(state.reset("rate https://api.example.com", now_is()));
  CHECK(sender.wait_until([&] { return !sender.begin(0s).refused(); }));
  CHECK(sender.wait_until(waits_for_rate));

  const std::string breaker = "breaker https://api.example.com";
  CHECK(state.open_circuit(breaker, now_is() + 1h, now_is()));
  const auto held = sender.begin(0s).grant;
  CHECK(held.held == QueuedBy::Circuit);
  CHECK(held.why_open == "it was opened by the program");
  CHECK(state.reset(breaker, now_is()));
  CHECK(sender.wait_until(waits_for_rate));

  sender.pause(300s);
  CHECK(sender.look().held == QueuedBy::Pause);
  CHECK(state.reset("pause https://api.example.com", now_is()));
  CHECK(sender.look().held != QueuedBy::Pause);
  CHECK(sender.wait_until([&] {
    return run(server, {"ZCARD", "{httpretry}:pauses:all"}).integer == 0;
  }));
}

TEST_CASE("a server that asks one process to wait makes all wait") {
  RedisServer server;
  const auto senders = make_senders(server, GuardPolicy(), 2);
  for (const auto& sender : senders) CHECK(sender->send());
  CHECK(senders[1]->state().quiet());
  senders[0]->pause(300s);
  CHECK(senders[0]->look().held == QueuedBy::Pause);
  CHECK(senders[1]->wait_until([&] { return !senders[1]->state().quiet(); }));
  CHECK(senders[1]->look().held == QueuedBy::Pause);
  CHECK(senders[1]->look().until > now_is() + 200s);
  // One that comes later, too.
  Sender third(patient(server), GuardPolicy());
  CHECK(third.wait_until([&] { return third.look().held == QueuedBy::Pause; }));
}

TEST_CASE("processes together spend no more than one budget") {
  RedisServer server;
  const auto first = patient(server);
  const auto second = patient(server);
  const auto policy = tokens_of(20, 5);
  const auto one = first->account("budget https://h", policy, now_is());
  const auto two = second->account("budget https://h", policy, now_is());
  const auto other = second->account("budget https://h", tokens_of(30, 5), now_is());
  one->begin_call(now_is());
  two->begin_call(now_is());
  CHECK(may_retry(*one));
  CHECK(may_retry(*one));
  CHECK(may_retry(*one));
  Sender waiter(first, GuardPolicy());
  CHECK(waiter.wait_until([&] {
    two->begin_call(now_is());
    return two->left(now_is()) == 5;
  }));
  CHECK(may_retry(*two));
  CHECK(!may_retry(*two));
  CHECK(waiter.wait_until([&] {
    one->begin_call(now_is());
    return one->left(now_is()) == 0;
  }));
  CHECK(!may_retry(*one));
  // Other numbers are another budget.
  CHECK(other->left(now_is()) == 30);
  CHECK(may_retry(*other));
  // A success gives to all.
  BudgetClaim claim;
  Classified good;
  good.cls = Class::Success;
  claim.retry.amount = 5000;
  one->end_attempt(claim, good, AfterAttempt::Stop, now_is());
  CHECK(waiter.wait_until([&] {
    two->begin_call(now_is());
    return two->left(now_is()) == 5;
  }));
}

TEST_CASE("a budget that is a share of the calls counts the calls of all") {
  RedisServer server;
  const auto first = patient(server);
  const auto second = patient(server);
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Ratio;
  policy.window = 1h;
  policy.min_per_second = 0;
  policy.ratio = 500;
  const auto one = first->account("budget https://h", policy, now_is());
  const auto two = second->account("budget https://h", policy, now_is());
  for (int call = 0; call < 10; ++call) one->begin_call(now_is());
  Sender waiter(first, GuardPolicy());
  CHECK(waiter.wait_until([&] {
    BudgetClaim nothing;
    two->give_back_hedge(nothing, now_is());  // it is in use
    return two->left(now_is()) == 5;
  }));
  for (int retry = 0; retry < 5; ++retry) CHECK(may_retry(*two));
  CHECK(!may_retry(*two));
}

TEST_CASE(
    "without a server each process has its share of a budget, and then they share all of it") {
  RedisServer server;
  server.stop();
  const auto state = patient(server, 500ms, 4);
  const auto policy = tokens_of(20, 5);
  Sender waiter(state, GuardPolicy());
  const auto left = [](RetryAccount& account) {
    account.begin_call(now_is());
    return account.left(now_is());
  };
  // An account that was made while the server might still have been there.
  const auto earlier = state->account("budget https://earlier", policy, now_is());
  CHECK(waiter.wait_until([&] { return left(*earlier) == 5; }));
  const auto account = state->account("budget https://h", policy, now_is());
  CHECK(left(*account) == 5);
  CHECK(may_retry(*account));
  CHECK(!may_retry(*account));
  server.start();
  CHECK(waiter.wait_until([&] { return left(*account) == 20; }));
  CHECK(may_retry(*account));
  CHECK(left(*account) == 15);
  server.stop();
  CHECK(waiter.wait_until([&] { return left(*account) == 3; }));
}

TEST_CASE("each process counts what it has under way itself, and says so once") {
  Lines lines;
  RedisServer server;
  const auto first = patient(server);
  const auto second = patient(server);
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Concurrent;
  policy.ratio = 0;
  policy.min = 1;
  const auto one = first->account("budget https://h", policy, now_is());
  const auto same = first->account("budget https://h", policy, now_is());
  const auto two = second->account("budget https://h", policy, now_is());
  CHECK(lines.count("budgets of kind concurrent are not shared: each process counts its own "
                    "retries and hedges in flight") == 2);
  BudgetClaim claim;
  one->begin_call(now_is());
  CHECK(one->take_hedge(claim, now_is()));
  CHECK(same->left(now_is()) == 0);
  CHECK(two->left(now_is()) == 1);

  // The counts stay when the server goes away.
  server.stop();
  Sender waiter(first, GuardPolicy());
  CHECK(waiter.wait_until([&] { return first->changes() > 0; }));
  CHECK_FALSE(same->take_hedge(claim, now_is()));
  one->end_hedge(claim, now_is());
  CHECK(one->left(now_is()) == 1);
  one->cancel(claim, false, now_is());
  CHECK(one->left(now_is()) == 1);
}

TEST_CASE("the states of a process list its hedges, which are not shared, with its limits") {
  RedisServer server;
  const auto state = patient(server);
  state->hedges("hedge https://h", now_is())->begin_call(now_is());
  const auto states = state->states("hedge ", now_is());
  REQUIRE(states.size() == 1);
  CHECK(states[0].key == "hedge https://h");
  CHECK(states[0].calls == 1);
  CHECK(state->states("rate ", now_is()).empty());
}

TEST_CASE("the states of a process have the sends that wait and those in flight") {
  RedisServer server;
  auto policy = rate_of(100, 1s, 10);
  policy.concurrency.emplace();
  policy.breaker.emplace();
  Sender sender(patient(server), policy);
  const auto sent = sender.begin();
  CHECK(!sent.refused());
  sender.limits().wait(3, 3);
  const auto states = sender.state().states("", now_is());
  REQUIRE(states.size() == 4);
  const std::vector<std::string> kinds = {"breaker", "concurrency", "pause", "rate"};
  for (std::size_t index = 0; index < states.size(); ++index) {
    CHECK(states[index].key == kinds[index] + " https://api.example.com");
    CHECK(states[index].waiting == 3);
    CHECK(states[index].in_flight == (kinds[index] == "concurrency" ? 1 : 0));
    CHECK(states[index].circuit.has_value() == (kinds[index] == "breaker"));
  }
  sender.limits().wait(-3, -3);
  sender.end(sent);
}

TEST_CASE("a throttle slows the sends of all processes") {
  RedisServer server;
  const auto first = patient(server);
  const auto second = patient(server);
  const auto policy = tokens_of(500, 5);
  const auto one = first->account("budget https://h", policy, now_is());
  const auto two = second->account("budget https://h", policy, now_is());
  CHECK(two->take_send(now_is()) == 0s);
  one->count_attempt(true, now_is());
  // The least rate: one send in two seconds.
  Sender waiter(second, GuardPolicy());
  CHECK(waiter.wait_until([&] {
    two->count_attempt(false, now_is());
    return two->take_send(now_is()) > 0s;
  }));
  CHECK(waiter.wait_until([&] { return one->take_send(now_is()) > 0s; }));
  CHECK(waiter.wait_until([&] { return one->take_send(now_is()) == 0s; }));
}

TEST_CASE("all processes hash credentials alike") {
  RedisServer server;
  Sender first(patient(server), GuardPolicy());
  Sender second(patient(server), GuardPolicy());
  CHECK(first.wait_until([&] { return first.state().salt() == second.state().salt(); }));
  CHECK(run(server, {"GET", "{httpretry}:salt:all"}).text == std::to_string(first.state().salt()));
}

TEST_CASE("long: eight processes together send 97 to 103 a second for 30 s" * doctest::skip()) {
  RedisServer server;
  std::vector<std::unique_ptr<Sender>> senders;
  for (int index = 0; index < 8; ++index) {
    senders.push_back(
        std::make_unique<Sender>(redis(server.url() + "?workers=8"), rate_of(100, 1s, 10)));
  }
  std::mutex mutex;
  std::vector<Time> sent;
  const auto began = now_is();
  std::vector<std::thread> threads;
  for (const auto& sender : senders) {
    threads.emplace_back([&, one = sender.get()] {
      while (now_is() - began < 33s) {
        const auto send = one->begin();
        one->end(send);
        const std::lock_guard lock(mutex);
        sent.push_back(send.when);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::sort(sent.begin(), sent.end());
  const auto within = std::count_if(sent.begin(), sent.end(), [&](Time when) {
    return when - began >= 2s && when - began < 32s;
  });
  CHECK(within >= 97 * 30);
  CHECK(within <= 103 * 30);
  CHECK(most_in_a_second(sent) <= 10 + 100 + 8 * 10);
  CHECK(senders[0]->state().changes() == 0);
}

TEST_CASE("long: a circuit that one process opens refuses in others within 700 ms" *
          doctest::skip()) {
  RedisServer server;
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    std::vector<std::unique_ptr<Sender>> senders;
    for (int index = 0; index < 4; ++index) {
      senders.push_back(std::make_unique<Sender>(redis(server.url()), breaker_of(10, 1h),
                                                 "https://h" + std::to_string(round)));
      CHECK(senders.back()->send());
    }
    while (senders[0]->send(true)) {
    }
    const auto opened = now_is();
    for (const auto& sender : senders) {
      CHECK(sender->wait_until([&] { return !sender->send(); }));
    }
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now_is() - opened);
    CHECK(took.count() <= 700);
  }
}

TEST_CASE("the share of one process") {
  GuardPolicy policy = rate_of(100, 1s, 10);
  policy.concurrency.emplace();
  policy.concurrency->max = 10;
  policy.concurrency->min = 5;
  policy.breaker.emplace();
  CHECK(share_of(policy, 4).rate->per == 4s);
  CHECK(share_of(policy, 4).rate->burst == 2);
  CHECK(share_of(policy, 40).rate->burst == 1);
  CHECK(share_of(rate_of(100, 30 * 24h, 10), 1'000'000).rate->per == 10 * 365 * 24h);
  policy.rate->further = {RatePolicy::of_cost(1'000, 1min)};
  CHECK(share_of(policy, 4).rate->further[0].per == 4min);
  CHECK(share_of(policy, 4).rate->further[0].burst == 250);
  CHECK(share_of(policy, 4).concurrency->max == 2);
  CHECK(share_of(policy, 4).concurrency->min == 2);
  CHECK(share_of(policy, 40).concurrency->max == 1);
  CHECK(share_of(policy, 4).breaker->min_requests == 5);
  policy.breaker->kind = BreakerPolicy::Kind::Share;
  CHECK(share_of(policy, 4).breaker->min_requests == 20);
  CHECK(share_of(tokens_of(100, 5), 4).capacity == 25'000);
}
