// How an Attempt keeps what it is told.
#include <httpretry/http/attempt.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

// What waits holds its attempts: an attempt must not grow with what can be asked of it. 16 bytes
// are for a hedge, whose facts are elsewhere.
static_assert(sizeof(void*) != 8 || sizeof(Attempt) <= 232);
static_assert(sizeof(Attempt::MaybeDuration) == sizeof(Duration));

TEST_CASE("an attempt keeps its exchange, with times that are exact to a ten millionth") {
  Exchange exchange;
  exchange.sent = Sent::Maybe;
  exchange.wire_sends = 3;
  exchange.stale_connection = true;
  exchange.body_sent = std::uint64_t{1} << 40;
  exchange.body_received = 7;
  exchange.timings.queued = 1us;
  exchange.timings.sent = 16'777'215us;
  exchange.timings.total = 100h + 1ms;
  Attempt attempt;
  attempt.set_exchange(exchange);
  CHECK(attempt.sent == Sent::Maybe);
  CHECK(attempt.wire_sends == 3);
  const auto kept = attempt.exchange();
  CHECK(kept.sent == Sent::Maybe);
  CHECK(kept.wire_sends == 3);
  CHECK(kept.stale_connection);
  CHECK_FALSE(kept.reused_connection);
  CHECK_FALSE(kept.refused);
  CHECK(kept.body_sent == exchange.body_sent);
  CHECK(kept.body_received == 7);
  CHECK(kept.timings.queued == 1us);
  CHECK(kept.timings.sent == 16'777'215us);
  CHECK(kept.timings.connected == 0s);
  const auto rounded = std::chrono::abs(kept.timings.total - exchange.timings.total);
  CHECK(rounded <= exchange.timings.total / 10'000'000);
}

TEST_CASE("what an attempt may lack is read as a std::optional") {
  Attempt attempt;
  CHECK_FALSE(attempt.wait);
  CHECK_FALSE(attempt.wait.has_value());
  CHECK(attempt.wait == std::nullopt);
  CHECK(attempt.wait.value_or(3s) == 3s);
  CHECK_THROWS_AS(static_cast<void>(attempt.wait.value()), std::bad_optional_access);
  attempt.wait = 2s;
  CHECK(attempt.wait);
  CHECK(attempt.wait == 2s);
  CHECK(attempt.wait.value() == 2s);
  CHECK(attempt.wait->count() == 2'000'000'000);
  const std::optional<Duration> copy = attempt.wait;
  CHECK(*copy == *attempt.wait);
  attempt.wait = std::optional<Duration>();
  CHECK_FALSE(attempt.wait);
  attempt.budget_left = 0;
  CHECK(attempt.budget_left == 0);
}
