#include <httpretry/flow/start.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Task<int> after(Scheduler& scheduler, Duration wait, int value) {
  const bool slept = co_await scheduler.sleep_until(scheduler.now() + wait, std::stop_token());
  co_return slept ? value : -1;
}

Task<> count_up(int& counter) {
  ++counter;
  co_return;
}

Task<Result<int>> failing() { co_return Error(Errc::Resolve, "no such host"); }

}  // namespace

TEST_CASE("a started task runs until it first waits, and tells its value at its end") {
  ManualScheduler scheduler;
  int told = 0;
  start(after(scheduler, 5s, 7), [&](Result<int> value) { told = *value; });
  CHECK(scheduler.sleeping() == 1);
  CHECK(told == 0);
  scheduler.advance(5s);
  CHECK(told == 7);
}

TEST_CASE("what is told of a started task is its value, its error, or what it threw") {
  int counter = 0;
  bool good = false;
  start(count_up(counter), [&](const Result<void>& result) { good = result.has_value(); });
  CHECK(good);
  CHECK(counter == 1);

  std::string told;
  start(throwing("no numbers left"), [&](const Result<int>& result) {
    told = std::string(to_string(result.error().code)) + ": " + result.error().message;
  });
  CHECK(told == "internal: the task threw: no numbers left");
  start(failing(), [&](const Result<int>& result) { told = result.error().message; });
  CHECK(told == "no such host");
}

TEST_CASE("what is to be told may be a type that can only be moved") {
  int told = 0;
  auto three = std::make_unique<int>(3);
  start(failing(), [&told, three = std::move(three)](const Result<int>&) { told = *three; });
  CHECK(told == 3);
}

TEST_CASE("a task that is started on a scheduler runs there, whichever thread starts it") {
  ManualScheduler scheduler;
  std::thread::id ran_on;
  int counter = 0;
  std::thread([&] {
    start(scheduler, count_up(counter),
          [&](const Result<void>&) { ran_on = std::this_thread::get_id(); });
  }).join();
  CHECK(counter == 0);
  scheduler.run();
  CHECK(counter == 1);
  CHECK(ran_on == std::this_thread::get_id());
}
