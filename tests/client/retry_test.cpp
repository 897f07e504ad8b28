#include "conversation.hpp"

#include <httpretry/middleware/retry_call.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Attempts: 4, waits of 1, 2, 4 s, and no budget.
RetryPolicy steady() {
  RetryPolicy policy;
  policy.max_attempts = 4;
  policy.backoff.kind = Backoff::Kind::Exponential;
  policy.backoff.jitter = Backoff::Jitter::None;
  policy.backoff.initial = 1s;
  policy.throttle_backoff.reset();
  policy.budget = BudgetPolicy();
  return policy;
}

Error stale() {
  Error error(Errc::Receive, "the pooled connection was closed");
  error.exchange.sent = Sent::Maybe;
  error.exchange.wire_sends = 1;
  error.exchange.reused_connection = true;
  error.exchange.stale_connection = true;
  return error;
}

}  // namespace

TEST_CASE("a conversation: 503, wait, reset, wait, answer") {
  Conversation talk;
  talk.network->say(Response(503), 10ms).say(error_of(Errc::Receive)).say(Response(200, "ok"));
  auto client = talk.client({retry(steady())});
  std::optional<Outcome> outcome;
  client.send_then(Request::get("http://x/"),
                   [&](Outcome value) { outcome.emplace(std::move(value)); });

  talk.clock->advance(9ms);
  CHECK(talk.sends() == 1);
  talk.clock->advance(1ms + 999ms);
  CHECK(talk.sends() == 1);
  talk.clock->advance(1ms);
  CHECK(talk.sends() == 2);
  talk.clock->advance(2s - 1ns);
  CHECK_FALSE(outcome);
  talk.clock->advance(1ns);
  REQUIRE(outcome);

  CHECK((*outcome)->body == "ok");
  CHECK(talk.heard->lines() ==
        std::vector<std::string>{"call GET http://x/", "attempt 1",
                                 "attempt 1: 503 transient, retry after 1000ms", "attempt 2",
                                 "attempt 2: receive transport, retry after 2000ms", "attempt 3",
                                 "attempt 3: 200 success", "end 200 success"});
  const auto& history = (*outcome)->history;
  CHECK(history.elapsed == 3010ms);
  CHECK(history.attempts[1].start == 1010ms);
  CHECK(history.attempts[0].duration == 10ms);
  CHECK(history.attempts[0].rule == "status 503");
  CHECK(history.attempts[2].wait == std::nullopt);
}

TEST_CASE("a call that waits holds nothing of its attempt") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  std::weak_ptr<int> held;
  const auto below =
      middleware("below", [&](Request request, Call& call, Next next) -> Task<Outcome> {
        Request plain = request;  // the network keeps what it is shown
        const auto token = std::make_shared<int>();
        held = token;
        request.edit_options().on_connection = [token](const ConnectionInfo&) {};
        Outcome outcome = co_await next(std::move(plain), call);
        co_return outcome;
      });
  auto client = talk.client({retry(steady()), below});
  std::optional<Outcome> outcome;
  client.send_then(Request::get("http://x/"),
                   [&](Outcome value) { outcome.emplace(std::move(value)); });
  talk.clock->advance(500ms);
  CHECK(talk.sends() == 1);
  CHECK(held.expired());
  talk.clock->advance(1s);
  REQUIRE(outcome);
  CHECK((*outcome)->status == 200);
}

TEST_CASE("out of attempts, the last response is handed out as it came") {
  Conversation talk;
  talk.network->say(Response(503, "a"))
      .say(Response(503, "b"))
      .say(Response(503, "c"))
      .say(Response(503, "d"));
  const auto outcome = talk.client({retry(steady())}).get("http://x/");
  REQUIRE(outcome);
  CHECK(outcome->body == "d");
  CHECK(outcome->history.attempts.size() == 4);
  CHECK(outcome->history.stop_reason == Reason::AttemptsExhausted);
  CHECK(talk.clock->now() == Time(7s));
}

TEST_CASE("a success is what the policy judges to be one") {
  Conversation talk;
  talk.network->say(Response(200, R"({"error": "no"})"));
  CHECK(succeeded(talk.client({retry(steady())}).get("http://x/")));
  auto policy = steady();
  auto& rule = policy.retry_on.error_codes.emplace_back();
  rule.selector = "/error";
  rule.as = Class::Permanent;
  const auto refused = talk.client({retry(policy)}).get("http://x/");
  REQUIRE(refused);
  CHECK(refused->is_2xx());
  CHECK_FALSE(succeeded(refused));
  CHECK_THROWS_WITH_AS((void)require_success(refused),
                       "the response is not a success: status 200, not_retryable", Failure);

  policy.retry_on.pending.emplace().statuses = {200};
  policy.retry_on.pending->max = 2;
  policy.retry_on.error_codes.clear();
  const auto pending = talk.client({retry(policy)}).get("http://x/");
  REQUIRE(pending);
  CHECK(pending->history.attempts.size() == 2);
  CHECK_FALSE(succeeded(pending));
}

TEST_CASE("without a policy a response below 400 is a success") {
  for (const int status : {200, 302, 399, 400, 503}) {
    Conversation talk;
    talk.network->say(Response(status));
    const auto outcome = talk.client({}).get("http://x/");
    CHECK(succeeded(outcome) == (status < 400));
    if (status < 400) CHECK(require_success(outcome).status == status);
  }
  CHECK_FALSE(succeeded(Error(Errc::Connect)));
}

TEST_CASE("a client error is not repeated") {
  for (const int status : {400, 401, 403, 404, 409, 410, 422}) {
    Conversation talk;
    talk.network->say(Response(status));
    const auto outcome = talk.client({retry()}).get("http://x/");
    CHECK(outcome->status == status);
    CHECK(talk.sends() == 1);
    CHECK(outcome->history.stop_reason == Reason::NotRetryable);
  }
}

TEST_CASE("a POST is not repeated once the server may have seen it") {
  Conversation maybe;
  maybe.network->say(error_of(Errc::Receive));
  CHECK(maybe.client({retry()}).post("http://x/", "d").error().history.stop_reason ==
        Reason::UnsafeToRepeat);
  CHECK(maybe.sends() == 1);

  Conversation never;
  never.network->say(error_of(Errc::Connect)).say(Response(201));
  CHECK(never.client({retry()}).post("http://x/", "d")->status == 201);

  Conversation refused;
  refused.network->say(Response(429)).say(Response(201));
  CHECK(refused.client({retry()}).post("http://x/", "d")->status == 201);
}

TEST_CASE("a key makes a POST repeatable, and is the same on all attempts") {
  Conversation talk;
  talk.network->say(error_of(Errc::Receive)).say(Response(503)).say(Response(201));
  auto policy = steady();
  policy.idempotency_key = "Idempotency-Key";
  CHECK(talk.client({retry(policy)}).post("http://x/", "d")->status == 201);

  const auto key = talk.sent(0).headers().get("Idempotency-Key");
  REQUIRE(key);
  CHECK(key->size() == 36);
  CHECK(talk.sent(1).headers().get("Idempotency-Key") == key);
  CHECK(talk.sent(2).headers().get("Idempotency-Key") == key);

  Conversation another;
  another.network->say(Response(201));
  CHECK(another.client({retry(policy)}).post("http://x/", "d")->status == 201);
  CHECK(another.sent(0).headers().get("Idempotency-Key") != key);
}

TEST_CASE("a key is a random UUID") {
  const auto is_digit_of = [](std::string_view digits) {
    return [digits](char c) { return digits.find(c) != std::string_view::npos; };
  };
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    const auto key = new_idempotency_key();
    CAPTURE(key);
    REQUIRE(key.size() == 36);
    for (std::size_t at = 0; at < key.size(); ++at) {
      CAPTURE(at);
      const bool is_dash = at == 8 || at == 13 || at == 18 || at == 23;
      CHECK(is_digit_of(is_dash ? "-" : "0123456789abcdef")(key[at]));
    }
    CHECK(key[14] == '4');                // its version
    CHECK(is_digit_of("89ab")(key[19]));  // its variant
    keys.insert(key);
  }
  CHECK(keys.size() == 100);
}

TEST_CASE("a request can opt out of retries, and bring its own policy") {
  Conversation talk;
  talk.network->say(Response(503));
  auto once = Request::get("http://x/");
  once.edit_options().retry = false;
  CHECK(talk.client({retry()}).send(once)->status == 503);
  CHECK(talk.sends() == 1);

  auto twice = Request::get("http://x/");
  auto policy = steady();
  policy.max_attempts = 2;
  twice.edit_options().policy = std::make_shared<const RetryPolicy>(policy);
  CHECK(talk.client({retry()}).send(twice)->status == 503);
  CHECK(talk.sends() == 3);
}

TEST_CASE("a stale connection costs one resend, at once, on a new connection, and no attempt") {
  Conversation talk;
  talk.network->say(stale())
      .say(Response(503))
      .say(Response(503))
      .say(Response(503))
      .say(Response(200));
  const auto outcome = talk.client({retry(steady())}).get("http://x/");
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  CHECK(talk.network->requests()[1].when == Time());
  CHECK(talk.sent(1).options().fresh_connection);
  CHECK(outcome->history.attempts[0].rule == "stale connection");
  CHECK(outcome->history.attempts[0].retried);
  CHECK(outcome->history.attempts.size() == 5);
}

TEST_CASE("only the first stale connection of a call is free, and none for a POST") {
  Conversation talk;
  talk.network->say(stale());
  const auto outcome = talk.client({retry(steady())}).get("http://x/");
  CHECK(outcome.error().history.attempts.size() == 5);
  CHECK(outcome.error().history.stop_reason == Reason::AttemptsExhausted);

  Conversation post;
  post.network->say(stale());
  CHECK(post.client({retry(steady())}).post("http://x/", "d").error().history.stop_reason ==
        Reason::UnsafeToRepeat);
  CHECK(post.sends() == 1);
}

TEST_CASE("why something is not repeated is told in words") {
  const auto detail = [](Repeat repeat, const char* method) {
    auto policy = steady();
    policy.repeat = repeat;
    Conversation talk;
    talk.network->say(Response(500));
    return history_of(talk.client({retry(policy)}).send(Request(method, "http://x/"))).detail;
  };
  CHECK(detail(Repeat::Safe, "POST") ==
        "the server may have executed the request, and executing it twice may do harm");
  CHECK(detail(Repeat::Never, "GET") == "the policy says repeat: never");
}

TEST_CASE("a body that can be read only once is not sent again when it was touched") {
  int asked = 0;
  const auto body = Body::once([&](std::span<char>) -> std::size_t {
    ++asked;
    return 0;
  });
  Conversation talk;
  talk.network->say(Response(503));
  const auto outcome = talk.client({retry()}).put("http://x/", body);
  CHECK(outcome->history.stop_reason == Reason::NotReplayable);
  CHECK(asked == 1);

  Conversation untouched;
  untouched.network->say(error_of(Errc::Connect)).say(Response(200));
  CHECK(untouched.client({retry()})
            .put("http://x/", Body::once([](std::span<char>) { return std::size_t{0}; }))
            ->status == 200);
}

TEST_CASE("cancelled in a backoff, a call never sends again") {
  Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({retry(steady())});
  CallOptions options;
  std::stop_source stop;
  options.stop = stop.get_token();
  std::optional<Outcome> outcome;
  client.send_then(
      Request::get("http://x/"), [&](Outcome value) { outcome.emplace(std::move(value)); },
      options);
  talk.clock->advance(500ms);

  stop.request_stop();
  talk.clock->run();

  REQUIRE(outcome);
  CHECK(outcome->error().code == Errc::Canceled);
  CHECK(outcome->error().history.stop_reason == Reason::Canceled);
  CHECK(outcome->error().history.attempts.size() == 1);
  talk.clock->advance(1h);
  CHECK(talk.sends() == 1);
}

TEST_CASE("a wait that would end behind the caller's timeout is not begun") {
  Conversation talk;
  talk.network->say(Response(503));
  CallOptions options;
  options.timeout = 2500ms;  // room for the wait of 1 s, not for the 2 s after it
  const auto outcome = talk.client({retry(steady())}).send(Request::get("http://x/"), options);
  REQUIRE(outcome);
  CHECK(outcome->history.stop_reason == Reason::ElapsedExhausted);
  CHECK(talk.sends() == 2);
  CHECK(talk.clock->now() == Time(1s));
}

TEST_CASE("a server's delay is obeyed to the nanosecond and never undercut") {
  Conversation talk;
  Response busy(503);
  busy.headers.add("Retry-After", "7");
  talk.network->say(busy).say(Response(200));
  const auto outcome = talk.client({retry(steady())}).get("http://x/");
  CHECK(outcome->status == 200);
  CHECK(talk.network->requests()[1].when == Time(7s));
  CHECK(outcome->history.attempts[0].server_delay == 7s);
  CHECK(outcome->history.attempts[0].server_delay_source == "retry-after");
  CHECK(outcome->history.attempts[0].backoff == 1s);
  CHECK(outcome->history.attempts[0].wait == 7s);
}

TEST_CASE("destroying a client ends the calls that wait in it, once each") {
  Conversation talk;
  talk.network->say(Response(503));
  int ended = 0;
  {
    auto client = talk.client({retry(steady())});
    for (int i = 0; i < 1000; ++i) {
      client.send_then(Request::get("http://x/"), [&](Outcome outcome) {
        CHECK(outcome.error().code == Errc::Canceled);
        ++ended;
      });
    }
    talk.clock->run();
    CHECK(talk.clock->sleeping() == 1000);
  }
  talk.clock->run();
  CHECK(ended == 1000);
  CHECK(talk.clock->sleeping() == 0);
}

TEST_CASE("a task that is destroyed while it waits stops its call") {
  Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({retry(steady())});
  {
    auto task = client.co_send(Request::get("http://x/"));
    const auto awaiter = task.operator co_await();
    CHECK(awaiter.await_suspend(std::noop_coroutine()));
    talk.clock->run();
    CHECK(talk.clock->sleeping() == 1);
  }
  talk.clock->run();
  CHECK(talk.clock->sleeping() == 0);
  CHECK(talk.heard->lines().back() == "end canceled canceled");
}

TEST_CASE("a request with a policy that cannot be used is not sent") {
  auto policy = steady();
  policy.backoff.multiplier = std::numeric_limits<double>::quiet_NaN();
  Conversation talk;
  talk.network->say(Response(503));
  auto client = talk.client({retry()});
  auto request = Request::get("http://x/");
  request.edit_options().policy = std::make_shared<const RetryPolicy>(policy);

  const auto outcome = client.send(request);

  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidRequest);
  CHECK(outcome.error().message ==
        "a retry policy cannot be used: backoff.multiplier (nan) is out of range: 1 to 1e+06");
  CHECK(outcome.error().history.stop_reason == Reason::NotRetryable);
  CHECK(talk.sends() == 0);
}

TEST_CASE("a budget that cannot be used is refused") {
  BudgetPolicy budget;
  budget.retry_cost = std::numeric_limits<std::int64_t>::min();
  CHECK_THROWS_AS(CallBudget{budget}, std::invalid_argument);
}
