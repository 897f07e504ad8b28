#include "lib/extras/batch/parallel_limit.hpp"

#include <doctest/doctest.h>

using namespace httpretry;         // NOLINT
using namespace httpretry::batch;  // NOLINT
using namespace std::chrono_literals;

TEST_CASE("after a shortage a run has as many calls on the wire as had what they needed") {
  ParallelLimit limit(64, 60s);
  CHECK(limit.at(Time(1s)) == 64);
  CHECK_FALSE(limit.has_new_shortage());
  limit.lacked(Time(1s));
  CHECK(limit.has_new_shortage());
  CHECK(limit.send_fewer(3, Time(2s)));
  CHECK_FALSE(limit.has_new_shortage());
  CHECK(limit.at(Time(2s)) == 3);

  // Ten rounds of three calls later there may be one more, and after ten of four another one.
  for (int i = 0; i < 29; ++i) limit.ended(Time(3s));
  CHECK(limit.at(Time(3s)) == 3);
  limit.ended(Time(3s));
  CHECK(limit.at(Time(3s)) == 4);
  for (int i = 0; i < 39; ++i) limit.ended(Time(4s));
  CHECK(limit.at(Time(4s)) == 4);
  limit.ended(Time(4s));
  CHECK(limit.at(Time(4s)) == 5);

  // A shortage begins the count anew.
  for (int i = 0; i < 49; ++i) limit.ended(Time(5s));
  limit.lacked(Time(5s));
  CHECK(limit.send_fewer(5, Time(6s)));
  for (int i = 0; i < 49; ++i) limit.ended(Time(7s));
  CHECK(limit.at(Time(7s)) == 5);
  limit.ended(Time(7s));
  CHECK(limit.at(Time(7s)) == 6);
}

TEST_CASE("the limit never grows beyond that of the options") {
  ParallelLimit limit(2, 60s);
  for (int i = 0; i < 1000; ++i) limit.ended(Time(1s));
  CHECK(limit.at(Time(1s)) == 2);
}

TEST_CASE("without another call on the wire a run waits, and gives up in the end") {
  ParallelLimit limit(8, 1s);
  limit.lacked(Time(10s));
  CHECK(limit.send_fewer(0, Time(10s)));
  CHECK(limit.at(Time(10s)) == 0);
  CHECK(limit.again_at() == Time(10s + 200ms));
  CHECK(limit.at(limit.again_at()) == 1);

  limit.lacked(Time(10s + 990ms));
  CHECK(limit.send_fewer(0, Time(10s + 999ms)));
  limit.lacked(Time(11s));
  CHECK_FALSE(limit.send_fewer(0, Time(11s)));
}

TEST_CASE("a call that ended well begins the time of a shortage anew") {
  ParallelLimit limit(8, 1s);
  limit.lacked(Time(10s));
  CHECK(limit.send_fewer(0, Time(10s)));
  limit.ended(Time(10s + 500ms));
  limit.lacked(Time(10s + 600ms));
  CHECK(limit.send_fewer(0, Time(11s + 200ms)));
}

TEST_CASE("a call that began before the last good end shows nothing lasting") {
  ParallelLimit limit(8, 1s);
  limit.ended(Time(10s));
  limit.lacked(Time(9s));
  CHECK(limit.send_fewer(0, Time(11s)));
  CHECK(limit.at(Time(11s)) == 1);
}
