#include "lib/guard/pause.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {
constexpr Time kStart{1h};
}

TEST_CASE("nothing goes out in a pause; then one, two, four and so on") {
  const PausePolicy policy;
  Pause pause;
  CHECK(pause.allows(policy, kStart));
  CHECK(pause.enter(policy, kStart) == 0);
  pause.begin(kStart + 7s);
  CHECK_FALSE(pause.allows(policy, kStart + 7s - 1ns));
  CHECK(pause.next_change(kStart) == kStart + 7s);
  const auto now = kStart + 7s;
  for (const std::size_t round : {1U, 2U, 4U, 8U}) {
    CAPTURE(round);
    std::vector<std::uint32_t> sends;
    while (pause.allows(policy, now)) sends.push_back(pause.enter(policy, now));
    CHECK(sends.size() == round);
    for (const auto number : sends) pause.leave(number, true);
  }
  pause.end_ramp();
  CHECK(pause.enter(policy, now) == 0);
  CHECK(pause.idle(now));
}

TEST_CASE("a send that gets no response makes no room, and keeps its place for 5 s at most") {
  const PausePolicy policy;
  Pause pause;
  pause.begin(kStart);
  const auto first = pause.enter(policy, kStart);
  CHECK_FALSE(pause.allows(policy, kStart));
  pause.leave(first, false);
  CHECK(pause.allows(policy, kStart));
  const auto second = pause.enter(policy, kStart);
  CHECK_FALSE(pause.allows(policy, kStart + 5s - 1ns));
  CHECK(pause.next_change(kStart) == kStart + 5s);
  CHECK(pause.allows(policy, kStart + 5s));
  pause.enter(policy, kStart + 5s);
  pause.leave(second, true);  // it has lost its place
  CHECK_FALSE(pause.allows(policy, kStart + 5s));
}

TEST_CASE("a new throttle begins the ramp anew, and never shortens the pause") {
  const PausePolicy policy;
  Pause pause;
  pause.begin(kStart);
  const auto first = pause.enter(policy, kStart);
  pause.leave(first, true);
  pause.begin(kStart + 2s);
  pause.begin(kStart + 1s);
  CHECK(pause.until() == kStart + 2s);
  pause.enter(policy, kStart + 2s);
  CHECK_FALSE(pause.allows(policy, kStart + 2s));
}

TEST_CASE("resume: all lets everything go at once") {
  PausePolicy policy;
  policy.resume = PausePolicy::Resume::All;
  Pause pause;
  pause.begin(kStart + 1s);
  CHECK_FALSE(pause.allows(policy, kStart));
  for (int sends = 0; sends < 100; ++sends) {
    CHECK(pause.allows(policy, kStart + 1s));
    CHECK(pause.enter(policy, kStart + 1s) == 0);
  }
}
