#include "start.hpp"

#include "lib/core/guard/breaker.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {

struct BreakerModel {
  BreakerPolicy policy;
  Breaker breaker;
  Time now = kStart;

  SendGrant ask(double chance = 0.5) {
    SendGrant grant;
    breaker.ask(policy, now, chance, grant);
    return grant;
  }
  void vote(const SendGrant& grant, bool failed, Duration server_delay = 0s, Duration took = 0s) {
    SendEnd end;
    end.failed = failed;
    end.server_delay = server_delay;
    end.took = took;
    breaker.vote(policy, grant, end, now, 0.5);
  }
  // 'g' a good send, 'f' one that fails; the sends that went out
  int send(const std::string& ends) {
    int sent = 0;
    for (const char end : ends) {
      const auto answer = ask();
      if (!answer.votes) continue;
      ++sent;
      vote(answer, end == 'f');
    }
    return sent;
  }
  [[nodiscard]] Circuit state() const { return breaker.state(); }
};

BreakerModel with_ratio(double ratio, int min_requests) {
  BreakerModel model;
  model.policy.failure_ratio = ratio;
  model.policy.min_requests = min_requests;
  return model;
}

BreakerModel consecutive(int failures) {
  BreakerModel model;
  model.policy.kind = BreakerPolicy::Kind::Consecutive;
  model.policy.failures = failures;
  return model;
}

}  // namespace

TEST_CASE("it opens at a share of failures") {
  auto few = with_ratio(0.1, 3);
  CHECK(few.send("ffffffffff") == 3);

  auto half = with_ratio(0.5, 20);
  CHECK(half.send("ggggggggggfffffffff") == 19);
  CHECK(half.state() == Circuit::Closed);
  half.send("f");
  CHECK(half.state() == Circuit::Open);

  auto nine = with_ratio(0.5, 20);
  nine.send("gggggggggggfffffffff");
  CHECK(nine.state() == Circuit::Closed);

  auto late = with_ratio(0.5, 10);
  late.send("fffffffff");
  CHECK(late.state() == Circuit::Closed);
  late.send("g");
  CHECK(late.state() == Circuit::Open);
}

TEST_CASE("the share is exact also where a tenth has more sends than 16 bits can count") {
  auto model = with_ratio(0.5, 20);
  model.send(std::string(70'000, 'g'));
  CHECK(model.send(std::string(70'001, 'f')) == 70'000);
  CHECK(model.state() == Circuit::Open);
  CHECK(model.breaker.counts(model.now).all == 140'000);
  CHECK(model.breaker.counts(model.now).failed() == 70'000);
}

TEST_CASE("failures leave the window") {
  auto model = with_ratio(0.5, 4);
  model.send("fff");
  model.now += 10s;
  model.send("f");
  CHECK(model.state() == Circuit::Closed);
  model.send("fff");
  CHECK(model.state() == Circuit::Open);
}

TEST_CASE("it opens after failures in a row") {
  auto model = consecutive(6);
  model.send("fffffgfffff");
  CHECK(model.state() == Circuit::Closed);
  model.send("f");
  CHECK(model.state() == Circuit::Open);

  auto both = with_ratio(0.5, 100);
  both.policy.failures = 3;
  both.send("fff");
  CHECK(both.state() == Circuit::Open);
}

TEST_CASE("slow is longer than slow_after") {
  auto model = with_ratio(0.5, 2);
  model.policy.slow_after = 1s;
  for (const Duration took : {1s, 1s, 1s}) {
    model.vote(model.ask(), false, 0s, took);
  }
  CHECK(model.state() == Circuit::Closed);
  model.policy.slow_ratio = 0.25;
  model.vote(model.ask(), false, 0s, 1s + 1ns);
  CHECK(model.state() == Circuit::Open);
}

TEST_CASE("it stays open longer from time to time, and shorter after quiet windows") {
  auto model = consecutive(1);
  model.policy.open_for.jitter = Backoff::Jitter::None;
  std::vector<std::int64_t> seconds;
  const auto fail = [&] {
    model.send("f");
    seconds.push_back((model.breaker.until() - model.now) / 1s);
    model.now = model.breaker.until();
  };
  for (int times = 0; times < 6; ++times) fail();
  CHECK(seconds == std::vector<std::int64_t>{5, 10, 20, 40, 60, 60});

  model.policy.open_for.kind = Backoff::Kind::Linear;
  model.policy.open_for.initial = model.policy.open_for.increment = 30s;
  model.policy.open_for.max_interval = 300s;
  seconds.clear();
  model.breaker = Breaker();
  for (int times = 0; times < 12; ++times) fail();
  CHECK(seconds ==
        std::vector<std::int64_t>{30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300});
  seconds.clear();
  model.breaker = Breaker();
  for (int times = 0; times < 5; ++times) fail();
  model.send("g");
  model.now += 2 * model.policy.window;
  fail();  // two less than five, and one more
  CHECK(seconds.back() == 120);
}

TEST_CASE("a decorrelated time to stay open grows from the one before, within a row only") {
  auto model = consecutive(1);
  model.policy.open_for.kind = Backoff::Kind::Decorrelated;
  model.policy.open_for.initial = 1s;
  model.policy.open_for.multiplier = 3;
  std::vector<std::int64_t> ms;
  const auto fail = [&] {
    model.send("f");
    ms.push_back((model.breaker.until() - model.now) / 1ms);
    model.now = model.breaker.until();
  };
  for (int times = 0; times < 3; ++times) fail();
  model.send("g");
  model.now += 3 * model.policy.window;
  fail();  // the first of a new row
  fail();
  CHECK(ms == std::vector<std::int64_t>{2000, 3500, 5750, 2000, 3500});
}

TEST_CASE("a delay that the server asks for keeps it open") {
  auto model = consecutive(1);
  model.vote(model.ask(), true, 20s);
  CHECK(model.breaker.until() == kStart + 20s);
}

TEST_CASE("half-open: probes decide, and none can block it") {
  auto model = consecutive(1);
  model.policy.probes = 2;
  model.send("f");
  model.now = model.breaker.until() - 1ns;
  CHECK_FALSE(model.ask().votes);
  model.now += 1ns;
  const auto first = model.ask();
  const auto second = model.ask();
  CHECK(model.state() == Circuit::HalfOpen);
  CHECK(first.votes);
  CHECK(second.votes);
  CHECK_FALSE(model.ask().votes);

  model.breaker.give_back(first);  // canceled
  const auto third = model.ask();
  CHECK(third.votes);
  CHECK_FALSE(model.ask().votes);

  model.now += model.policy.probe_timeout;  // both hang
  const auto fourth = model.ask();
  CHECK(fourth.votes);
  model.vote(second, true);  // too late
  CHECK(model.state() == Circuit::HalfOpen);
  model.vote(fourth, false);
  CHECK(model.state() == Circuit::HalfOpen);
  const auto fifth = model.ask();
  CHECK_FALSE(model.ask().votes);  // one has succeeded, one is under way
  model.vote(fifth, false);
  CHECK(model.state() == Circuit::Closed);
}

TEST_CASE("half-open: a slow probe has failed") {
  auto model = consecutive(1);
  model.policy.slow_after = 1s;
  for (const auto took : {Duration(1s), Duration(1s + 1ns)}) {
    model.send("f");
    model.now = model.breaker.until();
    CHECK(model.breaker.held_until(model.policy, model.now - 1ns) == model.now);
    CHECK(model.breaker.held_until(model.policy, model.now) == model.now);
    const auto probe = model.ask();
    CHECK(model.breaker.held_until(model.policy, model.now) ==
          model.now + model.policy.probe_timeout);
    model.vote(probe, false, 0s, took);
    CHECK(model.state() == (took == 1s ? Circuit::Closed : Circuit::Open));
  }
  CHECK(model.breaker.why_open() == "a probe failed");
  CHECK(model.breaker.counts(model.now).all == 1);
  CHECK(model.breaker.counts(model.now).failed() == 1);
}

TEST_CASE("votes of an older generation do not count") {
  auto model = consecutive(1);
  std::vector<SendGrant> tickets;
  for (int sends = 0; sends < 20; ++sends) tickets.push_back(model.ask());
  model.vote(tickets[0], true);
  const auto until = model.breaker.until();
  model.now += 1s;
  for (const auto& ticket : tickets) model.vote(ticket, true);
  CHECK(model.breaker.until() == until);
  model.now = until;
  const auto probe = model.ask();
  for (const auto& ticket : tickets) model.vote(ticket, false);
  CHECK(model.state() == Circuit::HalfOpen);
  model.vote(probe, false);
  CHECK(model.state() == Circuit::Closed);
}

TEST_CASE("share: the fewer sends succeed, the more are refused") {
  struct Row {
    double k;
    int good;
    double share;
  };
  for (const auto& row : {Row{2, 100, 0}, Row{2, 50, 0}, Row{2, 40, 0.1980}, Row{2, 10, 0.7921},
                          Row{2, 0, 0.9901}, Row{1.1, 10, 0.8812}}) {
    CAPTURE(row.good);
    BreakerModel model;
    model.policy.kind = BreakerPolicy::Kind::Share;
    model.policy.k = row.k;
    for (int sends = 0; sends < 100; ++sends) {
      model.vote(model.ask(1), sends >= row.good);
    }
    const auto answer = model.ask(std::max(row.share - 0.001, 0.0));
    CHECK(answer.refused_share == doctest::Approx(row.share).epsilon(0.001));
    CHECK(answer.votes == (row.share == 0));
    model.now += model.policy.share_window;
    CHECK(model.ask(0).votes);
  }
}

TEST_CASE("it is not as new while it counts sends or failures in a row") {
  auto good = consecutive(2);
  good.send("g");
  CHECK_FALSE(good.breaker.idle(good.now));
  CHECK(good.breaker.idle(good.now + good.policy.window));
  auto bad = consecutive(2);
  bad.send("f");
  CHECK_FALSE(bad.breaker.idle(bad.now + bad.policy.window));
}

TEST_CASE("it is as new once it has forgotten") {
  auto model = consecutive(2);
  CHECK(model.breaker.idle(model.now));
  model.send("f");
  CHECK_FALSE(model.breaker.idle(model.now));
  model.send("f");
  model.now = model.breaker.until();
  CHECK_FALSE(model.breaker.idle(model.now));
  model.send("g");
  CHECK_FALSE(model.breaker.idle(model.now));
  model.now += model.policy.window;
  CHECK(model.breaker.idle(model.now));
}
