#include "conversation.hpp"
#include "policies.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

std::vector<Duration> sends_of(const Conversation& talk) {
  std::vector<Duration> times;
  for (const auto& seen : talk.network->requests()) times.push_back(seen.when.time_since_epoch());
  return times;
}

using Times = std::vector<Duration>;

RetryPolicy limited(ElapsedRule rule, Duration limit) {
  auto policy = steady_policy();
  policy.max_attempts.reset();
  policy.elapsed_rule = rule;
  policy.max_elapsed_time = limit;
  return policy;
}

Response asking(int status, std::string_view seconds) {
  Response response(status);
  response.headers.add("Retry-After", seconds);
  return response;
}

}  // namespace

TEST_CASE("the three elapsed rules end the same failures at different times") {
  struct Row {
    ElapsedRule rule;
    Duration limit;
    Times sends;
  };
  const std::vector<Row> rows{
      {ElapsedRule::IncludeWait, 5s, {0s, 1s, 3s}},      // 3 s + 4 s would pass 5 s
      {ElapsedRule::IncludeWait, 7s, {0s, 1s, 3s, 7s}},  // 7 s is within 7 s
      {ElapsedRule::BeforeWait, 5s, {0s, 1s, 3s, 7s}},   // the last wait overruns
      {ElapsedRule::ClipWait, 5s, {0s, 1s, 3s, 5s}},     // the last wait is cut
      {ElapsedRule::ClipWait, 3s, {0s, 1s, 3s}},         // nothing is left to cut
  };
  for (const auto& row : rows) {
    CAPTURE(static_cast<int>(row.rule));
    CAPTURE(row.limit.count());
    Conversation talk;
    talk.network->say(Response(503));
    const auto outcome = talk.client({retry(limited(row.rule, row.limit))}).get("http://x/");
    CHECK(sends_of(talk) == row.sends);
    CHECK(outcome->history.stop_reason == Reason::ElapsedExhausted);
    CHECK_FALSE(outcome->history.detail.empty());
  }
}

TEST_CASE("a server's wait is not clipped") {
  Conversation talk;
  talk.network->say(asking(503, "6"));
  const auto outcome = talk.client({retry(limited(ElapsedRule::ClipWait, 5s))}).get("http://x/");
  CHECK(talk.sends() == 1);
  CHECK(outcome->history.stop_reason == Reason::ElapsedExhausted);
  CHECK(outcome->history.retry_at == talk.clock->wall_now() + 6s);
}

TEST_CASE("an attempt is given the time that is left, and no more than attempt_timeout") {
  Conversation talk;
  talk.network->say(Response(200), 1h);
  auto policy = limited(ElapsedRule::IncludeWait, 10s);
  policy.attempt_timeout = 4s;
  const auto outcome = talk.client({retry(policy)}).get("http://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  // 4 s, a wait of 1 s, 4 s; a wait of 2 s would pass the limit.
  CHECK(sends_of(talk) == Times{0s, 5s});
  CHECK(talk.clock->now() == Time(9s));

  Conversation last;
  last.network->say(Response(503), 6s).say(Response(200), 1h);
  policy.attempt_timeout = 8s;
  (void)last.client({retry(policy)}).get("http://x/");
  CHECK(sends_of(last) == Times{0s, 7s});
  CHECK(last.clock->now() == Time(10s));  // 3 s of its 8
}

TEST_CASE(
    "an attempt that begins exactly at the elapsed limit has no time for a response to come") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200), 1h);
  const auto policy = limited(ElapsedRule::IncludeWait, 1s);
  const auto outcome = talk.client({retry(policy)}).get("http://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  CHECK(sends_of(talk) == Times{0s, 1s});
  CHECK(talk.clock->now() == Time(1s));
}

TEST_CASE("an attempt that begins behind the elapsed limit has attempt_timeout for itself") {
  Conversation talk;
  talk.network->say(Response(503), 4s).say(Response(503), 500ms).say(Response(200), 3s);
  auto policy = limited(ElapsedRule::BeforeWait, 6s);
  policy.attempt_timeout = 4s;
  CHECK(talk.client({retry(policy)}).get("http://x/")->status == 200);
  CHECK(sends_of(talk) == Times{0s, 5s, 7500ms});
}

TEST_CASE("the caller's deadline ends an attempt, a wait and a server's wait") {
  CallOptions options;
  options.timeout = 2500ms;
  Conversation slow;
  slow.network->say(Response(503)).say(Response(200), 1h);
  const auto late = slow.client({retry(steady_policy())}).send(Request::get("http://x/"), options);
  CHECK(late.error().code == Errc::Timeout);
  CHECK(late.error().history.stop_reason == Reason::ElapsedExhausted);
  CHECK(slow.clock->now() == Time(2500ms));

  Conversation asked;
  asked.network->say(asking(429, "30"));
  const auto later =
      asked.client({retry(steady_policy())}).send(Request::get("http://x/"), options);
  CHECK(later->history.stop_reason == Reason::ServerDelayTooLong);
  CHECK(later->history.retry_at == asked.clock->wall_now() + 30s);
  CHECK(asked.clock->now() == Time());
}

TEST_CASE("a server that asks for too long is not waited for") {
  Conversation talk;
  talk.network->say(asking(503, "409600"));  // 114 h was seen in the wild
  const auto outcome = talk.client({retry(steady_policy())}).get("http://x/");
  CHECK(outcome->history.stop_reason == Reason::ServerDelayTooLong);
  CHECK(outcome->history.retry_at == talk.clock->wall_now() + 409600s);
  CHECK(outcome->history.attempts[0].server_delay == 409600s);
  CHECK_FALSE(outcome->history.attempts[0].wait);
  CHECK(talk.clock->now() == Time());
}

TEST_CASE("pending answers are polled with their own backoff, and count apart from attempts") {
  Conversation talk;
  talk.network->say(Response(202)).say(Response(503)).say(Response(202)).say(Response(200));
  auto policy = steady_policy();
  policy.max_attempts = 2;
  auto& pending = policy.retry_on.pending.emplace();
  pending.statuses = {202};
  pending.backoff = doubling(100ms);
  const auto outcome = talk.client({retry(policy)}).get("http://x/");
  CHECK(outcome->status == 200);
  CHECK(sends_of(talk) == Times{0s, 100ms, 1100ms, 1300ms});
  CHECK(outcome->history.attempts[0].cls == Class::Pending);

  Conversation endless;
  endless.network->say(Response(202));
  pending.max = 3;
  const auto given_up = endless.client({retry(policy)}).get("http://x/");
  CHECK(given_up->status == 202);
  CHECK(endless.sends() == 3);
  CHECK(given_up->history.stop_reason == Reason::AttemptsExhausted);
  CHECK(given_up->history.detail == "pending.max 3 reached");
}

TEST_CASE("a poll's wait does not feed the decorrelated backoff of failures") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(202)).say(Response(503)).say(Response(200));
  auto policy = steady_policy();
  policy.backoff.kind = Backoff::Kind::Decorrelated;
  policy.backoff.multiplier = 3;
  auto& pending = policy.retry_on.pending.emplace();
  pending.statuses = {202};
  pending.backoff = doubling(20s);
  const auto outcome = talk.client({retry(policy)}).get("http://x/");
  const auto& attempts = outcome->history.attempts;
  CHECK(attempts[0].wait == 2s);      // half way from 1 s to 3 s
  CHECK(attempts[2].wait == 3500ms);  // half way from 1 s to 6 s
}

TEST_CASE("a 421 is tried once more, on a connection of its own") {
  Conversation talk;
  talk.network->say(Response(421)).say(Response(421));
  const auto outcome = talk.client({retry(steady_policy())}).post("http://x/", "d");
  CHECK(outcome->status == 421);
  CHECK(talk.sends() == 2);
  CHECK_FALSE(talk.sent(0).options().fresh_connection);
  CHECK(talk.sent(1).options().fresh_connection);
  CHECK(outcome->history.stop_reason == Reason::NotRetryable);

  Conversation after;
  after.network->say(Response(421)).say(Response(503)).say(Response(200));
  CHECK(after.client({retry(steady_policy())}).get("http://x/")->status == 200);
  CHECK_FALSE(after.sent(2).options().fresh_connection);
}

TEST_CASE("a 404 after a DELETE that may have been done is flagged, and no other") {
  Error reset(Errc::Receive);
  Error stale = reset;
  stale.exchange.sent = Sent::Maybe;
  stale.exchange.stale_connection = true;
  const auto ends_ambiguous = [](const std::string& method, Outcome first, int then) {
    Conversation talk;
    talk.network->say(std::move(first)).say(Response(then));
    const auto outcome = talk.client({retry(steady_policy())}).send(Request(method, "http://x/"));
    REQUIRE(outcome->history.attempts.size() == 2);
    return outcome->history.attempts.back().ambiguous;
  };
  CHECK(ends_ambiguous("DELETE", reset, 404));
  CHECK(ends_ambiguous("DELETE", Response(503), 404));
  CHECK(ends_ambiguous("PUT", reset, 412));
  CHECK(ends_ambiguous("DELETE", stale, 404));
  CHECK_FALSE(ends_ambiguous("DELETE", reset, 200));
  for (const auto* safe : {"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"}) {
    CAPTURE(safe);
    CHECK_FALSE(ends_ambiguous(safe, reset, 404));
  }
  CHECK_FALSE(ends_ambiguous("DELETE", error_of(Errc::Connect), 404));
  CHECK_FALSE(ends_ambiguous("DELETE", Response(429), 404));
}
