#include "lib/extras/batch/lanes.hpp"
#include "lib/extras/batch/pace.hpp"
#include "lib/extras/batch/send_limit.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

namespace {

const Time kNow{1h};

Job job(std::uint64_t number, const std::string& host, Priority priority = Priority::Normal) {
  Job made;
  made.number = number;
  made.host = host;
  made.priority = priority;
  return made;
}

std::string order_of(Lanes& lanes, Time now = kNow) {
  std::string order;
  while (const auto next = lanes.start(now)) order += std::to_string(next->number) + " ";
  return order;
}

}  // namespace

TEST_CASE("hosts take turns, and each keeps its order") {
  Lanes lanes(100);
  for (std::uint64_t i = 1; i <= 4; ++i) lanes.add(job(i, "a"));
  lanes.add(job(10, "b"));
  lanes.add(job(11, "b"));
  lanes.add(job(20, "c"));
  CHECK(order_of(lanes) == "1 10 20 2 11 3 4 ");
}

TEST_CASE("a job of high priority is before those of all hosts, one of low priority after them") {
  Lanes lanes(100);
  lanes.add(job(1, "a", Priority::Low));
  lanes.add(job(2, "a"));
  lanes.add(job(3, "b", Priority::High));
  lanes.add(job(4, "b"));
  CHECK(order_of(lanes) == "3 2 4 1 ");
}

TEST_CASE("a host that is held starts nothing and gives its jobs back, and then starts all") {
  Lanes lanes(100);
  for (std::uint64_t i = 1; i <= 3; ++i) lanes.add(job(i, "a"));
  lanes.add(job(10, "b"));
  CHECK(lanes.start(kNow)->number == 1);
  CHECK(lanes.hold("a", kNow + 1min).size() == 2);
  CHECK_FALSE(lanes.wants("a", kNow));
  CHECK(lanes.next_end_of_hold(kNow) == kNow + 1min);
  CHECK(order_of(lanes) == "10 ");
  CHECK(lanes.wants("a", kNow + 1min));
  for (std::uint64_t i = 2; i <= 5; ++i) lanes.add(job(i, "a"));
  // guards() has the ramp.
  CHECK(order_of(lanes, kNow + 1min) == "2 3 4 5 ");
}

TEST_CASE("a host refuses all calls when so many in a row were refused, and not before") {
  Lanes lanes(100);
  lanes.add(job(1, "a"));
  for (std::size_t i = 1; i < Lane::kMostKept; ++i) CHECK_FALSE(lanes.refuses_all("a", true));
  CHECK_FALSE(lanes.refuses_all("a", false));
  for (std::size_t i = 1; i < Lane::kMostKept; ++i) CHECK_FALSE(lanes.refuses_all("a", true));
  CHECK(lanes.refuses_all("a", true));
  lanes.hold("a", kNow + 1min);
  CHECK_FALSE(lanes.refuses_all("a", true));
}

TEST_CASE("a host whose calls our own limits keep from the wire starts no more") {
  Lanes lanes(100);
  for (std::uint64_t i = 1; i <= 3; ++i) lanes.add(job(i, "a"));
  lanes.add(job(10, "b"));
  lanes.set_kept({{"a", Lane::kMostKept}});
  CHECK(lanes.queued() == 4);
  CHECK(lanes.ready(kNow) == 1);
  CHECK(order_of(lanes) == "10 ");
  lanes.set_kept({});
  CHECK(order_of(lanes) == "1 2 3 ");
}

TEST_CASE("a shorter hold does not end a longer one") {
  Lanes lanes(100);
  lanes.hold("a", kNow + 10min);
  lanes.hold("a", kNow + 1min);
  CHECK_FALSE(lanes.wants("a", kNow + 5min));
}

TEST_CASE("of one host only so many jobs are wanted, and of thousands of hosts they are forgotten" *
          doctest::test_suite("large")) {
  Lanes lanes(2);
  lanes.add(job(1, "a"));
  CHECK(lanes.wants("a", kNow));
  lanes.add(job(2, "a"));
  CHECK_FALSE(lanes.wants("a", kNow));
  order_of(lanes);
  lanes.note_job_ended("a");
  lanes.note_job_ended("a");
  for (std::uint64_t i = 0; i < 5000; ++i) lanes.add(job(i, std::to_string(i)));
  CHECK_FALSE(lanes.wants("new", kNow));
  for (int i = 0; i < 5000; ++i) lanes.note_job_ended(lanes.start(kNow)->host);
  lanes.forget_idle(kNow);
  CHECK(lanes.wants("new", kNow));
}

TEST_CASE("thousands of hosts that are held do not keep others from being wanted") {
  Lanes lanes(2);
  for (int i = 0; i < 5000; ++i) lanes.hold(std::to_string(i), kNow + 1h);
  lanes.forget_idle(kNow);
  CHECK(lanes.wants("new", kNow));
  CHECK_FALSE(lanes.wants("0", kNow));
  lanes.forget_idle(kNow + 1h);
  CHECK(lanes.wants("0", kNow + 1h));
}

TEST_CASE("a host is wanted until it has as many queued jobs as one host may have") {
  Lanes lanes(2);
  lanes.add(job(1, "a"));
  CHECK(lanes.wants("a", kNow));
  lanes.add(job(2, "a", Priority::High));
  CHECK_FALSE(lanes.wants("a", kNow));
  CHECK(lanes.wants("b", kNow));
  CHECK(lanes.start(kNow)->number == 2);
  CHECK(lanes.wants("a", kNow));
}

TEST_CASE("4096 hosts have queues at once, and those without jobs make room for others") {
  constexpr std::uint64_t kMost = 4096;
  Lanes lanes(2);
  for (std::uint64_t i = 1; i < kMost; ++i) lanes.add(job(i, std::to_string(i)));
  CHECK(lanes.wants("new", kNow));
  lanes.add(job(kMost, std::to_string(kMost)));
  CHECK_FALSE(lanes.wants("new", kNow));
  CHECK(lanes.wants("1", kNow));
  // A host with a queued job, a running one, or an outage is kept.
  lanes.forget_idle(kNow);
  CHECK_FALSE(lanes.wants("new", kNow));
  CHECK(lanes.start(kNow)->host == "1");
  lanes.forget_idle(kNow);
  CHECK_FALSE(lanes.wants("new", kNow));
  lanes.note_job_ended("1");
  lanes.set_blocked({"1"});
  lanes.forget_idle(kNow);
  CHECK_FALSE(lanes.wants("new", kNow));
  lanes.set_blocked({});
  CHECK_FALSE(lanes.wants("new", kNow));
  lanes.forget_idle(kNow);
  CHECK(lanes.wants("new", kNow));
  CHECK(lanes.queued() == kMost - 1);
  CHECK(lanes.start(kNow)->host == "2");
}

TEST_CASE("each host that is held leaves room for one more") {
  constexpr int kMost = 4096;
  constexpr int kHeld = 100;
  Lanes lanes(2);
  for (int i = 0; i < kHeld; ++i) lanes.hold("held " + std::to_string(i), kNow + 1h);
  for (int i = 1; i < kMost; ++i) lanes.add(job(1, std::to_string(i)));
  CHECK_FALSE(lanes.wants("new", kNow));
  lanes.forget_idle(kNow);
  CHECK(lanes.wants("new", kNow));
  lanes.add(job(1, "new"));
  CHECK_FALSE(lanes.wants("newer", kNow));
  lanes.forget_idle(kNow + 1h);
  CHECK_FALSE(lanes.wants("newer", kNow + 1h));
  CHECK(lanes.held(kNow).empty());
}

TEST_CASE("the hosts that are held are listed, the longest hold first") {
  Lanes lanes(2);
  CHECK_FALSE(lanes.next_end_of_hold(kNow).has_value());
  for (const auto* host : {"c", "b", "a"}) lanes.hold(host, kNow + (*host == 'b' ? 10min : 1min));
  const auto hosts_held = [&lanes](Time now) {
    std::string hosts;
    for (const auto* lane : lanes.held(now)) hosts += lane->host;
    return hosts;
  };
  CHECK(hosts_held(kNow) == "bac");
  CHECK(lanes.next_end_of_hold(kNow) == kNow + 1min);
  CHECK(hosts_held(kNow + 1min) == "b");
  CHECK(lanes.next_end_of_hold(kNow + 1min) == kNow + 10min);
  CHECK(hosts_held(kNow + 10min).empty());
  CHECK_FALSE(lanes.next_end_of_hold(kNow + 10min).has_value());
}

TEST_CASE("a host with an outage starts nothing until it is no longer blocked") {
  Lanes lanes(100);
  for (std::uint64_t i = 1; i <= 2; ++i) lanes.add(job(i, "a"));
  lanes.add(job(10, "b"));
  lanes.set_blocked({"a"});
  CHECK(lanes.ready(kNow) == 1);
  CHECK(lanes.wants("a", kNow));
  CHECK(order_of(lanes) == "10 ");
  lanes.set_blocked({"b"});
  CHECK(lanes.ready(kNow) == 2);
  CHECK(lanes.take_all().size() == 2);
  CHECK(lanes.queued() == 0);
  CHECK(order_of(lanes).empty());
}

TEST_CASE("a rate allows its burst, then one send after the other") {
  RatePolicy policy;
  policy.requests = 10;
  policy.burst = 3;
  SendLimit limit(policy);
  for (int i = 0; i < 3; ++i) CHECK(limit.reserve(kNow) == kNow);
  for (int i = 1; i <= 5; ++i) {
    CHECK(limit.ready_after(0, kNow) == kNow + i * 100ms);
    CHECK(limit.ready_after(2, kNow) == kNow + (i + 2) * 100ms);
    CHECK(limit.reserve(kNow) == kNow + i * 100ms);
  }
  // After a quiet time there is no more than a burst.
  const auto later = kNow + 1h;
  CHECK(limit.ready_after(2, later) == later);
  CHECK(limit.ready_after(3, later) == later + 100ms);
  for (int i = 0; i < 3; ++i) CHECK(limit.reserve(later) == later);
  CHECK(limit.reserve(later) == later + 100ms);
}

TEST_CASE("no second has more sends than the rate and a burst") {
  RatePolicy policy;
  policy.requests = 100;
  policy.burst = 10;
  SendLimit limit(policy);
  std::vector<Time> sends;
  Time now = kNow;
  for (int i = 0; i < 2000; ++i) {
    now += std::chrono::milliseconds(i % 7);
    sends.push_back(limit.reserve(now));
  }
  for (std::size_t i = 0; i + 110 < sends.size(); ++i) CHECK(sends[i + 110] - sends[i] >= 1s);
}

TEST_CASE("the pace is that of the last seconds, and the median that of the last calls") {
  Pace pace(kNow);
  CHECK(pace.per_second(kNow) == 0);
  CHECK_FALSE(pace.median().has_value());
  for (int i = 1; i <= 1000; ++i) pace.ended(kNow + i * 10ms, i % 2 == 0 ? 10ms : 30ms);
  CHECK(pace.count() == 1000);
  CHECK(pace.per_second(kNow + 10s) == doctest::Approx(100));
  const auto median = *pace.median();
  CHECK((median == 10ms || median == 30ms));
  for (int i = 1; i <= 40; ++i) pace.ended(kNow + 10s + i * 1s, 5ms);
  CHECK(pace.per_second(kNow + 50s) == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("the pace counts from a mark that is older than ten seconds") {
  Pace pace(kNow);
  for (int i = 0; i < 1000; ++i) pace.ended(kNow + 500ms, 1ms);
  CHECK(pace.per_second(kNow + 500ms) == doctest::Approx(2000));
  for (int i = 1; i <= 11; ++i) pace.ended(kNow + i * 1s, 1ms);
  CHECK(pace.per_second(kNow + 11s) == doctest::Approx(1011 / 11.0));
  pace.ended(kNow + 12s, 1ms);
  CHECK(pace.per_second(kNow + 12s) == doctest::Approx(1));
  // Only the mark of second 12 remains of the older ones.
  pace.ended(kNow + 25s, 1ms);
  CHECK(pace.per_second(kNow + 25s) == doctest::Approx(1 / 13.0));
}

TEST_CASE("the median is that of the last 511 calls") {
  Pace pace(kNow);
  pace.ended(kNow, 10ms);
  CHECK(pace.median() == 10ms);
  pace.ended(kNow, 30ms);
  CHECK(pace.median() == 30ms);
  for (int i = 0; i < 511; ++i) pace.ended(kNow, 30ms);
  for (int i = 0; i < 255; ++i) pace.ended(kNow, 10ms);
  CHECK(pace.median() == 30ms);
  pace.ended(kNow, 10ms);
  CHECK(pace.median() == 10ms);
}
