#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/retry/budget.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

RetryPolicy adaptive_policy() {
  auto policy = steady_policy();
  policy.adaptive = true;
  policy.max_attempts = 1;
  return policy;
}

// A server that throttles every call of the first second, and none after it.
void serve(Conversation& talk) {
  talk.network->say([&clock = *talk.clock](const Request&, int) -> Outcome {
    return Response(clock.now() < Time(1s) ? 429 : 200);
  });
}

void send_many(Client& client, int count) {
  for (int i = 0; i < count; ++i) {
    client.send_then(Request::get("http://x/"), [](const Outcome&) {});
  }
}

}  // namespace

TEST_CASE("until the server throttles, sends are not held back") {
  Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({retry(adaptive_policy())});
  send_many(client, 1000);
  talk.clock->run();
  CHECK(talk.sends() == 1000);
}

TEST_CASE("after a throttle, calls that wait together go one by one, and all of them go") {
  Conversation talk;
  serve(talk);
  auto client = talk.client({retry(adaptive_policy())});
  CHECK(client.get("http://x/")->status == 429);

  send_many(client, 100);
  talk.clock->advance(2s - 1ns);
  CHECK(talk.sends() == 1);
  talk.clock->advance(1ns);  // the least rate is one send in two seconds
  CHECK(talk.sends() == 2);
  talk.clock->advance(1s);
  CHECK(talk.sends() < 10);
  talk.clock->advance(1h);
  CHECK(talk.sends() == 101);
}

TEST_CASE("calls in a row go when the limiter's own arithmetic says") {
  Conversation talk;
  serve(talk);
  auto client = talk.client({retry(adaptive_policy())});
  SendRate rate{Time()};
  Time now;
  for (std::size_t i = 0; i < 50; ++i) {
    CAPTURE(i);
    (void)client.get("http://x/");
    for (auto wait = rate.acquire(now); wait > 0s; wait = rate.acquire(now)) now += wait;
    CHECK(talk.network->requests()[i].when == now);
    rate.update(now, now < Time(1s));
  }
  CHECK(now > Time(5s));
}

TEST_CASE("a rate is one host's") {
  Conversation talk;
  serve(talk);
  auto client = talk.client({retry(adaptive_policy())});
  CHECK(client.get("http://x/")->status == 429);
  CHECK(client.get("http://y/")->status == 429);
  CHECK(talk.clock->now() == Time());
}

TEST_CASE("a call that is held back past its deadline ends at once") {
  Conversation talk;
  serve(talk);
  auto client = talk.client({retry(adaptive_policy())});
  CHECK(client.get("http://x/")->status == 429);

  CallOptions options;
  options.timeout = 1s;
  const auto outcome = client.send(Request::get("http://x/"), options);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  CHECK(outcome.error().message == "the send rate allows the next attempt in 2.00 s, too late");
  CHECK(outcome.error().history.stop_reason == Reason::ElapsedExhausted);
  CHECK(talk.clock->now() == Time());
  CHECK(talk.sends() == 1);
}

TEST_CASE("a response stands where the send rate leaves no time for the retry") {
  Conversation talk;
  talk.network->say(Response(429, "slow down"));
  auto policy = thrifty_policy(100);
  policy.adaptive = true;
  policy.max_elapsed_time = 1500ms;
  const auto outcome = talk.client({retry(policy)}).get("http://x/");
  REQUIRE(outcome);
  CHECK(outcome->body == "slow down");
  CHECK(outcome->history.stop_reason == Reason::ElapsedExhausted);
  CHECK(talk.sends() == 1);
}

TEST_CASE("a call canceled while the rate holds it back is not sent") {
  Conversation talk;
  serve(talk);
  auto client = talk.client({retry(adaptive_policy())});
  CHECK(client.get("http://x/")->status == 429);
  CallOptions options;
  std::stop_source stop;
  options.stop = stop.get_token();
  std::optional<Outcome> outcome;
  client.send_then(
      Request::get("http://x/"), [&](Outcome value) { outcome.emplace(std::move(value)); },
      options);
  talk.clock->advance(1s);

  stop.request_stop();
  talk.clock->advance(1h);

  REQUIRE(outcome);
  CHECK(outcome->error().code == Errc::Canceled);
  CHECK(talk.sends() == 1);
}
