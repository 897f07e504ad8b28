// What an Attempt keeps of its exchange, and a History of its attempts.
#include <httpretry/http/attempt.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

// Attempts are moved when a history grows.
static_assert(std::is_nothrow_move_constructible_v<Attempt>);

TEST_CASE("an attempt keeps its exchange, without the peer") {
  Exchange exchange;
  exchange.sent = Sent::Maybe;
  exchange.wire_sends = 3;
  exchange.stale_connection = true;
  exchange.body_sent = std::uint64_t{1} << 40;
  exchange.body_received = 7;
  exchange.peer.port = 443;
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
  CHECK(kept.peer.port == 0);
  CHECK(kept.timings.total == exchange.timings.total);
}

TEST_CASE("the last attempt of a call is the last one that lost no race") {
  History history;
  CHECK(history.last() == nullptr);
  history.attempts.resize(3);
  CHECK(history.last() == &history.attempts[2]);
  history.attempts[2].race = Race::Lost;
  CHECK(history.last() == &history.attempts[1]);
  history.attempts[1].race = Race::Won;
  CHECK(history.last() == &history.attempts[1]);
  for (auto& attempt : history.attempts) attempt.race = Race::Lost;
  CHECK(history.last() == nullptr);
}

TEST_CASE("an attempt polled the URL whose range of attempts has its number") {
  History history;
  history.polled.resize(2);
  history.polled[0].first_attempt = 2;
  history.polled[0].last_attempt = 4;
  history.polled[1].first_attempt = history.polled[1].last_attempt = 6;
  const std::vector<const PolledUrl*> expected{nullptr,
                                               &history.polled[0],
                                               &history.polled[0],
                                               &history.polled[0],
                                               nullptr,
                                               &history.polled[1],
                                               nullptr};
  Attempt attempt;
  CHECK(attempt.number == 1);
  for (const auto* const polled : expected) {
    CAPTURE(attempt.number);
    CHECK(history.polled_by(attempt) == polled);
    ++attempt.number;
  }
}

TEST_CASE("copies of a history share nothing") {
  History history;
  CHECK(history.polled.empty());
  history.polled.emplace_back().url = "https://x.test/1";
  PolledUrl second;
  second.url = "https://x.test/2";
  history.polled.push_back(second);
  Hedge hedge;
  hedge.of = 7;
  CHECK(history.attempts.emplace_back().hedge == nullptr);
  history.attempts.back().hedge = std::make_shared<const Hedge>(hedge);
  CHECK_FALSE(history.retry_at);
  history.retry_at = WallTime(5s);

  const History copy = history;
  history.polled.back().url = "changed";
  history.attempts.back().hedge = nullptr;
  history.retry_at = std::nullopt;
  REQUIRE(copy.polled.size() == 2);
  CHECK(copy.polled.front().url == "https://x.test/1");
  CHECK(copy.polled[1].url == "https://x.test/2");
  REQUIRE(copy.attempts[0].hedge);
  CHECK(copy.attempts[0].hedge->of == 7);
  CHECK(copy.retry_at == WallTime(5s));
}
