#include "awaiters.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <thread>

using namespace httpretry;

namespace {

Task<int> number(int value) { co_return value; }

Task<int> sum_of(int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += co_await number(1);
  co_return sum;
}

Task<Result<int>> throwing_result() {
  throw std::runtime_error("as told");
  co_return 0;
}

Task<std::thread::id> id_of_another(std::vector<std::thread>& threads) {
  const OnAnotherThread hop{&threads};
  co_await hop;
  co_return std::this_thread::get_id();
}

}  // namespace

TEST_CASE("a task does not start before it is awaited") {
  bool started = false;
  const auto start = [&]() -> Task<int> {
    started = true;
    co_return 1;
  };
  auto task = start();
  CHECK_FALSE(started);
  CHECK(sync_wait(std::move(task)) == 1);
  CHECK(started);
}

TEST_CASE("a million tasks that complete at once do not deepen the stack") {
  CHECK(sync_wait(sum_of(1'000'000)) == 1'000'000);
}

TEST_CASE("an exception reaches the awaiter") {
  CHECK_THROWS_WITH_AS(sync_wait(throwing("as told")), "as told", std::runtime_error);
}

TEST_CASE("an exception in a task with a thrower is an error that names the thrower") {
  auto task = throwing_result();
  task.set_thrower("grumpy");
  const auto result = sync_wait(std::move(task));
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::Internal);
  CHECK(result.error().message == "middleware \"grumpy\" threw: as told");
}

TEST_CASE("a task continues on the thread that resumes it, and so does its awaiter") {
  std::vector<std::thread> threads;
  const auto id = sync_wait(id_of_another(threads));
  CHECK(id == threads.front().get_id());
  CHECK(id != std::this_thread::get_id());
  threads.front().join();
}

TEST_CASE("destroying a task destroys what its frame holds, started or not") {
  auto held = std::make_shared<int>(7);
  { auto never_started = holding(held); }
  CHECK(held.use_count() == 1);
  {
    auto suspended = holding(held);
    const auto awaiter = suspended.operator co_await();
    CHECK(awaiter.await_suspend(std::noop_coroutine()));
    CHECK(held.use_count() == 2);
  }
  CHECK(held.use_count() == 1);
}
