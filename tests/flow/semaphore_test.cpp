// Permits and sleeps, in virtual time.
#include <httpretry/flow/semaphore.hpp>
#include <httpretry/flow/sleep.hpp>
#include <httpretry/flow/task_group.hpp>
#include <httpretry/testing/testing.hpp>

#include "awaiters.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// What was asked of a semaphore, in the order of asking, and when.
struct Asked {
  Time when{};
  Duration patience = kForever;  // gives up then
  Duration holds{};
  Time given = kNever;
};

Task<> stop_after(Scheduler& clock, Duration time, std::stop_source stop) {
  static_cast<void>(co_await sleep_for(clock, time, stop.get_token()));
  stop.request_stop();
}

Task<> use(Semaphore& semaphore, ManualScheduler& clock, Asked& asked, TaskGroup& group) {
  static_cast<void>(co_await sleep_for(clock, asked.when - Time()));
  std::stop_source stop;
  if (asked.patience != kForever) group.start(stop_after(clock, asked.patience, stop));
  const auto permit = co_await semaphore.acquire(clock, stop.get_token());
  if (!permit) co_return;
  asked.given = clock.now();
  static_cast<void>(co_await sleep_for(clock, asked.holds));
}

// When each is given a permit: whoever comes first gets the one that is free first, unless that is
// too late.
std::vector<Time> expected(const std::vector<Asked>& all, std::size_t permits) {
  std::vector<Time> free(permits);
  std::vector<Time> given;
  for (const auto& asked : all) {
    auto& next = *std::min_element(free.begin(), free.end());
    const auto when = std::max(asked.when, next);
    const bool gets_one = asked.patience == kForever || when < asked.when + asked.patience;
    given.push_back(gets_one ? when : kNever);
    if (gets_one) next = when + asked.holds;
  }
  return given;
}

}  // namespace

TEST_CASE("permits are given as a model gives them, first come first served") {
  std::mt19937 random(3);  // NOLINT: the same each time
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const std::size_t permits = 1 + random() % 4;
    std::vector<Asked> all(2 + random() % 20);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].when = Time(i * 10ms);
      all[i].holds = (random() % 60) * 1ms + 100us;  // never ends as another comes or gives up
      if (random() % 3 == 0) all[i].patience = (random() % 40) * 1ms + 50us;
    }
    ManualScheduler clock;
    Semaphore semaphore(permits);
    auto body = [&](TaskGroup& group) -> Task<> {
      for (auto& asked : all) group.start(use(semaphore, clock, asked, group));
      co_return;
    };
    clock.run(run_group(body));
    const auto wanted = expected(all, permits);
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      CHECK(all[i].given == wanted[i]);
    }
    std::vector<Semaphore::Permit> back;
    for (std::size_t i = 0; i < permits; ++i) {
      back.push_back(semaphore.try_acquire());
      CHECK(back.back());
    }
    CHECK_FALSE(semaphore.try_acquire());
    CHECK(clock.sleeping() == 0);
  }
}

TEST_CASE("a permit may outlive its semaphore, and a stopped wait gets none") {
  ManualScheduler clock;
  std::stop_source stop;
  stop.request_stop();
  Semaphore::Permit kept;
  {
    Semaphore one(1);
    CHECK_FALSE(clock.run(one.acquire(clock, stop.get_token())));
    kept = clock.run(one.acquire(clock));
    CHECK(kept);
    CHECK_FALSE(one.try_acquire());
    kept = Semaphore::Permit();
    kept = one.try_acquire();
    CHECK(kept);
  }
  CHECK(kept);
}

TEST_CASE("a permit that comes before the stop, but too late to be used, goes to the next") {
  ManualScheduler clock;
  Semaphore one(1);
  auto held = one.try_acquire();
  std::stop_source stop;
  const auto stopped = std::make_shared<detail::Running<Semaphore::Permit>>();
  detail::run_into(stopped, one.acquire(clock, stop.get_token()));
  const auto next = std::make_shared<detail::Running<Semaphore::Permit>>();
  detail::run_into(next, one.acquire(clock));
  clock.run();
  held = Semaphore::Permit();  // the first one is granted the permit, and will continue
  stop.request_stop();
  clock.run();
  REQUIRE(stopped->done());
  CHECK_FALSE(stopped->take());
  REQUIRE(next->done());
  CHECK(next->take());
}

TEST_CASE("who waits for a permit may be destroyed, and the next gets it") {
  ManualScheduler clock;
  Semaphore one(1);
  auto held = one.try_acquire();
  std::optional<Task<Semaphore::Permit>> gone(one.acquire(clock));
  CHECK(gone->operator co_await().await_suspend(std::noop_coroutine()));
  clock.run();
  const auto running = std::make_shared<detail::Running<Semaphore::Permit>>();
  detail::run_into(running, one.acquire(clock));
  clock.run();
  gone.reset();
  held = Semaphore::Permit();
  clock.run();
  REQUIRE(running->done());
  CHECK(running->take());
}

TEST_CASE("a sleep ends in time, or when its stop is requested, on its loop") {
  ManualScheduler clock;
  std::stop_source stop;
  std::vector<std::thread> threads;
  auto sleep = [&](Duration time) -> Task<bool> {
    const OnAnotherThread hop{&threads};
    co_await hop;
    const bool slept = co_await sleep_for(clock, time, stop.get_token());
    co_return slept;
  };
  const auto run = [&](Duration time) {
    const auto running = std::make_shared<detail::Running<bool>>();
    detail::run_into(running, sleep(time));
    for (auto& thread : threads) thread.join();
    threads.clear();
    clock.run();
    return running;
  };
  const auto whole = run(2s);
  CHECK_FALSE(whole->done());
  clock.advance(2s);
  REQUIRE(whole->done());
  CHECK(whole->take());
  CHECK(clock.now() == Time(2s));
  CHECK(run(-1s)->take());  // no time at all
  const auto stopped = run(kForever);
  CHECK_FALSE(stopped->done());
  stop.request_stop();
  clock.run();
  REQUIRE(stopped->done());
  CHECK_FALSE(stopped->take());
  CHECK(clock.sleeping() == 0);
}
