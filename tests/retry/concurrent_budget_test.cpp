// Budgets of kind concurrent: how many retries and hedges may be under way.
#include <httpretry/retry/budget.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/retry/concurrent_budget.hpp"
#include "tests/retry/random.hpp"

using namespace std::chrono_literals;
using namespace httpretry;  // NOLINT
using httpretry_test::concurrent;
using httpretry_test::Random;

namespace {

bool retry(Budget& budget, BudgetClaim& claim) {
  budget.end_attempt(claim);
  return budget.take(claim, Class::Transient, false, Time());
}

std::vector<BudgetClaim> begin(Budget& budget, int calls) {
  for (int i = 0; i < calls; ++i) budget.begin(Time());
  return std::vector<BudgetClaim>(static_cast<std::size_t>(calls));
}

}  // namespace

TEST_CASE("a hedge that ends frees one place, and the end of the attempt all of them") {
  Budget budget(concurrent(0, 3));
  auto call = begin(budget, 1).front();
  for (int hedges = 1; hedges <= 3; ++hedges) {
    CHECK(budget.take_hedge(call, Time()));
    CHECK(budget.extras() == hedges);
  }
  CHECK_FALSE(budget.take_hedge(call, Time()));
  budget.end_hedge(call);
  CHECK(budget.extras() == 2);
  budget.give_back_hedge(call, Time());
  CHECK(budget.extras() == 1);
  budget.end_attempt(call);
  CHECK(budget.extras() == 0);
  budget.end_hedge(call);
  CHECK(budget.extras() == 0);
}

TEST_CASE("as many retries are under way as the share of the calls, rounded down, or min") {
  struct Row {
    int calls;
    std::int64_t ratio;  // thousandths
    int min;
    int most;
  };
  const std::vector<Row> rows{{1, 200, 3, 3},      {19, 200, 3, 3}, {20, 200, 3, 4},
                              {24, 200, 3, 4},     {25, 200, 3, 5}, {100, 200, 3, 20},
                              {4, 200, 0, 0},      {5, 200, 0, 1},  {9, 200, 0, 1},
                              {100, 0, 3, 3},      {100, 0, 0, 0},  {10, 1000, 0, 10},
                              {1000, 333, 3, 333}, {3, 333, 0, 0},  {1001, 999, 0, 999},
                              {2, 1000, 3, 3},     {300, 10, 3, 3}, {400, 10, 3, 4}};
  for (const auto& row : rows) {
    CAPTURE(row.calls);
    CAPTURE(row.ratio);
    CAPTURE(row.min);
    Budget budget(concurrent(row.ratio, row.min));
    auto claims = begin(budget, row.calls);
    CHECK(budget.most_extras() == row.most);
    CHECK(budget.left(Time()) == row.most * 1000);
    const auto granted = std::count_if(claims.begin(), claims.end(),
                                       [&](BudgetClaim& claim) { return retry(budget, claim); });
    CHECK(granted == std::min(row.calls, row.most));
    CHECK(budget.left(Time()) == (row.most - granted) * 1000);
  }
}

TEST_CASE("a retry has its place until its attempt has ended, and the next one asks again") {
  Budget budget(concurrent(200, 1));
  auto claims = begin(budget, 2);
  CHECK(retry(budget, claims[0]));
  CHECK_FALSE(retry(budget, claims[1]));
  budget.settle(claims[1], Class::Transient, Time());

  CHECK(retry(budget, claims[0]));  // its own place was free again
  CHECK(budget.extras() == 1);
  budget.settle(claims[0], Class::Success, Time());
  CHECK(budget.extras() == 0);
  CHECK(budget.calls() == 0);
  CHECK(budget.full(Time()));
}

TEST_CASE("a poll has no place, and gives up that of the retry before it") {
  Budget budget(concurrent(0, 1));
  auto claims = begin(budget, 2);
  CHECK(retry(budget, claims[0]));
  budget.end_attempt(claims[0]);  // with a pending response: nothing is taken
  CHECK(retry(budget, claims[1]));
}

TEST_CASE("what began within the share stays when other calls have ended") {
  Budget budget(concurrent(500, 0));
  auto claims = begin(budget, 4);
  CHECK(retry(budget, claims[0]));
  CHECK(retry(budget, claims[1]));
  budget.settle(claims[2], Class::Success, Time());
  budget.settle(claims[3], Class::Success, Time());
  CHECK(budget.extras() == 2);
  CHECK(budget.most_extras() == 1);
  CHECK(budget.left(Time()) == 0);
  CHECK_FALSE(retry(budget, claims[0]));  // one is under way already
  CHECK_FALSE(budget.take_hedge(claims[1], Time()));
}

TEST_CASE("retries and hedges share the places") {
  Budget budget(concurrent(0, 2));
  auto claims = begin(budget, 2);
  CHECK(budget.take_hedge(claims[0], Time()));
  CHECK(retry(budget, claims[1]));
  CHECK_FALSE(budget.take_hedge(claims[1], Time()));

  budget.end_hedge(claims[0]);
  CHECK(budget.take_hedge(claims[1], Time()));
  budget.give_back_hedge(claims[1], Time());
  CHECK(budget.extras() == 1);

  budget.end_hedge(claims[0]);  // it has none
  CHECK(budget.extras() == 1);
  budget.end_attempt(claims[1]);
  CHECK(budget.extras() == 0);
}

TEST_CASE("whatever ends a call frees its places, once") {
  Budget budget(concurrent(0, 9));
  auto claims = begin(budget, 3);
  for (auto& claim : claims) {
    CHECK(retry(budget, claim));
    CHECK(budget.take_hedge(claim, Time()));
  }
  for (int again = 0; again < 2; ++again) {
    budget.settle(claims[0], Class::Success, Time());
    budget.settle(claims[1], Class::Permanent, Time());
    budget.cancel(claims[2], Time());
    budget.settle(claims[2], Class::Permanent, Time());
  }
  CHECK(budget.calls() == 0);
  CHECK(budget.extras() == 0);
  CHECK_FALSE(retry(budget, claims[0]));  // the call is over
  CHECK_FALSE(budget.take_hedge(claims[0], Time()));
}

TEST_CASE("the largest numbers do not overflow") {
  Budget budget(concurrent(1000, std::numeric_limits<int>::max()));
  auto claims = begin(budget, 1);
  CHECK(budget.left(Time()) == std::numeric_limits<int>::max() * std::int64_t{1000});
  CHECK(retry(budget, claims[0]));
}

TEST_CASE("other kinds count nothing that is under way") {
  for (const auto kind : {BudgetPolicy::Kind::None, BudgetPolicy::Kind::Tokens,
                          BudgetPolicy::Kind::Ratio, BudgetPolicy::Kind::Grpc}) {
    BudgetPolicy policy;
    policy.kind = kind;
    Budget budget(policy);
    BudgetClaim claim;
    budget.begin(Time());
    CHECK(budget.take_hedge(claim, Time()));
    CHECK(budget.take(claim, Class::Transient, false, Time()));
    CHECK(claim.extras == 0);
    CHECK(budget.extras() == 0);
    CHECK(budget.calls() == 0);
    const auto left = budget.left(Time());
    budget.end_hedge(claim);
    budget.end_attempt(claim);
    CHECK(budget.left(Time()) == left);
  }
}

TEST_CASE("random calls: the counts are those of a model, and nothing is left over") {
  Random random(1729);
  INFO("HTTPRETRY_SEED=", random.seed());
  struct ModelCall {
    BudgetClaim claim;
    bool retries = false;
    int hedges = 0;
    [[nodiscard]] int extras() const { return hedges + (retries ? 1 : 0); }
  };
  for (int round = 0; round < 200; ++round) {
    const auto ratio = random.between(0, 1000);
    const auto min = static_cast<int>(random.between(0, 4));
    Budget budget(concurrent(ratio, min));
    std::vector<ModelCall> calls;
    const auto extras = [&] {
      std::int64_t sum = 0;
      for (const auto& call : calls) sum += call.extras();
      return sum;
    };
    const auto may = [&] {
      const auto share = static_cast<std::int64_t>(calls.size()) * ratio / 1000;
      return extras() + 1 <= std::max<std::int64_t>(min, share);
    };
    for (int step = 0; step < 300; ++step) {
      if (calls.empty() || random.between(0, 3) == 0) {
        budget.begin(Time());
        calls.emplace_back();
        continue;
      }
      const auto at = random.between(0, static_cast<std::int64_t>(calls.size()) - 1);
      auto& call = calls[static_cast<std::size_t>(at)];
      switch (random.between(0, 5)) {
        case 0: {  // the attempt ends, and there is a retry
          call.retries = false;
          call.hedges = 0;
          const bool allowed = may();
          CHECK(retry(budget, call.claim) == allowed);
          call.retries = allowed;
          break;
        }
        case 1: {
          const bool allowed = may();
          CHECK(budget.take_hedge(call.claim, Time()) == allowed);
          call.hedges += allowed ? 1 : 0;
          break;
        }
        case 2:
          if (call.hedges == 0) break;
          --call.hedges;
          random.coin() ? budget.end_hedge(call.claim) : budget.give_back_hedge(call.claim, Time());
          break;
        case 3:
          call.retries = false;
          call.hedges = 0;
          budget.end_attempt(call.claim);
          break;
        default:
          random.coin() ? budget.cancel(call.claim, Time())
                        : budget.settle(call.claim, random.one_of(Class::Permanent), Time());
          calls.erase(calls.begin() + at);
      }
      CHECK(budget.calls() == static_cast<std::int64_t>(calls.size()));
      CHECK(budget.extras() == extras());
    }
    for (auto& call : calls) budget.cancel(call.claim, Time());
    CHECK(budget.full(Time()));
  }
}
