#include "lib/guard/window.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {

constexpr Time kStart{1h};

}  // namespace

TEST_CASE("a window has nine tenths and the current one") {
  Window window;
  window.add({1, 1, 0}, kStart, 10s);
  window.add({1, 0, 1}, kStart + 999ms, 10s);
  window.add({1, 1, 0}, kStart + 1s, 10s);
  CHECK(window.sum().all == 3);
  CHECK(window.sum().failed() == 1);
  CHECK(window.sum(kStart + 9999ms).all == 3);
  CHECK(window.sum(kStart + 10s).all == 1);
  CHECK(window.sum(kStart + 11s).all == 0);
  CHECK(window.sum().all == 3);  // nothing was added since
  window.add({1, 1, 0}, kStart + 10s, 10s);
  CHECK(window.sum().all == 2);
  CHECK(window.sum().slow == 0);
  window.clear();
  CHECK(window.sum(kStart).all == 0);
}

TEST_CASE("a window of another length counts what is still in it") {
  Window window;
  for (int second = 0; second < 10; ++second) window.add({1, 1, 0}, kStart + second * 1s, 10s);
  CHECK(window.sum().all == 10);
  window.add({1, 1, 0}, kStart + 10s, 2s);  // and of the tenths that ended 1.8 s ago or later
  CHECK(window.sum().all == 3);
  window.add({1, 1, 0}, kStart + 10s, 20s);
  CHECK(window.sum().all == 4);
}

TEST_CASE("a window never has more or less than what was added to its tenths") {
  const auto seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  Window window;
  std::vector<Time> added;
  auto now = kStart;
  for (int i = 0; i < 10'000; ++i) {
    now += std::chrono::milliseconds(random() % 3 == 0   ? 0
                                     : random() % 2 == 0 ? 30
                                                         : random() % 900);
    window.add({1, 0, 0}, now, 1s);
    added.push_back(now);
    const auto first = (now.time_since_epoch() / 100ms - 9) * 100ms;
    std::erase_if(added, [&](Time one) { return one.time_since_epoch() < first; });
    REQUIRE(window.sum().all == added.size());
    REQUIRE(window.sum(now).failed() == added.size());
  }
}
