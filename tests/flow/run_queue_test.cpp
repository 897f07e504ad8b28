#include "lib/core/flow/detail/run_queue.hpp"

#include <httpretry/flow/sleep.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

struct CountedTimer final : Timer {
  void due() override { ++fired; }
  int fired = 0;
};

// Starts a sleep and notes how it ended.
struct Sleeper {
  explicit Sleeper(Scheduler& on) : clock(on) {}
  Scheduler& clock;
  std::stop_source stop;
  int ended = 0;
  bool slept = false;
  Time at{};

  detail::Detached sleep(Duration time) {
    const bool whole = co_await clock.sleep_until(later(clock.now(), time), stop.get_token());
    slept = whole;
    at = clock.now();
    ++ended;
  }
};

}  // namespace

TEST_CASE("timers are due in the order of time, then of arrival, and any of them can be removed") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  TimerQueue queue;
  std::vector<CountedTimer> timers(500);
  std::vector<std::pair<Time, std::size_t>> expected;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    const Time when(Duration(random() % 100));
    queue.add(timers[i], when);
    expected.emplace_back(when, i);
  }
  for (std::size_t i = 0; i < timers.size(); i += 3) queue.remove(timers[i]);
  std::erase_if(expected, [](const auto& entry) { return entry.second % 3 == 0; });
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });

  for (const auto& [when, index] : expected) {
    REQUIRE(queue.next() == when);
    CHECK(queue.take_due(when - Duration(1)) == nullptr);
    CHECK(queue.take_due(when) == &timers[index]);
  }
  CHECK(queue.size() == 0);
  CHECK(queue.next() == kNever);
}

TEST_CASE("a timer that is set again moves, and keeps its turn if its time is the same") {
  TimerQueue queue;
  CountedTimer first;
  CountedTimer second;
  queue.set(first, Time(2ns));
  queue.set(second, Time(2ns));
  queue.set(first, Time(2ns));
  CHECK(queue.size() == 2);
  CHECK(queue.take_due(Time(1ns)) == nullptr);
  CHECK(queue.take_due(Time(2ns)) == &first);
  CHECK(queue.size() == 1);
  queue.set(first, Time(1ns));
  CHECK(queue.next() == Time(1ns));
  queue.set(first, Time(3ns));
  CHECK(queue.next() == Time(2ns));
  queue.set(second, kNever);
  CHECK(queue.next() == Time(3ns));
  queue.remove(second);
  CHECK(queue.size() == 1);
  queue.remove(first);
  queue.set(first, kNever);
  CHECK(queue.size() == 0);
  CHECK(queue.next() == kNever);
  CHECK(queue.take_due(Time(1h)) == nullptr);
}

TEST_CASE("a thread drives the queue whose coroutine it runs, and no other") {
  ManualScheduler clock;
  ManualScheduler other;
  std::vector<RunQueue*> seen;
  const auto look = [&]() -> detail::Detached {
    co_await clock.sleep_until(Time(1ms), std::stop_token());
    seen = {RunQueue::current(), RunQueue::driven_of(clock), RunQueue::driven_of(other)};
  };
  look();
  clock.advance(1ms);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0] != nullptr);
  CHECK(seen[1] == seen[0]);
  CHECK(seen[2] == nullptr);
  CHECK(RunQueue::current() == nullptr);
  CHECK(RunQueue::driven_of(clock) == nullptr);
}

TEST_CASE("the manual clock does not go back") {
  ManualScheduler clock;
  clock.advance(1s);
  CHECK_THROWS_AS(clock.advance(-1ns), std::invalid_argument);
  CHECK(clock.now() == Time(1s));
}

TEST_CASE("a sleep ends when its time has come and not a nanosecond earlier") {
  ManualScheduler clock;
  Sleeper sleeper(clock);
  sleeper.sleep(100ms);
  clock.advance(100ms - 1ns);
  CHECK(sleeper.ended == 0);
  clock.advance(1ns);
  CHECK(sleeper.ended == 1);
  CHECK(sleeper.slept);
}

TEST_CASE("each sleep wakes at its own time however far the clock is moved") {
  ManualScheduler clock;
  std::vector<Sleeper> sleepers;
  for (int i = 0; i < 100; ++i) sleepers.emplace_back(clock);
  for (int i = 0; i < 100; ++i) sleepers[static_cast<std::size_t>(i)].sleep(i * 1ms);
  clock.advance(1h);
  for (int i = 0; i < 100; ++i) {
    CHECK(sleepers[static_cast<std::size_t>(i)].at == Time(i * 1ms));
  }
}

TEST_CASE("a stop ends a sleep once, from any thread and however often") {
  ManualScheduler clock;
  Sleeper sleeper(clock);
  sleeper.sleep(1h);
  sleeper.stop.request_stop();
  sleeper.stop.request_stop();
  CHECK(sleeper.ended == 0);  // nothing runs inside request_stop
  clock.run();
  CHECK(sleeper.ended == 1);
  CHECK_FALSE(sleeper.slept);
  CHECK(clock.sleeping() == 0);
}

TEST_CASE("a stop that comes in the turn in which the sleep ends does not end it twice") {
  ManualScheduler clock;
  Sleeper first(clock);
  Sleeper second(clock);
  first.sleep(1ms);
  second.sleep(1ms);
  // The stop of `second` is requested when both are due already.
  const auto stop_other = [](Sleeper& victim, Scheduler& on) -> detail::Detached {
    co_await on.sleep_until(Time(1ms), std::stop_token());
    victim.stop.request_stop();
  };
  stop_other(second, clock);
  clock.advance(1h);
  CHECK(first.ended == 1);
  CHECK(second.ended == 1);
}

TEST_CASE("a task that is destroyed in the turn in which its sleep ends is not resumed") {
  for (const bool by_stop : {false, true}) {
    CAPTURE(by_stop);
    ManualScheduler clock;
    std::stop_source first;
    std::stop_source second;
    std::optional<Task<>> victim;
    int resumed = 0;
    const auto sleep = [&](int& woken) -> Task<> {
      co_await clock.sleep_until(Time(1ms), second.get_token());
      ++woken;
    };
    const auto destroy_other = [&]() -> detail::Detached {
      co_await clock.sleep_until(Time(1ms), first.get_token());
      victim.reset();  // the other sleep has ended, but its coroutine has not been resumed
    };
    destroy_other();
    victim.emplace(sleep(resumed));
    CHECK(victim->operator co_await().await_suspend(std::noop_coroutine()));
    if (by_stop) {
      first.request_stop();
      second.request_stop();
    }
    clock.advance(1s);
    CHECK_FALSE(victim);
    CHECK(resumed == 0);
  }
}

TEST_CASE("a task that is destroyed before it continues on its loop is not resumed") {
  ManualScheduler clock;
  std::optional<Task<bool>> task(sleep_for(clock, 1s));
  CHECK(task->operator co_await().await_suspend(std::noop_coroutine()));
  task.reset();
  clock.run();
  CHECK(clock.sleeping() == 0);
}

TEST_CASE("a sleep with a stop that was requested before does not begin") {
  ManualScheduler clock;
  Sleeper sleeper(clock);
  sleeper.stop.request_stop();
  sleeper.sleep(1h);
  CHECK(sleeper.ended == 1);
  CHECK_FALSE(sleeper.slept);
}

TEST_CASE("destroying a scheduler ends every sleep on it") {
  auto clock = std::make_unique<ManualScheduler>();
  Sleeper sleeper(*clock);
  sleeper.sleep(1h);
  // `at` is read from the clock while it is being destroyed: it still stands.
  clock.reset();
  CHECK(sleeper.ended == 1);
  CHECK_FALSE(sleeper.slept);
}

TEST_CASE("waiting for something that can never happen is an error, not a hang") {
  ManualScheduler clock;
  const std::atomic<bool> never = false;
  CHECK_THROWS_AS(clock.run_until(never), std::logic_error);
}

TEST_CASE("a hundred thousand sleeps wake in order") {
  ManualScheduler clock;
  std::mt19937 random(7);
  Time last{};
  int woken = 0;
  const auto sleeper = [&](Duration time) -> detail::Detached {
    co_await clock.sleep_until(later(clock.now(), time), std::stop_token());
    if (clock.now() < last) woken = -1'000'000;
    last = clock.now();
    ++woken;
  };
  for (int i = 0; i < 100'000; ++i) sleeper(Duration(random() % 1'000'000));
  CHECK(clock.sleeping() == 100'000);
  clock.advance(1s);
  CHECK(woken == 100'000);
}
