#include "lib/extras/simulate/virtual_time.hpp"

#include "lib/extras/simulate/random.hpp"

#include <httpretry/flow/start.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::simulation;
using namespace std::chrono_literals;

namespace {

class Noted final : public Event {
 public:
  Noted(std::vector<int>& seen, int number) : seen_(seen), number_(number) {}
  void due() override { seen_.push_back(number_); }

 private:
  std::vector<int>& seen_;
  int number_;
};

}  // namespace

TEST_CASE("events are due by their times, and those of one time in the order of setting them") {
  VirtualTime clock;
  std::vector<int> seen;
  Noted a(seen, 1);
  Noted b(seen, 2);
  Noted c(seen, 3);
  Noted moved(seen, 4);
  clock.set(moved, Time(1ms));
  clock.set(a, Time(20ms));
  clock.set(b, Time(10ms));
  clock.set(c, Time(20ms));
  clock.set(moved, Time(20ms));
  CHECK(clock.step());
  CHECK(clock.now() == Time(10ms));
  while (clock.step()) {
  }
  CHECK(seen == std::vector{2, 1, 3, 4});
  CHECK(clock.now() == Time(20ms));
}

TEST_CASE("an event that is removed or destroyed is not due") {
  VirtualTime clock;
  std::vector<int> seen;
  Noted kept(seen, 1);
  Noted removed(seen, 2);
  {
    Noted destroyed(seen, 3);
    clock.set(destroyed, Time(1ms));
    clock.set(removed, Time(2ms));
    clock.set(kept, Time(3ms));
  }
  clock.remove(removed);
  clock.remove(removed);
  while (clock.step()) {
  }
  CHECK(seen == std::vector{1});
}

TEST_CASE("an event of the past is due now: the clock does not go back") {
  VirtualTime clock;
  std::vector<int> seen;
  Noted first(seen, 1);
  Noted late(seen, 2);
  clock.set(first, Time(5s));
  clock.step();
  clock.set(late, Time(1s));
  clock.step();
  CHECK(seen == std::vector{1, 2});
  CHECK(clock.now() == Time(5s));
}

TEST_CASE("the queue gives the same as a sorted map, whatever is set, moved and removed") {
  VirtualTime clock;
  RandomStream random(7, 1);
  std::vector<int> seen;
  std::deque<Noted> events;
  for (int i = 0; i < 300; ++i) events.emplace_back(seen, i);
  std::map<std::pair<Time, int>, int> expected;  // (time, order of setting) -> number
  std::vector<std::map<std::pair<Time, int>, int>::iterator> places(300, expected.end());
  const auto forget = [&](std::size_t i) {
    if (places[i] != expected.end()) expected.erase(places[i]);
    places[i] = expected.end();
  };
  for (int order = 0; order < 50'000; ++order) {
    const auto i = static_cast<std::size_t>(random.uniform() * 300);
    const auto kind = random.uniform();
    if (kind < 0.5) {
      forget(i);
      const auto when = clock.now() + Duration(static_cast<int>(random.uniform() * 40));
      clock.set(events[i], when);
      places[i] = expected.insert({{when, order}, static_cast<int>(i)}).first;
    } else if (kind < 0.65) {
      forget(i);
      clock.remove(events[i]);
    } else {
      seen.clear();
      REQUIRE(clock.step() == !expected.empty());
      if (expected.empty()) continue;
      const auto [key, number] = *expected.begin();
      REQUIRE(seen == std::vector{number});
      REQUIRE(clock.now() == key.first);
      forget(static_cast<std::size_t>(number));
    }
  }
}

TEST_CASE("a task sleeps in virtual time, and a stop ends its sleep at once") {
  VirtualTime clock;
  std::stop_source stop;
  std::vector<std::string> seen;
  const auto sleeper = [&](std::string name, Time until, bool then_stop) -> Task<int> {
    const bool slept = co_await clock.sleep_until(until, stop.get_token());
    seen.push_back(name + (slept ? " slept" : " stopped"));
    if (then_stop) stop.request_stop();
    co_return 0;
  };
  const auto ignore = [](const Result<int>& /*result*/) {};
  start(sleeper("hour", Time(1h), false), ignore);
  start(sleeper("first", Time(10s), true), ignore);
  start(sleeper("never", kNever, false), ignore);
  CHECK(seen.empty());
  while (clock.step()) {
  }
  CHECK(seen == std::vector<std::string>{"first slept", "never stopped", "hour stopped"});
  CHECK(clock.now() == Time(10s));
  start(sleeper("late", Time(1h), false), ignore);
  CHECK(seen.back() == "late stopped");
}

TEST_CASE("a wait that nothing can end is an error, not an endless loop") {
  VirtualTime clock;
  const std::atomic<bool> done = false;
  CHECK_THROWS_AS(clock.run_until(done), std::logic_error);
}
