#include "lib/middleware/budgets.hpp"

#include "policies.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

const BudgetPolicy kPolicy = thrifty_policy(100).budget;
constexpr auto kMany = 4 * Budgets::kMostPlaces;

std::string place(std::size_t number) { return "https://host-" + std::to_string(number); }

void spend(Budgets& budgets, const std::string& where, Time now) {
  BudgetUse use(budgets.at(where, kPolicy, now), now);
  CHECK(use.take(Classified(), now));
  use.begin_attempt();
}

std::int64_t left(Budgets& budgets, const std::string& where, Time now) {
  return *BudgetUse(budgets.at(where, kPolicy, now), now).left(now);
}

}  // namespace

TEST_CASE("a place keeps its budget between calls, and two policies do not share one") {
  Budgets budgets;
  spend(budgets, "x", Time());
  CHECK(left(budgets, "x", Time(1s)) == 90);
  CHECK(left(budgets, "y", Time(1s)) == 100);
  auto other = kPolicy;
  other.capacity = 7'000;
  CHECK(BudgetUse(budgets.at("x", other, Time()), Time()).left(Time()) == 7);
}

TEST_CASE(
    "places that nobody uses and that are as new are forgotten, so that the store is bounded") {
  Budgets budgets;
  std::vector<std::weak_ptr<SharedBudget>> seen;
  for (std::size_t i = 0; i < kMany; ++i) {
    seen.push_back(budgets.at(place(i), kPolicy, Time(std::chrono::seconds(i))));
  }
  std::size_t kept = 0;
  for (const auto& one : seen) kept += one.expired() ? 0U : 1U;
  CHECK(kept <= Budgets::kMostPlaces);
  CHECK(kept >= Budgets::kMostPlaces / 4);
  CHECK_FALSE(seen.back().expired());
}

TEST_CASE("a place in debt outlives any number of places that are as new") {
  Budgets budgets;
  spend(budgets, "poor", Time());
  const auto slowed = budgets.at("slowed", kPolicy, Time());
  slowed->rate.update(Time(1s), true);
  const std::weak_ptr<SharedBudget> slow = slowed;
  for (std::size_t i = 0; i < kMany; ++i) {
    (void)budgets.at(place(i), kPolicy, Time(std::chrono::seconds(i)));
  }
  CHECK(left(budgets, "poor", Time(1h)) == 90);
  CHECK(budgets.at("slowed", kPolicy, Time(1h)) == slow.lock());
}

TEST_CASE("where all are in debt, the one used longest ago goes, and never more than are needed") {
  Budgets budgets;
  for (std::size_t i = 0; i < kMany; ++i) spend(budgets, place(i), Time(std::chrono::seconds(i)));
  // The parts of the store are not filled evenly, so that a few of the latest may be gone.
  int remembered = 0;
  for (std::size_t i = kMany - Budgets::kMostPlaces / 2; i < kMany; ++i) {
    if (left(budgets, place(i), Time(std::chrono::seconds(kMany + i))) == 90) ++remembered;
  }
  CHECK(remembered == Budgets::kMostPlaces / 2);
}

TEST_CASE("a place in use is never forgotten, however many there are") {
  Budgets budgets;
  std::vector<std::shared_ptr<SharedBudget>> used;
  for (std::size_t i = 0; i < kMany; ++i) used.push_back(budgets.at(place(i), kPolicy, Time()));
  for (std::size_t i = 0; i < kMany; ++i) {
    CHECK(budgets.at(place(i), kPolicy, Time()) == used[i]);
  }
}
