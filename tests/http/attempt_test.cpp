// How an Attempt keeps what it is told.
#include <httpretry/http/attempt.hpp>

#include <doctest/doctest.h>

#include <array>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

// What waits holds its attempts: an attempt must not grow with what can be asked of it. 8 bytes
// are for a hedge, whose facts are elsewhere.
static_assert(sizeof(void*) != 8 || sizeof(Attempt) <= 184);
static_assert(sizeof(void*) != 8 || sizeof(History) <= 88);
static_assert(sizeof(Attempt::MaybeDuration) == sizeof(Duration));
// They are moved where a history grows.
static_assert(std::is_nothrow_move_constructible_v<Attempt>);

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

TEST_CASE("the texts of an attempt are read as strings, whatever their length") {
  for (const std::size_t size :
       std::vector<std::size_t>{0, 1, 13, 14, 15, 16, 40, 254, 255, 256, 5000}) {
    CAPTURE(size);
    const std::string text(size, 'x');
    Attempt attempt;
    attempt.rule = text;
    const Attempt copy = attempt;
    Attempt moved = std::move(attempt);
    for (const auto* each : std::array<const Attempt*, 2>{&copy, &moved}) {
      CHECK(each->rule == text);
      CHECK(each->rule.size() == size);
      CHECK(each->rule.empty() == (size == 0));
      CHECK(each->rule.c_str() == text);
      const std::string read = each->rule;
      const std::string_view view = each->rule;
      CHECK(read == view);
      CHECK("(" + each->rule + ")" == "(" + text + ")");
      CHECK(std::string("(").append(each->rule) == "(" + text);
      std::ostringstream out;
      out << each->rule;
      CHECK(out.str() == text);
    }
    moved.rule = copy.rule;
    moved.rule = std::as_const(moved).rule;  // of itself
    CHECK(moved.rule == copy.rule);
    moved.rule += "yz";
    CHECK(moved.rule == text + "yz");
    CHECK(copy.rule == text);
    moved.rule = "other";
    CHECK(moved.rule == "other");
    CHECK(moved.rule.find("he") == 2);
    CHECK(moved.rule.substr(2, 2) == "he");
  }
}

TEST_CASE("the source of a server delay is read as a std::string_view") {
  Attempt attempt;
  CHECK(attempt.server_delay_source.empty());
  CHECK(attempt.server_delay_source == "");
  attempt.server_delay_source = "retry-after";
  CHECK(attempt.server_delay_source == "retry-after");
  CHECK(attempt.server_delay_source.size() == 11);
  const std::string_view view = attempt.server_delay_source;
  CHECK(std::string(attempt.server_delay_source) == view);
}

TEST_CASE("copies of a history share nothing") {
  History history;
  CHECK(history.polled.empty());
  CHECK(history.polled.begin() == history.polled.end());
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
  CHECK(copy.attempts[0].hedge.get() == &*copy.attempts[0].hedge);
  CHECK(copy.retry_at == WallTime(5s));
}
