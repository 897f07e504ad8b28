#include "lib/core/guard/detail/shared_budget.hpp"
#include "lib/core/retry/retry_loop.hpp"

#include "policies.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const BudgetPolicy kPolicy = thrifty_policy(100).budget;
constexpr auto kMany = 4 * Budgets::kMaxBudgets;

std::string key(std::size_t number) { return "https://host-" + std::to_string(number); }

void spend(Budgets& budgets, const std::string& where, Time now) {
  RetryClaim claim(budgets.at(where, kPolicy, now), false, now);
  CHECK(claim.end_attempt(Classified(), AfterAttempt::Retry, now).allowed);
  CHECK(claim.begin_attempt(now) == 0s);
}

BudgetPolicy with_capacity(std::int64_t tokens) {
  auto policy = kPolicy;
  policy.capacity = tokens * 1'000;
  return policy;
}

std::int64_t left(Budgets& budgets, const std::string& where, Time now) {
  return *RetryClaim(budgets.at(where, kPolicy, now), false, now).left(now);
}

}  // namespace

TEST_CASE("a host keeps its budget between calls, and two policies do not share one") {
  Budgets budgets;
  spend(budgets, "x", Time());
  CHECK(left(budgets, "x", Time(1s)) == 90);
  CHECK(left(budgets, "y", Time(1s)) == 100);
  auto other = kPolicy;
  other.capacity = 7'000;
  CHECK(RetryClaim(budgets.at("x", other, Time()), false, Time()).left(Time()) == 7);
}

TEST_CASE("a budget whose numbers have changed goes on with the new ones") {
  Budgets budgets;
  spend(budgets, "x", Time());
  const auto before = budgets.at("x", kPolicy, Time());
  std::vector<ChangedBudget> changes{{kPolicy, with_capacity(50)}};
  CHECK(budgets.at("x", with_capacity(50), Time(), changes) == before);
  CHECK(before->left(Time()) == 45);
  CHECK(budgets.at("x", with_capacity(50), Time()) == before);
  CHECK(budgets.at("y", with_capacity(50), Time(), changes)->left(Time()) == 50);

  // Also where no call has come between two changes.
  changes.emplace_back(with_capacity(50), with_capacity(30));
  changes.emplace_back(with_capacity(30), with_capacity(20));
  CHECK(budgets.at("x", with_capacity(20), Time(), changes) == before);
  CHECK(before->left(Time()) == 18);

  // A change that has nothing to do with it.
  CHECK(budgets.at("x", with_capacity(7), Time(), changes)->left(Time()) == 7);
}

TEST_CASE("where others have the old numbers still, they get a budget of which as much is left") {
  Budgets budgets;
  spend(budgets, "x", Time());
  const std::vector<ChangedBudget> changes{{kPolicy, with_capacity(50)}};
  const auto changed = budgets.at("x", with_capacity(50), Time(), changes);
  const auto second = budgets.at("x", kPolicy, Time());
  CHECK(second != changed);
  CHECK(second->left(Time()) == 90);
  CHECK(budgets.at("x", kPolicy, Time(), changes) == second);
  CHECK(budgets.at("x", with_capacity(50), Time(), changes) == changed);
  CHECK(changed->left(Time()) == 45);

  // Two policies that shared a budget get different numbers.
  spend(budgets, "z", Time());
  const std::vector<ChangedBudget> two{{kPolicy, with_capacity(50)}, {kPolicy, with_capacity(20)}};
  CHECK(budgets.at("z", with_capacity(20), Time(), two)->left(Time()) == 18);
  CHECK(budgets.at("z", with_capacity(50), Time(), two)->left(Time()) == 45);
}

TEST_CASE("numbers that a budget of the same key has are that budget's") {
  Budgets budgets;
  spend(budgets, "x", Time());
  const auto other = budgets.at("x", with_capacity(50), Time());
  const std::vector<ChangedBudget> changes{{kPolicy, with_capacity(50)}};
  CHECK(budgets.at("x", with_capacity(50), Time(), changes) == other);
  CHECK(other->left(Time()) == 50);
}

TEST_CASE(
    "budgets that nobody uses and that are as new are dropped, so that the store is bounded") {
  Budgets budgets;
  std::vector<std::weak_ptr<SharedBudget>> seen;
  for (std::size_t i = 0; i < kMany; ++i) {
    seen.push_back(budgets.at(key(i), kPolicy, Time(std::chrono::seconds(i))));
  }
  std::size_t kept = 0;
  for (const auto& one : seen) kept += one.expired() ? 0U : 1U;
  CHECK(kept <= Budgets::kMaxBudgets);
  CHECK(kept >= Budgets::kMaxBudgets / 4);
  CHECK_FALSE(seen.back().expired());
}

TEST_CASE("a budget in debt outlives any number of budgets that are as new") {
  Budgets budgets;
  spend(budgets, "poor", Time());
  const auto slowed = budgets.at("slowed", kPolicy, Time());
  slowed->rate.update(Time(1s), true);
  const std::weak_ptr<SharedBudget> slow = slowed;
  for (std::size_t i = 0; i < kMany; ++i) {
    (void)budgets.at(key(i), kPolicy, Time(std::chrono::seconds(i)));
  }
  CHECK(left(budgets, "poor", Time(1h)) == 90);
  CHECK(budgets.at("slowed", kPolicy, Time(1h)) == slow.lock());
}

TEST_CASE("where all are in debt, the one used longest ago goes, and never more than are needed" *
          doctest::test_suite("large")) {
  Budgets budgets;
  for (std::size_t i = 0; i < kMany; ++i) spend(budgets, key(i), Time(std::chrono::seconds(i)));
  // The parts of the store are not filled evenly, so that a few of the latest may be gone.
  int remembered = 0;
  for (std::size_t i = kMany - Budgets::kMaxBudgets / 2; i < kMany; ++i) {
    if (left(budgets, key(i), Time(std::chrono::seconds(kMany + i))) == 90) ++remembered;
  }
  CHECK(remembered == Budgets::kMaxBudgets / 2);
}

TEST_CASE("a budget in use is never dropped, however many there are" *
          doctest::test_suite("large")) {
  Budgets budgets;
  std::vector<std::shared_ptr<SharedBudget>> used;
  for (std::size_t i = 0; i < kMany; ++i) used.push_back(budgets.at(key(i), kPolicy, Time()));
  for (std::size_t i = 0; i < kMany; ++i) {
    CHECK(budgets.at(key(i), kPolicy, Time()) == used[i]);
  }
}
