// Tasks that end together, in virtual time and on threads.
#include <httpretry/flow/sleep.hpp>
#include <httpretry/flow/task_group.hpp>
#include <httpretry/log/log.hpp>
#include <httpretry/testing/testing.hpp>

#include "awaiters.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// What has happened to the tasks of one group.
struct Model {
  ManualScheduler clock;
  std::mt19937 random{11};  // NOLINT: the same each time
  int alive = 0;
  int begun = 0;
  Time thrown = kNever;
};

// Sleeps, starts tasks of its own, and may throw.
Task<> node(Model& model, TaskGroup& group, int depth) {
  const std::shared_ptr<int> alive(&model.alive, [](int* count) { --*count; });
  ++model.alive;
  ++model.begun;
  const auto time = static_cast<int>(1 + model.random() % 40) * 1ms;
  const int children = depth == 0 ? 0 : static_cast<int>(model.random() % 4);
  const bool throws = model.random() % 10 == 0;
  for (int i = 0; i < children; ++i) group.start(node(model, group, depth - 1));
  const bool slept = co_await sleep_for(model.clock, time, group.stop());
  const auto now = model.clock.now();
  CHECK((slept ? model.thrown >= now : model.thrown <= now));  // several are due in one turn
  if (slept && throws) {
    model.thrown = now;
    throw std::runtime_error(to_text(now.time_since_epoch()));
  }
}

Task<int> one_task(std::vector<std::thread>& threads, std::atomic<int>& ended, bool throws) {
  const OnAnotherThread hop{&threads};
  co_await hop;
  ++ended;
  if (throws) throw std::runtime_error("thrown elsewhere");
  co_return 1;
}
Task<> unit_of(Task<int> task) { static_cast<void>(co_await task); }

}  // namespace

TEST_CASE("random trees of tasks end together, and the first exception is told") {
  log_to([](LogLevel, std::string_view) {});
  int thrown = 0;
  for (unsigned round = 0; round < 300; ++round) {
    CAPTURE(round);
    Model model;
    model.random.seed(round);
    auto body = [&](TaskGroup& group) -> Task<int> {
      for (int i = 0; i < 3; ++i) group.start(node(model, group, 3));
      static_cast<void>(co_await sleep_for(model.clock, 5ms, group.stop()));
      co_return model.begun;
    };
    std::string told;
    try {
      const int begun = model.clock.run(run_group(body));
      CHECK(begun >= 3);
    } catch (const std::runtime_error& error) {
      told = error.what();
      ++thrown;
    }
    CHECK(told == (model.thrown == kNever ? "" : to_text(model.thrown.time_since_epoch())));
    CHECK(model.alive == 0);
    CHECK(model.clock.sleeping() == 0);
  }
  log_to(nullptr);
  CHECK(thrown > 50);
  CHECK(thrown < 290);
}

TEST_CASE("the stop that a group was given, and its own, end its waits, and it starts no more") {
  for (const bool from_outside : {true, false}) {
    CAPTURE(from_outside);
    ManualScheduler clock;
    std::stop_source outside;
    int canceled = 0;
    auto wait = [&](std::stop_token stop) -> Task<> {
      const bool slept = co_await sleep_for(clock, 1h, std::move(stop));
      if (!slept) ++canceled;
    };
    auto body = [&](TaskGroup& group) -> Task<> {
      group.start(wait(group.stop()));
      static_cast<void>(co_await sleep_for(clock, 1s));
      if (from_outside) outside.request_stop();
      if (!from_outside) group.cancel();
      CHECK(group.stop().stop_requested());
      group.start(wait(std::stop_token()));
    };
    clock.run(run_group(body, outside.get_token()));
    CHECK(canceled == 1);
    CHECK(clock.now() == Time(1s));
  }
}

TEST_CASE("a group whose stop was requested before still runs its function") {
  std::stop_source stop;
  stop.request_stop();
  auto body = [](TaskGroup& group) -> Task<int> {
    co_return group.stop().stop_requested() ? 7 : 0;
  };
  CHECK(sync_wait(run_group(body, stop.get_token())) == 7);
}

TEST_CASE("a second exception of a group is logged") {
  std::string logged;
  log_to([&](LogLevel level, std::string_view line) {
    logged = std::string(to_string(level)) + ": " + std::string(line);
  });
  std::vector<std::coroutine_handle<>> waiting;
  auto fail = [&](const char* what) -> Task<> {
    const ByHand suspended{&waiting};
    co_await suspended;
    throw std::runtime_error(what);
  };
  auto body = [&](TaskGroup& group) -> Task<> {
    group.start(fail("one"));
    group.start(fail("two"));
    co_return;
  };
  const auto running = std::make_shared<detail::Running<void>>();
  detail::run_into(running, run_group(body));
  waiting.at(1).resume();
  CHECK_FALSE(running->done());
  waiting.at(0).resume();
  log_to(nullptr);
  REQUIRE(running->done());
  CHECK_THROWS_WITH_AS(running->take(), "two", std::runtime_error);
  CHECK(logged == "warning: httpretry: a task of a group threw after another one had thrown: one");
}

TEST_CASE("tasks of a group may end on any thread") {
  constexpr int kTasks = 50;
  for (const int bad : {-1, 17}) {
    CAPTURE(bad);
    std::vector<std::thread> threads;
    threads.reserve(kTasks);
    std::atomic<int> ended = 0;
    auto body = [&](TaskGroup& group) -> Task<> {
      for (int i = 0; i < kTasks; ++i) {
        // When one has thrown, no more are started.
        group.start(unit_of(one_task(threads, ended, i == bad)));
      }
      co_return;
    };
    auto all = run_group(body);
    if (bad < 0) {
      sync_wait(std::move(all));
      CHECK(ended == kTasks);
    } else {
      CHECK_THROWS_WITH_AS(sync_wait(std::move(all)), "thrown elsewhere", std::runtime_error);
    }
    CHECK(static_cast<std::size_t>(ended) == threads.size());
    for (auto& thread : threads) thread.join();
  }
}

TEST_CASE("destroying the task of a group destroys its tasks, and requests its stop") {
  const auto held = std::make_shared<int>(7);
  std::stop_token stop;
  {
    auto body = [&](TaskGroup& group) -> Task<> {
      stop = group.stop();
      group.start(unit_of(holding(held)));
      group.start(unit_of(holding(held)));
      co_await std::suspend_always();
    };
    const auto started = run_group(body);
    const auto awaiter = started.operator co_await();
    CHECK(awaiter.await_suspend(std::noop_coroutine()));
    CHECK(held.use_count() == 3);
    CHECK_FALSE(stop.stop_requested());
  }
  CHECK(held.use_count() == 1);
  CHECK(stop.stop_requested());
}
