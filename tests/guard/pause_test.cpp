#include "start.hpp"

#include "lib/core/guard/pause.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

namespace {
enum class End : std::uint8_t { Responded, Failed, Unknown };

// As many sends as may go out.
std::vector<std::uint32_t> send_all(Pause& pause, Time now = kStart) {
  const PausePolicy policy;
  std::vector<std::uint32_t> sends;
  while (pause.allows(policy, now)) sends.push_back(pause.enter(policy, now));
  return sends;
}

void leave(Pause& pause, std::uint32_t number, End how) {
  SendEnd end;
  end.responded = how == End::Responded;
  pause.leave(number, how == End::Unknown ? nullptr : &end);
}

std::size_t round(Pause& pause, End end, Time now = kStart) {
  const auto sends = send_all(pause, now);
  for (const auto number : sends) leave(pause, number, end);
  return sends.size();
}

}  // namespace

TEST_CASE("nothing goes out in a pause; then one, two, four and so on") {
  const PausePolicy policy;
  Pause pause;
  CHECK(pause.allows(policy, kStart));
  CHECK(pause.enter(policy, kStart) == 0);
  pause.begin(kStart + 7s);
  CHECK_FALSE(pause.allows(policy, kStart + 7s - 1ns));
  CHECK(pause.next_change(kStart) == kStart + 7s);
  const auto now = kStart + 7s;
  for (const std::size_t sends : {1U, 2U, 4U, 8U}) {
    CHECK(round(pause, End::Responded, now) == sends);
  }
  CHECK_FALSE(pause.idle(now));
  pause.end_ramp();
  CHECK(pause.enter(policy, now) == 0);
  CHECK(pause.idle(now));
}

TEST_CASE("a ramp that nobody waits for is there for the first send, for 5 s") {
  const PausePolicy policy;
  Pause pause;
  pause.begin(kStart + 1s);
  CHECK_FALSE(pause.ramp_used(kStart + 1s));
  CHECK_FALSE(pause.ramp_used(kStart + 6s - 1ns));
  CHECK(pause.ramp_used(kStart + 6s));
  CHECK(pause.enter(policy, kStart + 2s) != 0);
  CHECK(pause.ramp_used(kStart + 2s));
  pause.begin(kStart + 3s);
  CHECK_FALSE(pause.ramp_used(kStart + 3s));
  CHECK(pause.enter(policy, kStart + 3s) != 0);
  CHECK(pause.ramp_used(kStart + 3s));
  CHECK_FALSE(pause.ramp_used(kStart + 3s - 1ns));
}

TEST_CASE("a send that gets no response makes no room, and keeps its place for 5 s at most") {
  const PausePolicy policy;
  Pause pause;
  pause.begin(kStart);
  const auto first = pause.enter(policy, kStart);
  CHECK_FALSE(pause.allows(policy, kStart));
  leave(pause, first, End::Failed);
  CHECK(pause.allows(policy, kStart));
  const auto second = pause.enter(policy, kStart);
  CHECK_FALSE(pause.allows(policy, kStart + 5s - 1ns));
  CHECK(pause.next_change(kStart) == kStart + 5s);
  CHECK(pause.allows(policy, kStart + 5s));
  pause.enter(policy, kStart + 5s);
  leave(pause, second, End::Responded);  // it has lost its place
  CHECK_FALSE(pause.allows(policy, kStart + 5s));
}

TEST_CASE("where sends fail, half of them are tried, and then one more a round") {
  Pause pause;
  pause.begin(kStart);
  for (const std::size_t sends : {1U, 2U, 4U, 8U}) CHECK(round(pause, End::Responded) == sends);
  CHECK(round(pause, End::Failed) == 16);  // together they halve it once
  for (const std::size_t sends : {8U, 9U, 10U}) CHECK(round(pause, End::Responded) == sends);
  const auto before = send_all(pause);
  CHECK(before.size() == 11);
  leave(pause, before[0], End::Failed);
  CHECK(send_all(pause).empty());
  for (std::size_t i = 1; i < 7; ++i) leave(pause, before[i], End::Failed);
  leave(pause, before.back(), End::Failed);
  CHECK(send_all(pause).size() == 2);  // five may be under way, and three are
  pause.begin(kStart);
  for (const std::size_t sends : {1U, 2U, 4U}) CHECK(round(pause, End::Responded) == sends);
}

TEST_CASE("after a failure, as many responses as sends may be in flight let one more out") {
  Pause pause;
  pause.begin(kStart);
  for (const std::size_t sends : {1U, 2U, 4U}) CHECK(round(pause, End::Responded) == sends);
  CHECK(round(pause, End::Failed) == 8);
  for (const std::size_t width : {4U, 5U, 6U}) {
    const auto sends = send_all(pause);
    REQUIRE(sends.size() == width);
    for (std::size_t i = 0; i + 1 < width; ++i) leave(pause, sends[i], End::Responded);
    const auto more = send_all(pause);
    CHECK(more.size() == width - 1);  // beside the one in flight
    for (const auto number : more) leave(pause, number, End::Unknown);
    leave(pause, sends.back(), End::Responded);
  }
}

TEST_CASE("a single send that fails, or one that says nothing, changes no width") {
  Pause pause;
  pause.begin(kStart);
  CHECK(round(pause, End::Failed) == 1);
  for (const std::size_t sends : {1U, 2U, 4U}) CHECK(round(pause, End::Responded) == sends);
  CHECK(round(pause, End::Unknown) == 8);
  CHECK(round(pause, End::Unknown) == 8);
}

TEST_CASE("a new throttle begins the ramp anew, and never shortens the pause") {
  const PausePolicy policy;
  Pause pause;
  pause.begin(kStart);
  const auto first = pause.enter(policy, kStart);
  leave(pause, first, End::Responded);
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
