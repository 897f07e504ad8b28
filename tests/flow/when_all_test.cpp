#include "awaiters.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <thread>

using namespace httpretry;

namespace {

Task<int> number(int value) { co_return value; }

Task<int> elsewhere(std::vector<std::thread>& threads, int value) {
  const OnAnotherThread hop{&threads};
  co_await hop;
  co_return value;
}

Task<int> by_hand(std::vector<std::coroutine_handle<>>& waiting, int value) {
  const ByHand suspended{&waiting};
  co_await suspended;
  co_return value;
}

}  // namespace

TEST_CASE("the values of all tasks come in the order of the tasks") {
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back(number(i));
  CHECK(sync_wait(when_all(std::move(tasks))) == std::vector{0, 1, 2, 3, 4});
  CHECK(sync_wait(when_all(std::vector<Task<int>>())).empty());
}

TEST_CASE("all tasks run at once, and may end on any thread") {
  constexpr int kTasks = 50;
  std::vector<std::thread> threads;
  threads.reserve(kTasks);
  std::vector<Task<int>> tasks;
  std::vector<int> wanted;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(elsewhere(threads, i));
    wanted.push_back(i);
  }
  CHECK(sync_wait(when_all(std::move(tasks))) == wanted);
  CHECK(threads.size() == kTasks);
  for (auto& thread : threads) thread.join();
}

TEST_CASE("tasks may end in any order, and only the last one resumes the awaiter") {
  for (const auto& order : {std::vector{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}}) {
    CAPTURE(order);
    std::vector<std::coroutine_handle<>> waiting;
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 3; ++i) tasks.push_back(by_hand(waiting, i));
    const auto running = std::make_shared<detail::Running<std::vector<int>>>();
    detail::run_into(running, when_all(std::move(tasks)));
    REQUIRE(waiting.size() == 3);
    for (const int next : order) {
      CHECK_FALSE(running->done());
      waiting[static_cast<std::size_t>(next)].resume();
    }
    REQUIRE(running->done());
    CHECK(running->take() == std::vector{0, 1, 2});
  }
}

TEST_CASE("the exception of the first task that throws is rethrown when all are done") {
  std::vector<std::thread> threads;
  threads.reserve(1);
  std::vector<Task<int>> tasks;
  tasks.push_back(elsewhere(threads, 1));
  tasks.push_back(throwing("second"));
  tasks.push_back(throwing("third"));
  CHECK_THROWS_WITH_AS(sync_wait(when_all(std::move(tasks))), "second", std::runtime_error);
  threads.front().join();
}

TEST_CASE("destroying when_all destroys its tasks, started or not") {
  const auto held = std::make_shared<int>(7);
  const auto two = [&] {
    std::vector<Task<int>> tasks;
    tasks.push_back(holding(held));
    tasks.push_back(holding(held));
    return when_all(std::move(tasks));
  };
  { const auto never_started = two(); }
  CHECK(held.use_count() == 1);
  {
    const auto started = two();
    const auto awaiter = started.operator co_await();
    CHECK(awaiter.await_suspend(std::noop_coroutine()));
    CHECK(held.use_count() == 3);
  }
  CHECK(held.use_count() == 1);
}
