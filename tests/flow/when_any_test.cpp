// The first of several tasks, in virtual time and by hand.
#include <httpretry/flow/sleep.hpp>
#include <httpretry/flow/when_any.hpp>
#include <httpretry/testing/testing.hpp>

#include "awaiters.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr int kCanceled = -1;

// Counts those that have begun and not ended.
struct Alive {
  explicit Alive(int& all) : count(all) { ++count; }
  ~Alive() { --count; }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  int& count;
};

Task<int> runner(ManualScheduler& clock, int time, bool throws, std::stop_token stop, int& alive) {
  const Alive one(alive);
  const bool slept = co_await sleep_for(clock, time * 1ms, std::move(stop));
  if (slept && throws) throw std::runtime_error("thrown at " + std::to_string(time));
  co_return slept ? time : kCanceled;
}

Task<> unit(ManualScheduler& clock, Duration time, std::stop_token stop) {
  static_cast<void>(co_await sleep_for(clock, time, std::move(stop)));
}

Task<int> by_hand(std::vector<std::coroutine_handle<>>& waiting, int value) {
  const ByHand suspended{&waiting};
  co_await suspended;
  co_return value;
}

Task<int> at_once(int& begun) {
  ++begun;
  co_return begun;
}

}  // namespace

TEST_CASE("the shortest of random tasks is the first, and no other goes on after it") {
  std::mt19937 random(7);  // NOLINT: the same each time
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<int> times(1 + random() % 8);
    for (auto& time : times) time = static_cast<int>(1 + random() % 50);
    const auto first = std::min_element(times.begin(), times.end());
    const bool throws = random() % 4 == 0;

    ManualScheduler clock;
    int alive = 0;
    const std::stop_source losers;
    std::vector<Task<int>> tasks;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const bool is_first = times.begin() + static_cast<std::ptrdiff_t>(i) == first;
      tasks.push_back(runner(clock, times[i], throws && is_first, losers.get_token(), alive));
    }
    auto race = when_any(losers, std::move(tasks));
    if (throws) {
      CHECK_THROWS_WITH_AS(clock.run(std::move(race)),
                           ("thrown at " + std::to_string(*first)).c_str(), std::runtime_error);
    } else {
      const auto won = clock.run(std::move(race));
      CHECK(won.index == static_cast<std::size_t>(first - times.begin()));
      CHECK(won.value == *first);
    }
    CHECK(alive == 0);
    CHECK(clock.now() == Time(*first * 1ms));
    CHECK(clock.sleeping() == 0);
  }
}

TEST_CASE("the first good value of random tasks wins; where none is good, the last value does") {
  std::mt19937 random(11);  // NOLINT: the same each time
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<int> times(1 + random() % 8);
    for (std::size_t i = 0; i < times.size(); ++i) {  // each another
      times[i] = static_cast<int>(10 * (1 + random() % 50) + i);
    }
    const int divisor = 2 + static_cast<int>(random() % 8);
    const auto good = [&](int time) { return time % divisor == 0; };
    int expected = 0;
    for (const int time : times) {
      if (good(time) && (expected == 0 || time < expected)) expected = time;
    }
    if (expected == 0) expected = *std::max_element(times.begin(), times.end());

    ManualScheduler clock;
    int alive = 0;
    const std::stop_source losers;
    std::vector<Task<int>> tasks;
    for (const int time : times) {
      tasks.push_back(runner(clock, time, false, losers.get_token(), alive));
    }
    const auto won = clock.run(when_any(losers, std::move(tasks), good));
    CHECK(won.value == expected);
    CHECK(times[won.index] == expected);
    CHECK(alive == 0);
    CHECK(clock.now() == Time(expected * 1ms));
  }
}

TEST_CASE("a race ends when the last loser has ended, whatever the order") {
  std::vector<std::coroutine_handle<>> waiting;
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(by_hand(waiting, 10 + i));
  const std::stop_source losers;
  const auto running = std::make_shared<detail::Running<FirstOf<int>>>();
  detail::run_into(running, when_any(losers, std::move(tasks)));
  REQUIRE(waiting.size() == 3);
  CHECK_FALSE(losers.stop_requested());
  waiting[1].resume();
  CHECK(losers.stop_requested());
  waiting[2].resume();
  CHECK_FALSE(running->done());
  waiting[0].resume();
  REQUIRE(running->done());
  const auto first = running->take();
  CHECK(first.index == 1);
  CHECK(first.value == 11);
}

TEST_CASE("tasks after one that ends at once, or throws at once, are not started") {
  int begun = 0;
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(at_once(begun));
  const auto first = sync_wait(when_any(std::stop_source(), std::move(tasks)));
  CHECK(first.index == 0);
  CHECK(begun == 1);
  std::vector<Task<int>> others;
  others.push_back(throwing("first"));
  others.push_back(at_once(begun));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(sync_wait(when_any(std::stop_source(), std::move(others)))), "first",
      std::runtime_error);
  CHECK(begun == 1);
}

TEST_CASE("tasks of different types race, and the variant says which was first") {
  ManualScheduler clock;
  int alive = 0;
  for (const int time : {10, 30}) {
    const std::stop_source losers;
    const auto stop = losers.get_token();
    const auto first = clock.run(
        when_any(losers, runner(clock, time, false, stop, alive), unit(clock, 20ms, stop)));
    CHECK(first.index() == (time == 10 ? 0 : 1));
    if (time == 10) CHECK(std::get<0>(first) == 10);
  }
  std::vector<Task<>> units;
  const std::stop_source losers;
  units.push_back(unit(clock, 2s, losers.get_token()));
  units.push_back(unit(clock, 1s, losers.get_token()));
  CHECK(clock.run(when_any(losers, std::move(units))) == 1);
}

TEST_CASE("the stop of the losers cancels the whole race") {
  ManualScheduler clock;
  int alive = 0;
  std::stop_source losers;
  std::vector<Task<int>> tasks;
  for (int i = 1; i < 4; ++i) {
    tasks.push_back(runner(clock, i, false, losers.get_token(), alive));
  }
  losers.request_stop();
  CHECK(clock.run(when_any(losers, std::move(tasks))).value == kCanceled);
  CHECK(clock.now() == Time());
}

TEST_CASE("a race of no tasks is refused") {
  CHECK_THROWS_AS(
      static_cast<void>(sync_wait(when_any(std::stop_source(), std::vector<Task<int>>()))),
      std::invalid_argument);
}

TEST_CASE("destroying when_any destroys its tasks, started or not") {
  const auto held = std::make_shared<int>(7);
  const std::stop_source losers;
  const auto two = [&] {
    std::vector<Task<int>> tasks;
    tasks.push_back(holding(held));
    tasks.push_back(holding(held));
    return when_any(losers, std::move(tasks));
  };
  { const auto never_started = two(); }
  CHECK(held.use_count() == 1);
  CHECK_FALSE(losers.stop_requested());
  {
    const auto started = two();
    const auto awaiter = started.operator co_await();
    CHECK(awaiter.await_suspend(std::noop_coroutine()));
    CHECK(held.use_count() == 3);
  }
  CHECK(held.use_count() == 1);
  CHECK(losers.stop_requested());
}
