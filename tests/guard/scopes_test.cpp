#include "lib/core/guard/scopes.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;

namespace {

struct State {
  bool as_new = true;
  [[nodiscard]] bool idle(Time /*now*/) const { return as_new; }
};

constexpr std::size_t kMost = 10;
constexpr Time kNow{};

struct ScopesModel {
  Scopes<State> scopes{kMost};

  void add(const std::string& key, bool as_new) { scopes.at(key, kNow)->as_new = as_new; }
  [[nodiscard]] std::set<std::string> keys(const std::string& prefix = "") const {
    std::set<std::string> keys;
    scopes.each(prefix, [&](const std::string& key, const State&) { keys.insert(key); });
    return keys;
  }
};

}  // namespace

TEST_CASE("where there are too many states, those that are as new and unused are dropped") {
  ScopesModel model;
  const auto used = model.scopes.at("used", kNow);
  for (int i = 0; i < 3; ++i) model.add("changed " + std::to_string(i), false);
  for (int i = 0; i < 6; ++i) model.add("new " + std::to_string(i), true);
  CHECK(model.scopes.size() == kMost);
  model.add("one more", true);
  CHECK(model.keys() ==
        std::set<std::string>{"changed 0", "changed 1", "changed 2", "one more", "used"});
  CHECK(model.scopes.at("used", kNow) == used);
  CHECK(model.keys("changed").size() == 3);
}

TEST_CASE("where half of them have changed, they are kept") {
  ScopesModel model;
  for (int i = 0; i < 5; ++i) model.add("changed " + std::to_string(i), false);
  for (int i = 0; i < 5; ++i) model.add("new " + std::to_string(i), true);
  model.add("one more", true);
  CHECK(model.keys("changed").size() == 5);
  CHECK(model.keys("new").empty());
}

TEST_CASE("where most of them have changed, all that nobody uses are dropped") {
  ScopesModel model;
  const auto used = model.scopes.at("used", kNow);
  for (std::size_t i = 1; i < kMost; ++i) model.add("changed " + std::to_string(i), false);
  model.add("one more", false);
  CHECK(model.keys() == std::set<std::string>{"one more", "used"});
}

TEST_CASE("states in use are never dropped, however many there are") {
  ScopesModel model;
  std::vector<std::shared_ptr<State>> used;
  for (std::size_t i = 0; i < 5 * kMost; ++i) {
    used.push_back(model.scopes.at(std::to_string(i), kNow));
  }
  CHECK(model.scopes.size() == 5 * kMost);
  used.clear();
  for (std::size_t i = 0; i < 4 * kMost; ++i) model.add("other " + std::to_string(i), true);
  CHECK(model.scopes.size() <= 5 * kMost);
  CHECK_FALSE(model.scopes.change("no such key", [](State&) {}));
}
