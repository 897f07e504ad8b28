#include "start.hpp"

#include "lib/core/guard/slots.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

TEST_CASE("a fixed limit") {
  ConcurrencyPolicy policy;
  policy.max = 10;
  Slots slots;
  int taken = 0;
  for (; slots.free(policy, true); ++taken) slots.take();
  CHECK(taken == 8);  // low priority
  for (; slots.free(policy, false); ++taken) slots.take();
  CHECK(taken == 10);
  slots.give_back();
  CHECK(slots.free(policy, false));
  CHECK_FALSE(slots.free(policy, true));

  policy.max = 1;
  Slots single;
  CHECK(single.free(policy, true));
  single.take();
  CHECK_FALSE(single.free(policy, true));
}

TEST_CASE("aimd: one more while it is used, a tenth less after a drop") {
  ConcurrencyPolicy policy;
  policy.kind = ConcurrencyPolicy::Kind::Aimd;
  policy.max = 200;
  for (const int least : {20, 1}) {
    policy.min = least;
    std::vector<int> limits;
    int limit = 20;
    for (int sends = 0; sends < 9; ++sends) {
      limit = next_limit(policy, limit, sends >= 5, limit);
      limits.push_back(limit);
    }
    CHECK(limits == (least == 20 ? std::vector{21, 22, 23, 24, 25, 22, 20, 20, 20}
                                 : std::vector{21, 22, 23, 24, 25, 22, 19, 17, 15}));
  }
  CHECK(next_limit(policy, 20, false, 9) == 20);
  CHECK(next_limit(policy, 20, false, 10) == 21);
  CHECK(next_limit(policy, 200, false, 200) == 200);
}

TEST_CASE("aimd: looks once in ten sends or a second") {
  ConcurrencyPolicy policy;
  policy.kind = ConcurrencyPolicy::Kind::Aimd;
  Slots slots;
  for (int used = 0; used < 20; ++used) slots.take();
  for (int sends = 0; sends < 9; ++sends) slots.adapt(policy, sends == 3, kStart);
  CHECK(slots.limit(policy) == 20);
  slots.adapt(policy, false, kStart);
  CHECK(slots.limit(policy) == 18);
  slots.adapt(policy, false, kStart);
  slots.adapt(policy, false, kStart + 1s);
  CHECK(slots.limit(policy) == 19);
}

// Idle slots may be dropped, because new ones are the same.
TEST_CASE("slots are idle if none is used and the limit is the initial one") {
  ConcurrencyPolicy policy;
  policy.kind = ConcurrencyPolicy::Kind::Aimd;
  Slots slots;
  CHECK(slots.idle(kStart));
  slots.take();
  CHECK_FALSE(slots.idle(kStart));
  slots.give_back();
  CHECK(slots.idle(kStart));
  for (int sends = 0; sends < 10; ++sends) slots.adapt(policy, /*dropped=*/true, kStart);
  CHECK(slots.limit(policy) == 18);
  CHECK_FALSE(slots.idle(kStart));
  slots.reset_limit();
  CHECK(slots.limit(policy) == 20);
  CHECK(slots.idle(kStart));
}
