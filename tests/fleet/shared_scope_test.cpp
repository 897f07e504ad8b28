// The state that a process keeps of shared limits. These are state machines without a clock, so
// each test chooses the times.
#include "lib/extras/fleet/shared_scope.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace httpretry;         // NOLINT
using namespace httpretry::fleet;  // NOLINT
using namespace std::chrono_literals;

TEST_CASE(
    "tokens are requested for the sends that wait, and ahead for as many as were used lately") {
  struct Row {
    RatePolicy rate;
    int used, left, waiting;
    Duration later;  // how long ago they were used
    std::int64_t wanted;
  };
  const auto fast = RatePolicy::per_second(100);  // gives 10 in the 100 ms that count
  const auto slow = RatePolicy::of_requests(1, 1h);
  const std::vector<Row> rows = {
      {fast, 0, 0, 0, 0ms, 0},
      {fast, 0, 0, 3, 0ms, 3},
      {fast, 0, 0, 10, 0ms, 10},
      {fast, 0, 0, 11, 0ms, 10},
      {fast, 4, 0, 0, 0ms, 4},
      {fast, 4, 0, 3, 0ms, 7},
      {fast, 4, 0, 7, 0ms, 10},
      {fast, 12, 0, 0, 0ms, 10},
      // It refills when half is used.
      {fast, 4, 1, 0, 0ms, 3},
      {fast, 4, 2, 0, 0ms, 2},
      {fast, 4, 3, 0, 0ms, 0},
      // The use counts in this and the next 100 ms.
      {fast, 4, 0, 0, 99ms, 4},
      {fast, 4, 0, 0, 100ms, 4},
      {fast, 4, 0, 0, 199ms, 4},
      {fast, 4, 0, 0, 200ms, 0},
      // A slow rate gives one at a time, and none ahead.
      {slow, 0, 0, 0, 0ms, 0},
      {slow, 0, 0, 1, 0ms, 1},
      {slow, 0, 0, 5, 0ms, 1},
      {slow, 1, 0, 0, 0ms, 0},
      {slow, 1, 0, 1, 0ms, 1},
      {slow, 0, 1, 1, 0ms, 0},
  };
  for (std::size_t index = 0; index < rows.size(); ++index) {
    CAPTURE(index);
    const auto& row = rows[index];
    const Time start(10s);
    TokensAhead tokens;
    if (row.used + row.left > 0) {
      tokens.query.start(start);
      tokens.on_reply({.count = row.used + row.left, .first = start}, start);
    }
    for (int count = 0; count < row.used; ++count) tokens.take(start);
    CHECK(tokens.count() == row.left);
    CHECK(tokens.wanted(row.rate, row.waiting, start + row.later) == row.wanted);
  }
}

TEST_CASE("tokens may be used one after the other, and are requested when the server said") {
  const auto slow = RatePolicy::of_requests(1, 1h);
  const Time start(10s);
  TokensAhead tokens;
  tokens.query.start(start);
  CHECK(tokens.wanted(slow, 1, start) == 0);  // the query has no reply yet
  tokens.on_reply({.count = 2, .first = start + 5ms, .each = 10ms}, start);
  CHECK(tokens.ready_at() == start + 5ms);
  tokens.take(start + 5ms);
  CHECK(tokens.ready_at() == start + 15ms);
  tokens.take(start + 15ms);
  CHECK_FALSE(tokens.has_some());

  tokens.query.start(start);
  tokens.on_reply({.ask_again = start + 50ms}, start);
  CHECK(tokens.ready_at() == start + 50ms);
  CHECK(tokens.wanted(slow, 1, start + 50ms - 1ns) == 0);
  CHECK(tokens.wanted(slow, 1, start + 50ms) == 1);
  tokens.forget_stale_reply(start + 1s - 1ns);
  CHECK(tokens.ready_at() == start + 50ms);
  tokens.forget_stale_reply(start + 1s);
  CHECK(tokens.ready_at() == Time());

  // After an error, this process decides alone for a second.
  tokens.query.start(start);
  tokens.on_reply({.away = true}, start);
  CHECK(tokens.wanted(slow, 1, start + 1s - 1ns) == 0);
  CHECK(tokens.wanted(slow, 1, start + 1s) == 1);
}

TEST_CASE("reserved tokens cover a send that lacks none of any rate, and can be exchanged") {
  using Amounts = ReservedTokens::Amounts;
  auto policy = RatePolicy::of_requests(60, 1min);
  CHECK_FALSE(reserves_per_send(policy));
  policy.further = {RatePolicy::of_cost(1'000, 1min)};
  CHECK(reserves_per_send(policy));
  CHECK(reserves_per_send(policy.further[0]));
  const Time start(10s);
  ReservedTokens reserved;
  CHECK(reserved.missing(policy, 30) == Amounts{1, 30});
  CHECK(reserved.start_query(policy, {2, 40}, /*gives_back=*/false, start) == Amounts{0, 0});
  CHECK_FALSE(reserved.has_some());
  reserved.on_reply({.ready_at = start + 5s}, start);
  CHECK(reserved.has_some());
  CHECK(reserved.amounts() == Amounts{2, 40});
  CHECK(reserved.ready_at() == start + 5s);
  CHECK(reserved.cover(policy, 40));
  CHECK_FALSE(reserved.cover(policy, 41));
  CHECK(reserved.missing(policy, 41) == Amounts{0, 1});
  reserved.take(policy, 30);
  CHECK(reserved.amounts() == Amounts{1, 10});
  CHECK(reserved.usable(policy, {3, 4}) == Amounts{1, 4});
  CHECK(reserved.usable(policy, {0, 40}) == Amounts{0, 10});

  // All may be used when the last ones may.
  CHECK(reserved.start_query(policy, {1, 5}, /*gives_back=*/false, start) == Amounts{0, 0});
  reserved.on_reply({.ready_at = start + 3s}, start);
  CHECK(reserved.amounts() == Amounts{2, 15});
  CHECK(reserved.ready_at() == start + 5s);
  // An exchanged entry keeps its time, or gets an earlier one.
  for (const auto ready_at : {start + 9s, start + 2s}) {
    const auto before = reserved.amounts();
    CHECK(reserved.start_query(policy, {1, 4}, /*gives_back=*/true, start) == before);
    CHECK_FALSE(reserved.has_some());
    reserved.on_reply({.ready_at = ready_at}, start);
    CHECK(reserved.amounts() == Amounts{1, 4});
    CHECK(reserved.ready_at() == std::min(ready_at, start + 5s));
  }
  // An error grants nothing.
  CHECK(reserved.start_query(policy, {7, 7}, /*gives_back=*/false, start) == Amounts{0, 0});
  reserved.on_reply({.away = true}, start);
  CHECK(reserved.amounts() == Amounts{1, 4});
}

TEST_CASE("slots are requested again after 20 ms, and those that are not wanted are given up") {
  const Time start(10s);
  SlotsHeld held;
  CHECK_FALSE(held.should_query(0, start));
  CHECK(held.should_query(1, start));
  held.start_query(3, start);
  CHECK_FALSE(held.should_query(3, start + 20ms));  // the query has no reply yet
  held.on_reply({.granted = 2, .contended = true}, start);
  CHECK(held.granted == 2);
  CHECK(held.contended);
  CHECK_FALSE(held.should_query(3, start + 20ms - 1ns));
  CHECK_FALSE(held.should_query(2, start + 20ms));
  CHECK(held.should_query(3, start + 20ms));
  held.start_query(1, start + 20ms);
  CHECK(held.granted == 1);
  held.on_reply({.granted = 5}, start + 20ms);
  CHECK(held.granted == 1);
  CHECK_FALSE(held.contended);
  // After an error, this process decides alone for a second.
  held.start_query(4, start + 1s);
  held.on_reply({.away = true}, start + 1s);
  CHECK(held.granted == 1);
  CHECK_FALSE(held.should_query(4, start + 2s - 1ns));
  CHECK(held.should_query(4, start + 2s));
}

TEST_CASE("a send rate lets as many sends out as were granted, and requests those that wait") {
  const Time start(10s);
  AdaptiveSends sends;
  CHECK(sends.take(start) == 0s);  // no rate is in force
  sends.on_attempt_ended(/*throttled=*/false);
  CHECK(sends.has_unsent_counts());
  CHECK_FALSE(sends.should_query(start));
  sends.on_attempt_ended(/*throttled=*/true);
  CHECK(sends.should_query(start));
  const auto counts = sends.start_query(start);
  CHECK(counts.ended == 2);
  CHECK(counts.throttled == 1);
  CHECK(counts.wanted == 0);
  CHECK_FALSE(sends.has_unsent_counts());

  sends.on_reply({.limited = true, .granted = 2}, start);
  CHECK_FALSE(sends.should_query(start));  // no send waits
  CHECK(sends.take(start) == 0s);
  CHECK(sends.take(start) == 0s);
  CHECK_FALSE(sends.should_query(start));
  CHECK(sends.take(start) == 2ms);
  CHECK(sends.should_query(start));
  CHECK(sends.start_query(start).wanted == 1);
  CHECK_FALSE(sends.should_query(start));  // the query has no reply yet
  sends.on_reply({.limited = true, .ask_again = start + 1s}, start);
  CHECK(sends.take(start) == 1s);
  CHECK(sends.take(start + 999ms) == 2ms);
  CHECK_FALSE(sends.should_query(start + 1s - 1ns));
  CHECK(sends.should_query(start + 1s));
  CHECK(sends.start_query(start + 1s).wanted == 2);
  // Sends that began to wait since then ask once more.
  CHECK(sends.take(start + 1s) == 2ms);
  sends.on_reply({.limited = false}, start + 1s);
  CHECK_FALSE(sends.should_query(start + 1h));
  CHECK(sends.take(start + 1s) == 0s);
}

namespace {

SendGrant grant_of(const CircuitVotes& votes, std::uint32_t probe = 0) {
  SendGrant grant;
  grant.votes = true;
  grant.generation = votes.generation();
  grant.probe = probe;
  return grant;
}

SendEnd end_of(bool failed, Duration took = {}) {
  SendEnd end;
  end.failed = failed;
  end.took = took;
  return end;
}

RedisState::CircuitView view_of(Circuit state, std::int64_t generation, Time until = {}) {
  RedisState::CircuitView view;
  view.state = state;
  view.generation = generation;
  view.until = until;
  return view;
}

BreakerPolicy five_failures() {
  BreakerPolicy policy;
  policy.failures = 5;
  policy.slow_after = 1s;
  policy.open_for = Backoff::exponential({.initial = 1s, .jitter = Backoff::Jitter::None});
  return policy;
}

}  // namespace

TEST_CASE("votes are counted until the next query, with the failures in a row at both ends") {
  const Time start(10s);
  const auto policy = five_failures();
  CircuitVotes votes;
  CHECK(votes.hold(start).by == QueuedBy::SharedState);
  CHECK(votes.hold(start).until == start + 5ms);
  CHECK_FALSE(votes.on_reply({}, start));
  CHECK(votes.hold(start).by == QueuedBy::Nothing);
  CHECK_FALSE(votes.has_votes());
  for (const bool failed : {true, true, false, true, true, true, true}) {
    CHECK_FALSE(votes.vote(policy, grant_of(votes), end_of(failed, failed ? 1s : 1s + 1ns)));
  }
  CHECK(votes.vote(policy, grant_of(votes), end_of(true)));  // the fifth in a row
  CHECK(votes.has_votes());
  CHECK(votes.sum_with_votes().all == 8);
  auto sent = votes.start_query(policy, /*wants_probe=*/false, 0.5, start);
  CHECK(sent.counts.all == 8);
  CHECK(sent.counts.good == 1);
  CHECK(sent.counts.slow == 1);
  CHECK(sent.leading == 2);
  CHECK(sent.trailing == 5);
  CHECK(sent.good_probes == 0);
  CHECK(sent.failed_probes == 0);
  CHECK_FALSE(sent.wants_probe);
  CHECK(sent.open_for == 1s);
  CHECK_FALSE(votes.has_votes());

  // Failures that other processes have reported before count in the row, until a success.
  auto view = view_of(Circuit::Closed, 0);
  view.openings = 2;
  view.failed_in_a_row = 3;
  votes.on_reply(view, start);
  CHECK_FALSE(votes.vote(policy, grant_of(votes), end_of(true)));
  CHECK(votes.vote(policy, grant_of(votes), end_of(true)));
  CHECK_FALSE(votes.vote(policy, grant_of(votes), end_of(false)));
  CHECK_FALSE(votes.vote(policy, grant_of(votes), end_of(true)));
  sent = votes.start_query(policy, /*wants_probe=*/false, 0.5, start);
  CHECK(sent.leading == 2);
  CHECK(sent.trailing == 1);
  CHECK(sent.open_for == 4s);  // of the third opening in a row
  // The server's own wish may be longer.
  auto end = end_of(true);
  end.server_delay = 1min;
  votes.vote(policy, grant_of(votes), end);
  CHECK(votes.start_query(policy, /*wants_probe=*/false, 0.5, start).open_for == 1min);
}

TEST_CASE("an open circuit holds sends until its end, and then only a probe may go out") {
  const Time start(10s);
  const auto policy = five_failures();
  CircuitVotes votes;
  const auto earlier = grant_of(votes);
  CHECK(votes.on_reply(view_of(Circuit::Open, 1, start + 1s), start));
  CHECK(votes.hold(start + 1s - 1ns).by == QueuedBy::Circuit);
  CHECK(votes.hold(start).until == start + 1s);
  CHECK(votes.hold(start + 1s).by == QueuedBy::SharedState);
  CHECK(votes.take_probe() == 0);
  // Sends of the time before it opened do not count, nor those that are no probes.
  CHECK_FALSE(votes.vote(policy, earlier, end_of(true)));
  CHECK_FALSE(votes.vote(policy, grant_of(votes), end_of(true)));
  CHECK_FALSE(votes.has_votes());

  // Another process has the probe.
  CHECK(votes.start_query(policy, /*wants_probe=*/true, 0.5, start).wants_probe);
  CHECK(votes.on_reply(view_of(Circuit::HalfOpen, 2), start + 1s));
  CHECK(votes.hold(start + 1s).by == QueuedBy::Circuit);
  CHECK(votes.hold(start + 1s).until == start + 1250ms);
  CHECK(votes.hold(start + 1250ms).by == QueuedBy::SharedState);
  // This process has it.
  votes.start_query(policy, /*wants_probe=*/true, 0.5, start + 2s);
  auto may_probe = view_of(Circuit::HalfOpen, 2);
  may_probe.probe = true;
  CHECK_FALSE(votes.on_reply(may_probe, start + 2s));
  CHECK(votes.hold(start + 2s).by == QueuedBy::Nothing);
  CHECK(votes.take_probe() == 1);
  CHECK(votes.take_probe() == 0);
  CHECK(votes.hold(start + 2s).by == QueuedBy::SharedState);
  // It did not go out.
  votes.give_back(grant_of(votes, /*probe=*/1));
  CHECK_FALSE(votes.vote(policy, grant_of(votes, /*probe=*/1), end_of(false)));
  CHECK(votes.take_probe() == 2);
  votes.give_back(grant_of(votes, /*probe=*/1));
  CHECK(votes.take_probe() == 0);

  CHECK_FALSE(votes.vote(policy, grant_of(votes, /*probe=*/1), end_of(false)));
  CHECK_FALSE(votes.has_votes());
  CHECK(votes.vote(policy, grant_of(votes, /*probe=*/2), end_of(false, 1s)));
  CHECK(votes.has_votes());
  CHECK(votes.vote(policy, grant_of(votes, /*probe=*/2), end_of(true)));
  CHECK(votes.vote(policy, grant_of(votes, /*probe=*/2), end_of(false, 1s + 1ns)));
  const auto sent = votes.start_query(policy, /*wants_probe=*/false, 0.5, start + 2s);
  CHECK(sent.generation == 2);
  CHECK(sent.good_probes == 1);
  CHECK(sent.failed_probes == 2);
  CHECK(sent.counts.all == 0);
  CHECK(votes.on_reply(view_of(Circuit::Closed, 3), start + 2s));
  CHECK(votes.hold(start + 2s).by == QueuedBy::Nothing);
}
