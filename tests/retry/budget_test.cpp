#include <httpretry/retry/budget.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/retry/random.hpp"

using namespace std::chrono_literals;
using namespace httpretry;  // NOLINT
using httpretry_test::Random;

namespace {

BudgetPolicy tokens(std::int64_t capacity, std::int64_t cost) {
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Tokens;
  policy.capacity = capacity * 1000;
  policy.retry_cost = cost * 1000;
  policy.throttle_cost = 5'000;
  policy.timeout_cost = 10'000;
  return policy;
}

BudgetPolicy ratio(Duration window, std::int64_t floor, double share) {
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Ratio;
  policy.window = window;
  policy.min_per_second = floor * 1000;
  policy.ratio = static_cast<std::int64_t>(share * 1000);
  return policy;
}

// For budgets where the class does not matter.
bool take(Budget& budget, BudgetClaim& claim, Time now = Time()) {
  return budget.take(claim, Class::Transient, false, now);
}

int withdrawals(Budget& budget, Time now, int tries) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) {
    BudgetClaim claim;
    if (take(budget, claim, now)) ++taken;
  }
  return taken;
}

// One call that ends with its first attempt.
void call(Budget& budget, Class cls) {
  BudgetClaim claim;
  budget.settle(claim, cls, Time());
}

}  // namespace

TEST_CASE("tokens: what is not there is not given, and nothing is taken") {
  Budget budget(tokens(50, 49));
  BudgetClaim a;
  BudgetClaim b;
  CHECK(take(budget, a));
  CHECK(budget.left(Time()) == 1'000);
  CHECK_FALSE(budget.take(b, Class::Transport, true, Time()));
  CHECK(budget.left(Time()) == 1'000);
}

// botocore's test_quota.py, where ten tokens come back at a time.
TEST_CASE("tokens: what comes back does not pass the capacity") {
  auto policy = tokens(50, 5);
  policy.refill = 10'000;
  Budget budget(policy);
  BudgetClaim claim;
  CHECK(take(budget, claim));
  CHECK(budget.left(Time()) == 45'000);
  for (int i = 0; i < 2; ++i) {
    call(budget, Class::Success);
    CHECK(budget.left(Time()) == 50'000);
  }
}

TEST_CASE("tokens: costs by class") {
  struct Row {
    std::int64_t retry_cost;
    Class cls;
    bool timeout;
    std::int64_t left;
  };
  for (const auto& row :
       {Row{14, Class::Transient, false, 486}, Row{14, Class::Transport, false, 486},
        Row{14, Class::Transport, true, 490}, Row{14, Class::Throttle, false, 495},
        // botocore's TestRetryQuotaChecker, in both of AWS's modes
        Row{5, Class::Transport, true, 490}, Row{5, Class::Transient, false, 495}}) {
    Budget budget(tokens(500, row.retry_cost));
    BudgetClaim claim;
    CHECK(budget.take(claim, row.cls, row.timeout, Time()));
    CHECK(budget.left(Time()) == row.left * 1000);
  }
}

TEST_CASE("tokens: a success gives back the last cost, or one token where nothing was taken") {
  Budget budget(tokens(500, 14));
  BudgetClaim claim;
  take(budget, claim);
  take(budget, claim);
  budget.settle(claim, Class::Success, Time());
  CHECK(budget.left(Time()) == 486'000);
  call(budget, Class::Success);
  CHECK(budget.left(Time()) == 487'000);
  call(budget, Class::Transient);
  CHECK(budget.left(Time()) == 487'000);
}

TEST_CASE("tokens: a success gives back what the policy says, if that is more than the last cost") {
  auto policy = tokens(500, 14);
  policy.refill = 40'000;
  Budget budget(policy);
  BudgetClaim claim;
  for (int i = 0; i < 3; ++i) take(budget, claim);
  budget.settle(claim, Class::Success, Time());
  CHECK(budget.left(Time()) == 498'000);
}

TEST_CASE("tokens: nothing is given back twice") {
  Budget budget(tokens(500, 14));
  BudgetClaim other;
  for (int i = 0; i < 7; ++i) take(budget, other);
  BudgetClaim claim;
  take(budget, claim);
  budget.cancel(claim, Time());
  CHECK(budget.left(Time()) == 402'000);
  budget.cancel(claim, Time());
  budget.settle(claim, Class::Success, Time());
  CHECK(budget.left(Time()) == 402'000);
  CHECK_FALSE(take(budget, claim));  // the call has ended
}

TEST_CASE("tokens: a capacity under the cost allows no retry at all") {
  for (const auto capacity : {0, 13}) {
    Budget budget(tokens(capacity, 14));
    BudgetClaim claim;
    CHECK_FALSE(take(budget, claim));
    CHECK(budget.full(Time()));
  }
}

// twitter/finagle RetryBudgetTest, tower's tps_budget.rs.
TEST_CASE("ratio: the floor, the share and the window") {
  Budget only_floor(ratio(1s, 5, 1.0));
  CHECK(withdrawals(only_floor, Time(0s), 6) == 5);

  Budget nothing(ratio(1s, 0, 1.0));
  CHECK(withdrawals(nothing, Time(0s), 1) == 0);

  Budget expired(ratio(1s, 0, 1.0));
  expired.begin(Time(0s));
  CHECK(withdrawals(expired, Time(3s), 1) == 0);

  Budget halves(ratio(1s, 0, 0.5));
  halves.begin(Time(0s));
  halves.begin(Time(0s));
  CHECK(withdrawals(halves, Time(901ms), 2) == 1);

  Budget shared(ratio(1s, 10, 0.1));
  for (int i = 0; i < 10000; ++i) shared.begin(Time(0s));
  CHECK(withdrawals(shared, Time(0s), 10000) == 1010);

  Budget floor_alone(ratio(1s, 10, 0));
  CHECK(floor_alone.left(Time(0s)) == 10'000);
  Budget floor_of_two_seconds(ratio(2s, 5, 0));
  CHECK(floor_of_two_seconds.left(Time(0s)) == 10'000);

  Budget two_seconds(ratio(2s, 5, 0.5));
  CHECK(two_seconds.left(Time(0s)) == 10'000);
  for (int i = 0; i < 10000; ++i) two_seconds.begin(Time(0s));
  CHECK(withdrawals(two_seconds, Time(0s), 10000) == 5010);

  Budget over_one(ratio(1s, 0, 2.0));
  for (int i = 0; i < 10000; ++i) over_one.begin(Time(0s));
  CHECK(over_one.left(Time(0s)) == 20'000'000);
}

TEST_CASE("ratio: what was taken comes back when it leaves the window, and not twice") {
  Budget budget(ratio(1s, 1, 0));
  BudgetClaim claim;
  CHECK(take(budget, claim, Time(0s)));
  CHECK(budget.left(Time(900ms)) == 0);
  CHECK(budget.left(Time(1s)) == 1'000);
  budget.cancel(claim, Time(5s));
  CHECK(budget.left(Time(5s)) == 1'000);

  BudgetClaim canceled;
  CHECK(take(budget, canceled, Time(6s)));
  budget.cancel(canceled, Time(6500ms));
  budget.cancel(canceled, Time(6500ms));
  CHECK(budget.left(Time(6500ms)) == 1'000);
}

// grpc/proposal A6, "Throttling".
TEST_CASE("grpc: retries while more than half of the tokens are left") {
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Grpc;
  policy.capacity = 10'000;
  policy.refill = 100;
  Budget budget(policy);
  for (const auto allowed : {true, true, true, true, false, false}) {
    CHECK(withdrawals(budget, Time(), 1) == (allowed ? 1 : 0));
  }
  CHECK(budget.left(Time()) == 4'000);
  call(budget, Class::Success);
  CHECK(budget.left(Time()) == 4'100);
  for (int i = 0; i < 9; ++i) call(budget, Class::Success);
  CHECK(budget.left(Time()) == 5'000);
  for (int i = 0; i < 10; ++i) call(budget, Class::Success);
  CHECK(withdrawals(budget, Time(), 1) == 0);  // 5 of 10 are not more than half
  for (int i = 0; i < 11; ++i) call(budget, Class::Success);
  CHECK(withdrawals(budget, Time(), 1) == 1);
  CHECK(budget.left(Time()) == 5'100);
  for (int i = 0; i < 20; ++i) call(budget, Class::Transient);
  CHECK(budget.left(Time()) == 0);
}

TEST_CASE("grpc: a hedge needs more than half of the tokens, and takes none") {
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Grpc;
  policy.capacity = 10'000;
  Budget budget(policy);
  BudgetClaim claim;
  budget.set_balance(5'000, Time());
  CHECK_FALSE(budget.take_hedge(claim, Time()));
  budget.set_balance(5'001, Time());
  CHECK(budget.take_hedge(claim, Time()));
  CHECK(budget.left(Time()) == 5'001);
}

// The proposal counts failures, whether another attempt was still allowed or not.
TEST_CASE(
    "grpc: each failure counts once, the last of a call included, and a canceled call does not") {
  BudgetPolicy policy;
  policy.kind = BudgetPolicy::Kind::Grpc;
  policy.capacity = 4'000;
  policy.refill = 500;
  const Time now;
  Budget budget(policy);
  BudgetClaim exhausted;
  CHECK(budget.take(exhausted, Class::Transient, false, now));
  budget.settle(exhausted, Class::Transient, now);  // no attempts left
  CHECK(budget.left(now) == 2'000);
  BudgetClaim refused;
  CHECK_FALSE(budget.take(refused, Class::Throttle, false, now));
  budget.settle(refused, Class::Throttle, now);
  CHECK(budget.left(now) == 1'000);
  for (const auto cls : {Class::Permanent, Class::Pending}) {
    BudgetClaim claim;
    budget.settle(claim, cls, now);
  }
  BudgetClaim canceled;
  budget.cancel(canceled, now);
  budget.settle(canceled, Class::Transport, now);
  CHECK(budget.left(now) == 1'000);
  BudgetClaim good;
  budget.settle(good, Class::Success, now);
  CHECK(budget.left(now) == 1'500);
}

TEST_CASE(
    "any budget: no sequence of calls takes more than there is or gives more than was taken") {
  Random random(99);
  CAPTURE(random.seed());
  auto grpc = tokens(20, 1);
  grpc.kind = BudgetPolicy::Kind::Grpc;
  const BudgetPolicy none;
  for (const auto& policy : {tokens(100, 14), ratio(1s, 3, 0.2), grpc, none}) {
    Budget budget(policy);
    std::vector<BudgetClaim> calls(50);
    Time now(0s);
    for (int i = 0; i < 20000; ++i) {
      now += Duration(random.between(0, 20'000'000));
      auto& call = calls[static_cast<std::size_t>(random.between(0, 49))];
      switch (random.between(0, 4)) {
        case 0: budget.take(call, random.one_of(Class::Transport), random.coin(), now); break;
        case 1: budget.cancel(call, now); break;
        case 2: budget.settle(call, random.coin() ? Class::Success : Class::Transient, now); break;
        case 3:
          budget.settle(call, Class::Permanent, now);
          call = {};
          budget.begin(now);
          break;
        default: break;
      }
      const auto left = budget.left(now).value_or(0);
      REQUIRE(left >= 0);
      if (policy.kind != BudgetPolicy::Kind::Ratio) REQUIRE(left <= policy.capacity);
    }
    CHECK(budget.left(now).has_value() == (policy.kind != BudgetPolicy::Kind::None));
  }
}

TEST_CASE("a ratio budget that was left alone is as new") {
  Budget budget(ratio(1s, 1, 0.2));
  CHECK(budget.full(Time(0s)));
  budget.begin(Time(100s));
  CHECK_FALSE(budget.full(Time(100s)));
  CHECK(budget.full(Time(102s)));
}

namespace {

Time at(double seconds) { return Time(Duration(static_cast<std::int64_t>(seconds * 1e9 + 0.5))); }

}  // namespace

// smithy-kotlin's and smithy-rs's test_client_sending_rates; tolerance 5e-7 as there.
TEST_CASE("adaptive: the client's rate after each outcome") {
  struct Row {
    double t;
    bool throttled;
    double measured;
    double rate;
  };
  const std::vector<Row> rows = {{0.2, false, 0, 0.5},
                                 {0.4, false, 0, 0.5},
                                 {0.6, false, 4.8, 0.5},
                                 {0.8, false, 4.8, 0.5},
                                 {1.0, false, 4.16, 0.5},
                                 {1.2, false, 4.16, 0.6912},
                                 {1.4, false, 4.16, 1.0976},
                                 {1.6, false, 5.632, 1.6384},
                                 {1.8, false, 5.632, 2.3328},
                                 {2.0, true, 4.3264, 3.02848},
                                 {2.2, false, 4.3264, 3.486639},
                                 {2.4, false, 4.3264, 3.821874},
                                 {2.6, false, 5.66528, 4.053386},
                                 {2.8, false, 5.66528, 4.200373},
                                 {3.0, false, 4.333056, 4.282037},
                                 {3.2, true, 4.333056, 2.997426},
                                 {3.4, false, 4.333056, 3.452226}};
  SendRate limiter(Time(0s));
  for (const auto& row : rows) {
    CAPTURE(row.t);
    limiter.update(at(row.t), row.throttled);
    CHECK(std::abs(limiter.measured() - row.measured) < 5e-7);
    CHECK(std::abs(limiter.rate() - row.rate) < 5e-7);
    CHECK(limiter.enabled() == (row.t >= 2));
  }
}

// smithy-kotlin's and smithy-rs's cubic tables, there for a throttle at t = 5: ten sends a second
// until the rate is measured exactly, then the throttle, then the curve back and past it.
TEST_CASE("adaptive: after a throttle at ten a second, the cubic curve") {
  SendRate limiter(Time(0s));
  for (int tenth = 1; tenth <= 200; ++tenth) limiter.update(at(tenth * 0.1), tenth == 200);
  CHECK(limiter.rate() == doctest::Approx(7.0).epsilon(1e-9));
  limiter.update(at(20), false);
  CHECK(limiter.rate() == doctest::Approx(7.0).epsilon(1e-9));
  // Twenty sends a second from here on, so that the curve is not held to twice what was measured.
  const std::vector<double> expected = {9.64893600966,      10.000030849917364, 10.453284520772092,
                                        13.408697022224185, 21.26626835427364,  36.425998516920465};
  for (int second = 21; second <= 26; ++second) {
    for (int part = 1; part <= 20; ++part) limiter.update(at(second - 1 + part * 0.05), false);
    CAPTURE(second);
    CHECK(std::abs(limiter.rate() - expected[static_cast<std::size_t>(second) - 21]) < 1e-7);
  }
}

// botocore's tests of the curve's beta and of test_bucket.py, with AWS's own 0.7 and 0.5.
TEST_CASE("adaptive: a throttle leaves seven tenths, and never less than a send in two seconds") {
  SendRate eight(Time(0s));
  for (int part = 1; part <= 160; ++part) eight.update(at(part * 0.125), part == 160);
  CHECK(eight.rate() == doctest::Approx(5.6).epsilon(1e-9));
  SendRate idle(Time(0s));
  idle.update(at(100), true);
  CHECK(idle.rate() == 0.5);
  idle.update(at(200), false);
  CHECK(idle.acquire(at(1000)) == 0ns);  // whatever the pause, one send is saved up, and not two
  CHECK(idle.acquire(at(1000)) > 0ns);
}

// botocore's TestRateClocker.
TEST_CASE("adaptive: sends are counted in half seconds") {
  SendRate grouped(Time(0s));
  for (const auto t : {0.1, 0.2, 0.3, 0.4, 0.49, 0.5}) grouped.update(at(t), false);
  CHECK(grouped.measured() == doctest::Approx(9.6));
  SendRate single(Time(0s));
  single.update(at(1), false);
  CHECK(single.measured() == doctest::Approx(0.8));
}

// smithy-rs, test_capacity_never_goes_negative.
TEST_CASE("adaptive: a short bucket says how long, takes nothing, and is right") {
  SendRate limiter(Time(0s));
  CHECK(limiter.acquire(Time(1h)) == 0ns);  // not enabled: go
  limiter.update(at(0.01), true);
  CHECK(limiter.rate() == 0.5);
  limiter.acquire(at(0.01));
  CHECK(limiter.capacity() == 0);
  CHECK(std::chrono::abs(limiter.acquire(at(0.11)) - 1900ms) <= 1us);
  CHECK(std::chrono::abs(limiter.acquire(at(0.11)) - 1900ms) <= 1us);
  CHECK(limiter.capacity() == doctest::Approx(0.05));
  const auto wait = limiter.acquire(at(0.11));
  CHECK(limiter.acquire(at(0.11) + wait) == 0ns);
  CHECK(limiter.capacity() >= 0);
  CHECK(limiter.acquire(at(0.11) + wait) > 1900ms);
}

TEST_CASE("adaptive: time may stand still or run backwards") {
  SendRate limiter(Time(0s));
  limiter.update(at(5), true);
  limiter.update(at(4), false);
  limiter.update(at(5), false);
  CHECK(limiter.acquire(at(3)) >= 0ns);
  CHECK(limiter.rate() >= 0.5);
}

TEST_CASE("ratio: the largest window and rate allow much, and do not overflow") {
  constexpr auto kYear = Duration(std::chrono::hours(365 * 24));
  Budget largest(ratio(kYear, 1'000'000'000, 1000));
  CHECK(largest.left(Time(0s)).value_or(0) == 1'000'000'000'000'000'000);
  CHECK(withdrawals(largest, Time(0s), 10) == 10);
}

TEST_CASE("what others took and gave counts, too") {
  Budget bucket(tokens(50, 5));
  bucket.set_balance(7'000, Time());
  CHECK(withdrawals(bucket, Time(), 3) == 1);
  CHECK(bucket.balance(Time()) == 2'000);
  bucket.set_balance(60'000, Time());
  CHECK(bucket.left(Time()) == 50'000);  // never more than the capacity
  bucket.set_balance(-1, Time());
  CHECK(withdrawals(bucket, Time(), 1) == 0);

  // A window: 10 a second for 10 s, whatever the calls are; all have spent 97 of them.
  Budget window(ratio(10s, 10, 0.2));
  const Time now = Time() + 100s;
  CHECK(withdrawals(window, now, 2) == 2);
  CHECK(window.balance(now) == -2'000);
  window.set_balance(-97'000, now);
  CHECK(window.left(now) == 3'000);
  CHECK(withdrawals(window, now, 5) == 3);
  CHECK(window.left(now + 10s) == 100'000);  // as new
}

TEST_CASE("other numbers: as large a part of the tokens is left") {
  struct Row {
    std::int64_t capacity;
    std::int64_t left;
    std::int64_t then_capacity;
    std::int64_t then_left;
  };
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<Row> rows{{10'000, 6'000, 20'000, 12'000},
                              {10'000, 6'000, 5'000, 3'000},
                              {10'000, 10'000, 500'000, 500'000},
                              {500'000, 0, 10'000, 0},
                              {3'000, 1'000, 1'000, 333},
                              {7'000, 6'999, 7'000, 6'999},
                              {1'000, 999, 1, 1},
                              {kMost, kMost - 1, kMost, kMost},
                              {1'000, 500, kMost, kMost / 2 + 1}};
  for (const auto kind : {BudgetPolicy::Kind::Tokens, BudgetPolicy::Kind::Grpc}) {
    for (const auto& row : rows) {
      CAPTURE(row.capacity);
      CAPTURE(row.left);
      CAPTURE(row.then_capacity);
      auto policy = tokens(1, 1);
      policy.kind = kind;
      policy.capacity = row.capacity;
      Budget budget(policy);
      budget.set_balance(row.left, Time());
      policy.capacity = row.then_capacity;
      budget.change(policy, Time());
      CHECK(budget.policy() == policy);
      CHECK(budget.left(Time()) == row.then_left);
      CHECK(budget.full(Time()) == (row.then_left == row.then_capacity));
    }
  }
}

TEST_CASE("other numbers: the new costs and refills count, also for a retry that was paid for") {
  Budget budget(tokens(50, 10));
  BudgetClaim paid;
  BudgetClaim canceled;
  CHECK(take(budget, paid));
  CHECK(take(budget, canceled));
  auto changed = tokens(50, 20);
  changed.refill = 2'000;
  budget.change(changed, Time());
  CHECK(withdrawals(budget, Time(), 3) == 1);
  CHECK(budget.left(Time()) == 10'000);
  budget.cancel(canceled, Time());  // what it took, not what it would cost now
  CHECK(budget.left(Time()) == 20'000);
  budget.settle(paid, Class::Success, Time());
  CHECK(budget.left(Time()) == 30'000);
  call(budget, Class::Success);
  CHECK(budget.left(Time()) == 32'000);
}

TEST_CASE("other numbers: a window of another length counts what is still in it") {
  const auto now = Time(100s);
  Budget budget(ratio(10s, 0, 0.5));
  for (int i = 0; i < 8; ++i) budget.begin(now - 8s);
  for (int i = 0; i < 6; ++i) budget.begin(now - 2s);
  BudgetClaim claim;
  CHECK(take(budget, claim, now));
  CHECK(budget.left(now) == 6'000);

  auto longer = budget;
  longer.change(ratio(60s, 0, 0.5), now);
  CHECK(longer.left(now) == 6'000);
  CHECK(longer.left(now + 40s) == 6'000);
  CHECK(longer.left(now + 60s) == 0);
  longer.cancel(claim, now + 40s);
  CHECK(longer.left(now + 40s) == 7'000);

  auto shorter = budget;
  shorter.change(ratio(5s, 0, 0.5), now);
  CHECK(shorter.left(now) == 2'000);
  CHECK(shorter.left(now + 5s) == 0);

  auto floor = budget;
  floor.change(ratio(10s, 1, 0.1), now);  // what was earned by the old share stays
  CHECK(floor.left(now) == 16'000);
  floor.begin(now);
  CHECK(floor.left(now) == 16'100);
}

TEST_CASE("other numbers: back and forth, nothing of a window is lost or comes twice") {
  Random random(2311);
  INFO("HTTPRETRY_SEED=", random.seed());
  for (int round = 0; round < 100; ++round) {
    auto now = Time(1h);
    Budget budget(ratio(10s, 0, 1));
    std::int64_t sum = 0;
    const auto until = now + 9s;
    while (now < until) {
      now += 1ms * random.between(1, 900);
      budget.begin(now);
      sum += 1'000;
      // Never under the 10 s in which all of this is.
      if (random.between(0, 2) == 0) budget.change(ratio(1s * random.between(20, 90), 0, 1), now);
      REQUIRE(budget.left(now) == sum);
    }
    CHECK(budget.left(now + 100s) == 0);
  }
}

TEST_CASE("a budget that is split off has as much left, and none of what is under way") {
  Budget budget(tokens(100, 10));
  CHECK(withdrawals(budget, Time(), 6) == 6);
  auto other = budget.split(tokens(10, 1), Time());
  CHECK(other.left(Time()) == 4'000);
  CHECK(withdrawals(other, Time(), 10) == 4);
  CHECK(budget.left(Time()) == 40'000);

  BudgetPolicy concurrent;
  concurrent.kind = BudgetPolicy::Kind::Concurrent;
  concurrent.min = 1;
  Budget whole(concurrent);
  BudgetClaim claim;
  whole.begin(Time());
  CHECK(take(whole, claim));
  concurrent.min = 2;
  auto part = whole.split(concurrent, Time());
  CHECK(part.calls() == 0);
  CHECK(part.extras() == 0);
  whole.change(concurrent, Time());
  CHECK(whole.calls() == 1);
  CHECK(whole.extras() == 1);
  CHECK(whole.left(Time()) == 1'000);
  whole.settle(claim, Class::Success, Time());
  CHECK(whole.full(Time()));
}
