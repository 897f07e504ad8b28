#include "start.hpp"

#include "lib/core/guard/window.hpp"
#include "tests/rounds.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {

// What a window is: its tenths, each with its end, and counts that hold anything.
struct PlainWindow {
  struct Tenth {
    Time end;
    std::uint64_t all = 0;
    std::uint64_t good = 0;
    std::uint64_t slow = 0;
  };
  std::vector<Tenth> tenths;
  Duration length{};

  [[nodiscard]] bool in_window(const Tenth& one, Time now) const {
    return now < one.end + 9 * length;
  }
  void add(const Counts& more, Time now, Duration window) {
    length = window / 10;
    std::erase_if(tenths, [&](const Tenth& one) { return !in_window(one, now); });
    if (tenths.empty() || now >= tenths.back().end) {
      tenths.push_back({Time((now.time_since_epoch() / length + 1) * length)});
    }
    auto& last = tenths.back();
    last.all += more.all;
    last.good += more.good;
    last.slow += more.slow;
  }
  [[nodiscard]] std::array<std::uint64_t, 3> sum(Time now) const {
    std::array<std::uint64_t, 3> sum{};
    for (const auto& one : tenths) {
      if (!in_window(one, now)) continue;
      sum[0] += one.all;
      sum[1] += one.good;
      sum[2] += one.slow;
    }
    return sum;
  }
};

std::array<std::uint64_t, 3> numbers(const Counts& counts) {
  return {counts.all, counts.good, counts.slow};
}

}  // namespace

TEST_CASE("a window has nine tenths and the current one") {
  Window window;
  window.add({1, 1, 0}, kStart, 10s);
  window.add({1, 0, 1}, kStart + 999ms, 10s);
  window.add({1, 1, 0}, kStart + 1s, 10s);
  CHECK(window.sum(kStart + 1s).all == 3);
  CHECK(window.sum(kStart + 1s).failed() == 1);
  CHECK(window.sum(kStart + 9999ms).all == 3);
  CHECK(window.sum(kStart + 10s).all == 1);
  CHECK(window.sum(kStart + 11s).all == 0);
  window.add({1, 1, 0}, kStart + 10s, 10s);
  CHECK(window.sum(kStart + 10s).all == 2);
  CHECK(window.sum(kStart + 10s).slow == 0);
  window.clear();
  CHECK(window.sum(kStart).all == 0);
}

TEST_CASE("a window of another length counts what is still in it") {
  Window window;
  for (int second = 0; second < 10; ++second) window.add({1, 1, 0}, kStart + second * 1s, 10s);
  CHECK(window.sum(kStart + 9s).all == 10);
  window.add({1, 1, 0}, kStart + 10s, 2s);  // and of the tenths that ended 1.8 s ago or later
  CHECK(window.sum(kStart + 10s).all == 3);
  window.add({1, 1, 0}, kStart + 10s, 20s);
  CHECK(window.sum(kStart + 10s).all == 4);
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
    REQUIRE(window.sum(now).all == added.size());
    REQUIRE(window.sum(now).failed() == added.size());
  }
}

TEST_CASE("a tenth counts exactly also what needs more than 16 bits") {
  Window window;
  window.add({65'535, 1, 0}, kStart, 10s);
  window.add({1, 0, 0}, kStart, 10s);
  window.add({0, 65'534, 65'535}, kStart, 10s);
  window.add({0, 1, 1}, kStart, 10s);
  window.add({4'000'000'000, 0, 0}, kStart + 1s, 10s);
  CHECK(numbers(window.sum(kStart + 1s)) ==
        std::array<std::uint64_t, 3>{4'000'065'536, 65'536, 65'536});
  window.add({1, 1, 0}, kStart + 10s, 10s);
  CHECK(numbers(window.sum(kStart + 10s)) == std::array<std::uint64_t, 3>{4'000'000'001, 1, 0});
  window.add({1, 1, 1}, kStart + 11s, 10s);
  CHECK(numbers(window.sum(kStart + 11s)) == std::array<std::uint64_t, 3>{2, 2, 1});
}

TEST_CASE("a window counts as a plain one does: any counts, lengths and times") {
  const auto seed = std::random_device()();
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t most) {
    return static_cast<std::uint32_t>(random() % most);
  };
  constexpr std::array<std::chrono::milliseconds, 4> kLengths{1000ms, 1000ms, 3500ms, 70ms};
  for (int round = 0; round < rounds(300); ++round) {
    Window window;
    PlainWindow plain;
    const bool changes_length = round % 2 == 0;
    const bool large = round % 3 == 0;
    auto length = kLengths[0];
    auto now = kStart;
    for (int step = 0; step < 300; ++step) {
      if (changes_length && below(40) == 0) length = kLengths[below(4)];
      // Within the tenth, some tenths later, or the whole window; seldom a little back.
      now += std::chrono::milliseconds(std::array<std::uint32_t, 4>{
          0, below(20), below(300), below(50) == 0 ? below(5000) : 1}[below(4)]);
      if (below(50) == 0) now -= std::chrono::milliseconds(below(200));
      const auto most = large && below(4) == 0 ? 80'000U : 3U;
      const Counts more{below(most), below(most), below(most)};
      window.add(more, now, length);
      plain.add(more, now, length);
      REQUIRE(numbers(window.sum(now)) == plain.sum(now));
      const auto later = now + std::chrono::milliseconds(below(4000)) - 500ms;
      REQUIRE(numbers(window.sum(later)) == plain.sum(later));
      if (below(500) == 0) window.clear(), plain = PlainWindow();
    }
  }
}
