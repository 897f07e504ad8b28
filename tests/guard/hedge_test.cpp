// The middleware hedge in virtual time.
#include "hedging.hpp"

#include "lib/core/chain/detail/call_state.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/client/report.hpp>
#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/local_state.hpp>
#include <httpretry/retry/classify.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr Duration kHangs = 1h;

Response throttled(std::string_view seconds) {
  Response response(429);
  response.headers.add("Retry-After", seconds);
  return response;
}

// How often the client's observer has recorded this line.
auto recorded(const Conversation& calls, std::string_view line) {
  const auto lines = calls.heard->lines();
  return std::count(lines.begin(), lines.end(), line);
}

// The first send gets no response. The hedge gets its headers after 20 ms, and its body half a
// second later.
class SlowBody final : public Transport {
 public:
  Response response = Response(200);
  std::optional<RacingSend::Use> use;  // how the hedge's headers are to be used
  bool used = false;                   // whether its whole response is used
  Duration first_canceled{};

  Task<Outcome> send(Request /*request*/, Call& call) override {
    auto& clock = call.scheduler();
    const auto takes = ++sends_ == 1 ? kHangs : Duration(20ms);
    const bool whole = co_await clock.sleep_until(clock.now() + takes, call.stop());
    if (!whole) {
      first_canceled = clock.now().time_since_epoch();
      co_return Error(Errc::Canceled, "canceled");
    }
    auto* const racing = Call::State::racing(call);
    use = racing->headers_came(response);
    co_await clock.sleep_until(clock.now() + 500ms, call.stop());
    used = racing->uses(response);
    co_return response;
  }

 private:
  int sends_ = 0;
};

}  // namespace

TEST_CASE("each send without a response is followed by the next") {
  HedgedCalls calls;
  calls.policy.hedge->after = 500ms;
  calls.policy.hedge->max_hedges = 3;
  calls.policy.max_elapsed_time = 10s;
  calls.policy.attempt_timeout = 5s;
  calls.network->say(Response(200), kHangs);
  const auto outcome = calls.send();
  CHECK(calls.sent_at() == Times{0ms, 500ms, 1000ms, 1500ms});
  CHECK_FALSE(outcome);
  CHECK(history_of(outcome).attempts.size() == 4);
  CHECK(history_of(outcome).stop_reason == Reason::AttemptsExhausted);
}

TEST_CASE("the first response wins, and the other send is canceled") {
  HedgedCalls calls;
  calls.network->say(Response(200, "slow"), 900ms).say(Response(200, "quick"), 20ms);
  const auto outcome = calls.send();
  CHECK(outcome->body == "quick");
  CHECK(outcome->history.elapsed == 220ms);
  CHECK(calls.sent_at() == Times{0ms, 200ms});
  REQUIRE(outcome->history.attempts.size() == 2);
  const auto& lost = outcome->history.attempts[0];
  CHECK(lost.number == 1);
  CHECK(lost.race == Race::Lost);
  CHECK(lost.sent == Sent::Maybe);
  CHECK(lost.error == Errc::Canceled);
  CHECK(lost.rule == "lost to attempt 2");
  CHECK(lost.duration == 220ms);
  CHECK_FALSE(lost.retried);
  const auto& won = outcome->history.attempts[1];
  CHECK(won.number == 2);
  CHECK(won.race == Race::Won);
  CHECK(won.status == 200);
  CHECK(won.start == 200ms);
  CHECK(won.duration == 20ms);
  REQUIRE(won.hedge);
  CHECK(won.hedge->of == 1);
  CHECK(won.hedge->after == 200ms);
  CHECK(won.hedge->from == "fixed");
  CHECK(outcome->history.last() == &won);
  CHECK(calls.heard->lines() ==
        std::vector<std::string>{"call GET http://x/", "attempt 1", "attempt 2",
                                 "hedge 2 after 200ms", "attempt 1: canceled permanent, lost",
                                 "attempt 2: 200 success", "end 200 success"});
}

TEST_CASE("a classify function that throws ends the race and the call") {
  HedgedCalls calls;
  calls.network->say(Response(200), kHangs).say(Response(200), 20ms);
  RetryOptions options;
  options.policies.emplace(calls.policy);
  int looked = 0;
  options.classify = [&](const RetryPolicy& policy, const Request&, const Observed& observed) {
    if (++looked == 1) throw std::runtime_error("no idea");
    return classify(policy, observed);
  };
  const auto outcome = calls.client({retry(options), hedge()}).get("http://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message == "middleware \"hedge\" threw: no idea");
  CHECK(calls.sends() == 2);
  CHECK(calls.clock->now() == Time(220ms));
}

TEST_CASE("the first send may win, too") {
  HedgedCalls calls;
  calls.network->say(Response(200, "first"), 300ms).say(Response(200, "hedge"), 200ms);
  const auto outcome = calls.send();
  CHECK(outcome->body == "first");
  REQUIRE(outcome->history.attempts.size() == 2);
  CHECK(outcome->history.attempts[0].race == Race::Won);
  CHECK(outcome->history.attempts[1].race == Race::Lost);
  CHECK(outcome->history.last()->number == 1);
  CHECK(succeeded(outcome));
}

TEST_CASE("a send without a hedge is in no race") {
  HedgedCalls calls;
  calls.network->say(Response(200), 200ms);
  const auto outcome = calls.send();
  REQUIRE(outcome->history.attempts.size() == 1);
  CHECK(outcome->history.attempts[0].race == Race::None);
}

TEST_CASE("the headers of a hedge cancel the first send, or its body if a rule reads it") {
  const auto race = [](const RetryPolicy& policy) {
    const auto server = std::make_shared<SlowBody>();
    server->response = Response(200, R"({"value": 1})");
    server->response.headers.add("Content-Type", "application/json");
    ClientOptions options;
    options.middlewares = {retry(policy), hedge()};
    options.scheduler = std::make_shared<ManualScheduler>();
    options.transport = server;
    const auto outcome = Client(options).get("http://x/");
    REQUIRE(outcome);
    CHECK(outcome->history.elapsed == 720ms);
    CHECK(server->used);
    return server;
  };
  auto policy = hedged_policy();
  const auto at_headers = race(policy);
  CHECK(at_headers->use == RacingSend::Use::Yes);
  CHECK(at_headers->first_canceled == 220ms);

  ErrorRule rule;
  rule.selector = "/error";
  policy.retry_on.error_codes = {rule};
  const auto at_end = race(policy);
  CHECK(at_end->use == RacingSend::Use::NotYet);
  CHECK(at_end->first_canceled == 720ms);
}

TEST_CASE("what has failed before is not hedged: there is a retry") {
  HedgedCalls calls;
  calls.network->say(Response(503), 100ms).say(Response(200));
  const auto outcome = calls.send();
  CHECK(calls.sent_at() == Times{0ms, 1100ms});
  CHECK(outcome->history.attempts[0].race == Race::None);
  CHECK(outcome->history.attempts[0].retried);
  CHECK_FALSE(outcome->history.hedge_refused);
}

TEST_CASE("a hedge that fails does not end the wait for the first send") {
  HedgedCalls calls;
  calls.network->say(Response(200), 600ms).say(Response(503), 50ms);
  const auto outcome = calls.send();
  CHECK(outcome->history.elapsed == 600ms);
  CHECK(outcome->history.attempts[0].race == Race::Won);
  CHECK(outcome->history.attempts[1].status == 503);
  CHECK(outcome->history.attempts[1].rule == "status 503");
}

TEST_CASE("a server that wants fewer requests gets no more hedges, and the wait that it asks for") {
  HedgedCalls calls;
  calls.policy.hedge->max_hedges = 3;
  calls.network->say(Response(503), 600ms).say(throttled("1"), 50ms).say(Response(200));
  const auto outcome = calls.send();
  CHECK(calls.sent_at() == Times{0ms, 200ms, 1600ms});
  REQUIRE(outcome->history.attempts.size() == 3);
  CHECK(outcome->history.attempts[0].race == Race::Lost);
  CHECK(outcome->history.attempts[1].retried);
  CHECK(outcome->history.attempts[1].wait == 1s);
  CHECK(outcome->history.hedge_refused == HedgeRefused::Throttled);
}

TEST_CASE("a throttle ends the hedges of later calls, too, for the time that the server says") {
  // The throttle comes at 250 ms. The second call begins at `start`.
  const auto second_call = [](Duration start) {
    HedgedCalls calls;
    calls.network->say(Response(200), 900ms).say(throttled("10"), 50ms).say(Response(200), 900ms);
    Client client = calls.client({retry(calls.policy), hedge()});
    CHECK(client.get("http://x/")->history.attempts.size() == 2);
    calls.clock->advance(Time(start) - calls.clock->now());
    return client.get("http://x/");
  };
  CHECK(second_call(1s)->history.hedge_refused == HedgeRefused::Throttled);
  CHECK(second_call(10'050ms - 1ns)->history.hedge_refused == HedgeRefused::Throttled);
  const auto hedged = second_call(10'050ms);
  CHECK_FALSE(hedged->history.hedge_refused);
  CHECK(hedged->history.attempts.size() == 2);
}

TEST_CASE("a response that loses the race may ask for a pause") {
  HedgedCalls calls;
  calls.network->say(Response(200), 900ms).say(throttled("7"), 50ms);
  const auto outcome = calls.client({retry(calls.policy), hedge(), guards()}).get("http://x/");
  REQUIRE(outcome->history.attempts.size() == 2);
  const auto& lost = outcome->history.attempts[1];
  CHECK(lost.race == Race::Lost);
  CHECK(lost.start == 200ms);
  CHECK(lost.duration == 50ms);
  CHECK(lost.server_delay == 7s);
  CHECK(lost.server_delay_source == "retry-after");
  CHECK(recorded(calls, "pause http://x: for 7000ms, retry-after") == 1);
}

TEST_CASE("each send of a hedged poll has polled the URL") {
  HedgedCalls calls;
  auto& pending = calls.policy.retry_on.pending.emplace();
  pending.statuses = {202};
  pending.backoff.initial = 10s;
  pending.url_from = {"Location"};
  Response accepted(202);
  accepted.headers.add("Location", "/7");
  calls.network->say(accepted, 20ms)
      .say(Response(202), 300ms)
      .say(Response(202), 900ms)
      .say(Response(202), 900ms)
      .say(Response(200), 20ms);
  const auto outcome = calls.send();
  REQUIRE(outcome);
  const auto& history = outcome->history;
  REQUIRE(history.attempts.size() == 5);
  CHECK(history.attempts[2].race == Race::Lost);
  CHECK(history.attempts[3].race == Race::Lost);
  REQUIRE(history.polled.size() == 1);
  CHECK(history.polled[0].first_attempt == 2);
  CHECK(history.polled[0].last_attempt == 5);
}

TEST_CASE("methods that may do harm are not hedged") {
  HedgedCalls calls;
  calls.network->say(Response(200), 900ms);
  const auto post = Request::post("http://x/", "{}");
  CHECK(calls.send(post)->history.hedge_refused == HedgeRefused::Method);
  calls.policy.hedge->methods.clear();
  CHECK(calls.send(post)->history.hedge_refused == HedgeRefused::UnsafeToRepeat);
  CHECK(calls.sends() == 2);
}

TEST_CASE("both sends have the same key, and a 409 to the hedge is the doing of the first") {
  HedgedCalls calls;
  calls.policy.hedge->methods = {"POST"};
  calls.policy.idempotency_key = "Idempotency-Key";
  SUBCASE("409") { calls.network->say(Response(201), 900ms).say(Response(409), 20ms); }
  SUBCASE("425") { calls.network->say(Response(201), 900ms).say(Response(425), 20ms); }
  const auto outcome = calls.send(Request::post("http://x/", "{}"));
  CHECK(outcome->status == 201);
  REQUIRE(calls.sends() == 2);
  const auto key = calls.sent(0).headers().get("Idempotency-Key");
  REQUIRE(key);
  CHECK(calls.sent(1).headers().get("Idempotency-Key") == key);
}

TEST_CASE("a 409 to the hedge settles the matter if no other send is in flight") {
  HedgedCalls calls;
  calls.policy.hedge->methods = {"POST"};
  calls.policy.idempotency_key = "Idempotency-Key";
  calls.network->say(Response(503), 300ms).say(Response(409), 200ms);
  const auto outcome = calls.send(Request::post("http://x/", "{}"));
  CHECK(outcome->status == 409);
  REQUIRE(outcome->history.attempts.size() == 2);
  CHECK(outcome->history.attempts[0].race == Race::Lost);
  CHECK(outcome->history.attempts[1].race == Race::Won);
}

TEST_CASE("responses and timeouts are samples, and quick failures are none") {
  const auto samples = [](const Outcome& outcome) {
    HedgedCalls calls;
    calls.policy.max_attempts = 1;
    calls.network->say(outcome, 10ms);
    const auto state = local_state();
    ClientOptions options;
    options.middlewares = {retry(calls.policy), hedge()};
    options.scheduler = calls.clock;
    options.transport = calls.network;
    options.shared_state = state;
    CHECK(Client(options).get("http://x/").has_value() == outcome.has_value());
    return state->states("hedge ", calls.clock->now()).at(0).samples;
  };
  for (const auto status : {200, 404}) CHECK(samples(Response(status)) == 1);
  for (const auto status : {429, 503}) CHECK(samples(Response(status)) == 0);
  CHECK(samples(error_of(Errc::Timeout)) == 1);
  for (const auto code : {Errc::Connect, Errc::Receive, Errc::TooLarge}) {
    CHECK(samples(error_of(code)) == 0);
  }
}

TEST_CASE("without a key a 409 settles the matter") {
  HedgedCalls calls;
  calls.network->say(Response(200), 900ms).say(Response(409), 20ms);
  CHECK(calls.send()->status == 409);
}

TEST_CASE("a body that cannot be read twice at once is not hedged") {
  HedgedCalls calls;
  calls.policy.hedge->methods.clear();
  calls.network->say(Response(200), 900ms);
  const auto generated =
      Body::generated([] { return [](std::span<char>) { return std::size_t{0}; }; });
  CHECK(calls.send(Request::put("http://x/", generated))->history.hedge_refused ==
        HedgeRefused::NotReplayable);
  CHECK_FALSE(calls.send(Request::put("http://x/", "in memory"))->history.hedge_refused);
}

TEST_CASE("a retry is not hedged if the sink has a part of the response") {
  for (const std::string beginning : {"", "x"}) {
    CAPTURE(beginning);
    HedgedCalls calls;
    Response cut(200, beginning);
    cut.incomplete = true;
    cut.headers.add("ETag", "\"v\"");
    Response whole(200, "xy");
    whole.headers.add("ETag", "\"v\"");
    calls.network->say(cut, 100ms).say(whole, 900ms);
    std::string received;
    auto request = Request::get("http://x/");
    request.edit_options().sink = pass_to([&](std::string_view bytes) {
      received += bytes;
      return true;
    });
    const auto outcome = calls.send(request);
    REQUIRE(outcome);
    CHECK(received == "xy");
    CHECK(calls.sends() == (beginning.empty() ? 3U : 2U));
    CHECK((outcome->history.hedge_refused == HedgeRefused::NotReplayable) == !beginning.empty());
  }
}

TEST_CASE("hedges are sends, of which max_attempts allows so many") {
  HedgedCalls calls;
  calls.policy.max_attempts = 2;
  calls.policy.hedge->max_hedges = 4;
  calls.network->say(Response(503), 900ms);
  const auto outcome = calls.send();
  CHECK(calls.sent_at() == Times{0ms, 200ms});
  CHECK(outcome->history.hedge_refused == HedgeRefused::Attempts);
  CHECK(outcome->history.stop_reason == Reason::AttemptsExhausted);
}

TEST_CASE("a retry is hedged within what is left of max_attempts") {
  HedgedCalls calls;
  calls.policy.max_attempts = 4;
  calls.policy.hedge->max_hedges = 4;
  calls.network->say(Response(503), 10ms).say(Response(503), 5s);
  const auto outcome = calls.send();
  CHECK(calls.sent_at() == Times{0ms, 1010ms, 1210ms, 1410ms});
  CHECK(history_of(outcome).attempts.size() == 4);
}

TEST_CASE("as gRPC hedges: a failure is followed at once, a slow send after its time") {
  HedgedCalls calls;
  calls.policy.backoff = doubling(0ms);
  calls.policy.repeat = Repeat::Always;
  calls.policy.hedge->after = 500ms;
  calls.policy.hedge->max_hedges = 3;
  calls.policy.attempt_timeout = 20s;
  SUBCASE("at once") {
    calls.network->say(Response(503), 200ms).say(Response(200), 10s);
    const auto outcome = calls.send();
    CHECK(calls.sent_at() == Times{0ms, 200ms, 700ms, 1200ms});
    CHECK(outcome->history.attempts.size() == 4);
  }
  SUBCASE("when the server says") {
    Response pushed_back(503);
    pushed_back.headers.add("grpc-retry-pushback-ms", "300");
    calls.policy.server_delay.headers = {ServerDelaySource::GrpcRetryPushback};
    calls.network->say(pushed_back, 200ms).say(Response(200), 800ms);
    const auto outcome = calls.send();
    CHECK(calls.sent_at() == Times{0ms, 500ms, 1000ms});
  }
  SUBCASE("never, where the server says so") {
    Response pushed_back(503);
    pushed_back.headers.add("grpc-retry-pushback-ms", "-1");
    calls.policy.server_delay.headers = {ServerDelaySource::GrpcRetryPushback};
    calls.network->say(pushed_back, 200ms).say(Response(200), 10s);
    const auto outcome = calls.send();
    CHECK(calls.sent_at() == Times{0ms});
  }
}

TEST_CASE("a limit of the client that is used up refuses a hedge") {
  struct Row {
    int in_all;
    int per_origin;
    bool is_refused;
  };
  for (const auto& row : {Row{1, 0, true}, Row{0, 1, true}, Row{2, 1, true}, Row{1, 2, true},
                          Row{2, 0, false}, Row{0, 2, false}, Row{2, 2, false}}) {
    CAPTURE(row.in_all);
    CAPTURE(row.per_origin);
    HedgedCalls calls;
    calls.max_in_flight = row.in_all;
    calls.max_in_flight_per_origin = row.per_origin;
    calls.network->say(Response(200), 900ms);
    const auto outcome = calls.send();
    CHECK((outcome->history.hedge_refused == HedgeRefused::Busy) == row.is_refused);
    CHECK(outcome->history.attempts.size() == (row.is_refused ? 1U : 2U));
    CHECK(calls.sends() == (row.is_refused ? 1U : 2U));
    CHECK(recorded(calls, "attempt 2") == (row.is_refused ? 0 : 1));
  }
}

TEST_CASE("a hedge begins when the last limit has let it pass") {
  HedgedCalls calls;
  calls.network->say(Response(200), 900ms).say(Response(200), 20ms);
  // Between the guards and the limit of the client.
  const auto slow = middleware("slow", [](Request request, Call& call, Next next) -> Task<Outcome> {
    co_await call.scheduler().sleep_until(call.scheduler().now() + 10ms, call.stop());
    Outcome outcome = co_await next(std::move(request), call);
    co_return outcome;
  });
  ClientOptions options;
  options.middlewares = {retry(calls.policy), hedge(), guards(), slow};
  options.scheduler = calls.clock;
  options.transport = calls.network;
  options.max_in_flight = 10;
  const auto outcome = Client(options).get("http://x/");
  REQUIRE(outcome);
  REQUIRE(outcome->history.attempts.size() == 2);
  const auto& won = outcome->history.attempts[1];
  CHECK(won.race == Race::Won);
  CHECK(won.start == 210ms);
  CHECK(won.duration == 20ms);
  REQUIRE(won.hedge);
  CHECK(won.hedge->after == 210ms);
}

TEST_CASE("a hedge that its breaker refuses at random costs nothing") {
  HedgedCalls calls;
  calls.policy.budget = thrifty_policy(100).budget;
  calls.policy.hedge->budget = 1.0;
  calls.policy.guards.breaker.emplace().kind = BreakerPolicy::Kind::Share;
  calls.network->say(Response(503)).say(Response(200), 900ms);
  const auto state = local_state();
  ClientOptions options;
  options.middlewares = {retry(calls.policy), hedge(), guards()};
  options.scheduler = calls.clock;
  options.transport = calls.network;
  options.observers = {calls.heard};
  options.shared_state = state;
  // The breaker refuses half of the sends, or more, once one has failed.
  options.random = [clock = calls.clock] { return clock->now() < Time(200ms) ? 0.9 : 0.0; };
  Client client(options);
  CHECK(client.post("http://x/", "{}")->status == 503);
  const auto outcome = client.get("http://x/");
  REQUIRE(outcome);
  CHECK(outcome->history.hedge_refused == HedgeRefused::Busy);
  REQUIRE(outcome->history.attempts.size() == 1);
  CHECK(outcome->history.attempts[0].budget_left == 100);
  CHECK(calls.sends() == 2);
  CHECK(recorded(calls, "attempt 2") == 0);
  const auto hedges = state->states("hedge ", calls.clock->now());
  REQUIRE(hedges.size() == 1);
  CHECK(hedges[0].calls == 2);
  CHECK(hedges[0].hedges == 0);
}

TEST_CASE("a hedge that a guard would hold back is refused, and the guard is the reason") {
  using Change = std::function<void(GuardPolicy&)>;
  using Meanwhile = std::function<void(SharedState&, const GuardPolicy&, Time)>;
  // Calls `meanwhile` during the first send.
  const auto refusal = [](const Change& change, const Meanwhile& meanwhile) {
    HedgedCalls calls;
    change(calls.policy.guards);
    calls.network->say(Response(200), 900ms);
    const auto state = local_state();
    ClientOptions options;
    options.middlewares = {retry(calls.policy), hedge(), guards()};
    options.scheduler = calls.clock;
    options.transport = calls.network;
    options.shared_state = state;
    Client client(options);
    std::optional<Outcome> outcome;
    client.send_then(Request::get("http://x/"), [&](Outcome ended) { outcome = std::move(ended); });
    calls.clock->advance(100ms);
    meanwhile(*state, calls.policy.guards, calls.clock->now());
    calls.clock->advance(1s);
    REQUIRE(outcome);
    CHECK(calls.sends() == 1);
    return history_of(*outcome).hedge_refused;
  };
  const auto nothing = [](SharedState&, const GuardPolicy&, Time) {};
  const auto open_it = [](SharedState& state, const GuardPolicy&, Time now) {
    CHECK(state.open_circuit("breaker http://x", now + 1h, now));
  };
  const auto pause_it = [](SharedState& state, const GuardPolicy& policy, Time now) {
    LimitKeys keys;
    keys.policy = std::make_shared<const GuardPolicy>(policy);
    keys.pauses[0] = "pause http://x";
    state.limits(keys, now)->pause(0, now + 1h, now);
  };
  const auto slot = refusal([](auto& policy) { policy.concurrency.emplace().max = 1; }, nothing);
  CHECK(slot == HedgeRefused::Busy);
  const auto token =
      refusal([](auto& policy) { policy.rate = RatePolicy::of_requests(1, 1h); }, nothing);
  CHECK(token == HedgeRefused::Busy);
  const auto circuit = refusal([](auto& policy) { policy.breaker.emplace(); }, open_it);
  CHECK(circuit == HedgeRefused::Circuit);
  const auto circuit_of_retries = refusal(
      [](auto& policy) { policy.breaker.emplace().applies_to = BreakerPolicy::AppliesTo::Retries; },
      open_it);
  CHECK(circuit_of_retries == HedgeRefused::Circuit);
  const auto paused = refusal([](auto&) {}, pause_it);
  CHECK(paused == HedgeRefused::Throttled);
}

TEST_CASE("too little time is left for a hedge") {
  HedgedCalls calls;
  calls.policy.max_elapsed_time = 1s;
  calls.policy.hedge->after = 950ms;
  calls.network->say(Response(200), 100ms);
  ClientOptions options;
  options.middlewares = {retry(calls.policy), hedge()};
  options.scheduler = calls.clock;
  options.transport = calls.network;
  Client client(options);
  for (int i = 0; i < 3; ++i) CHECK(client.get("http://x/"));
  calls.network->say(Response(200), kHangs);
  const auto outcome = client.get("http://x/");
  CHECK(history_of(outcome).hedge_refused == HedgeRefused::Deadline);
}

TEST_CASE("a call without a limit of its time is hedged") {
  HedgedCalls calls;
  calls.policy.max_elapsed_time = kForever;
  calls.network->say(Response(200), 900ms);
  CHECK(calls.send()->history.attempts.size() == 2);
}

TEST_CASE("the retry budget allows a hedge or forbids it, and then costs nothing") {
  HedgedCalls calls;
  calls.policy.budget = thrifty_policy(5).budget;
  calls.policy.hedge->budget = 1.0;
  calls.network->say(Response(200), 900ms);
  const auto outcome = calls.send();
  CHECK(outcome->history.hedge_refused == HedgeRefused::RetryBudget);
  calls.policy.budget = thrifty_policy(10).budget;
  CHECK_FALSE(calls.send()->history.hedge_refused);
}

TEST_CASE("of 100 calls at once, five are hedged") {
  HedgedCalls calls;
  calls.policy.hedge->budget = 0.05;
  calls.policy.retry_on.transport = 0;  // no retries, which would be hedged, too
  calls.policy.max_elapsed_time = 30s;
  calls.policy.attempt_timeout = 2s;
  calls.network->say(Response(200), kHangs);
  ClientOptions options;
  options.middlewares = {retry(calls.policy), hedge()};
  options.scheduler = calls.clock;
  options.transport = calls.network;
  Client client(options);
  std::vector<Task<Outcome>> sends;
  for (int i = 0; i < 100; ++i) sends.push_back(client.co_send(Request::get("http://x/")));
  std::map<HedgeRefused, int> refused;
  int hedged = 0;
  for (const auto& outcome : calls.clock->run(when_all(std::move(sends)))) {
    const auto& history = history_of(outcome);
    if (history.attempts.size() == 2) ++hedged;
    if (history.hedge_refused) ++refused[*history.hedge_refused];
  }
  CHECK(hedged == 5);
  CHECK(refused[HedgeRefused::HedgeBudget] == 95);
}

TEST_CASE("a 404 after a send that may have been carried out is ambiguous") {
  HedgedCalls calls;
  calls.policy.hedge->methods = {"DELETE"};
  calls.network->say(Response(204), 900ms).say(Response(404), 20ms);
  const auto outcome = calls.send(Request::del("http://x/"));
  CHECK(outcome->status == 404);
  CHECK(outcome->history.last()->ambiguous);
}

TEST_CASE("a call that is canceled cancels all of its sends") {
  HedgedCalls calls;
  calls.network->say(Response(200), kHangs);
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  Client client = calls.client({retry(calls.policy), hedge()});
  auto call = client.send_async(Request::get("http://x/"), options);
  calls.clock->advance(500ms);
  CHECK(calls.sends() == 2);
  stop.request_stop();
  calls.clock->run();
  const auto outcome = call.get();
  CHECK(outcome.error().code == Errc::Canceled);
  CHECK(history_of(outcome).stop_reason == Reason::Canceled);
  CHECK(history_of(outcome).attempts.size() == 2);
  CHECK(calls.clock->sleeping() == 0);
}

TEST_CASE("each send has a time limit of its own") {
  HedgedCalls calls;
  calls.policy.attempt_timeout = 500ms;
  calls.network->say(Response(200), kHangs).say(Response(200), 400ms);
  const auto outcome = calls.send();
  CHECK(outcome->history.elapsed == 600ms);
  CHECK(outcome->history.attempts[0].error == Errc::Timeout);
}

TEST_CASE("where nobody waits for one of the sends any more, the last outcome counts") {
  HedgedCalls calls;
  calls.policy.max_attempts = 2;
  calls.network->say(Response(503, "first"), 300ms).say(Response(500, "second"), 300ms);
  const auto outcome = calls.send();
  CHECK(outcome->status == 500);
  CHECK(outcome->history.attempts[0].race == Race::Lost);
  CHECK(outcome->history.attempts[1].race == Race::None);
}

TEST_CASE("only the response that is used touches the sink") {
  HedgedCalls calls;
  calls.network->say(Response(200, "slow"), 900ms).say(Response(200, "quick"), 20ms);
  std::string received;
  const auto sink = pass_to([&](std::string_view bytes) {
    received += bytes;
    return true;
  });
  auto request = Request::get("http://x/");
  request.edit_options().sink = sink;
  const auto outcome = calls.send(request);
  CHECK(received == "quick");
  CHECK(outcome->delivered == 5);
}

TEST_CASE("a body that a rule reads is judged before it settles the matter") {
  HedgedCalls calls;
  ErrorRule rule;
  rule.selector = "/error";
  calls.policy.retry_on.error_codes = {rule};
  Response bad(200, R"({"error": "busy"})");
  bad.headers.add("Content-Type", "application/json");
  Response good(200, R"({"value": 1})");
  good.headers.add("Content-Type", "application/json");
  calls.network->say(good, 900ms).say(bad, 20ms);
  std::string received;
  auto request = Request::get("http://x/");
  SUBCASE("in memory") {}
  SUBCASE("to a sink") {
    request.edit_options().sink = pass_to([&](std::string_view bytes) {
      received += bytes;
      return true;
    });
  }
  const auto outcome = calls.send(request);
  CHECK(outcome->history.elapsed == 900ms);
  CHECK(outcome->history.attempts[0].race == Race::Won);
  CHECK(outcome->history.attempts[1].cls == Class::Transient);
  CHECK((received.empty() ? outcome->body : received) == good.body);
}

TEST_CASE("the quantile is that of the responses to this endpoint") {
  HedgedCalls calls;
  calls.policy.hedge->quantile = 0.95;
  calls.network->say(Response(200), 100ms);
  Client client = calls.client({retry(calls.policy), hedge()});
  for (int i = 0; i < 49; ++i) CHECK(client.get("http://x/"));
  calls.network->say(Response(200), 900ms);
  CHECK(client.get("http://x/")->history.hedge_refused == HedgeRefused::Warming);
  const auto outcome = client.get("http://x/");
  REQUIRE(outcome->history.attempts.size() == 2);
  const auto& told = outcome->history.attempts[1].hedge;
  REQUIRE(told);
  CHECK(told->from == "p95 of 50 samples");
  CHECK(told->after > 94ms);
  CHECK(told->after < 106ms);
  CHECK(client.get("http://other/")->history.attempts.size() == 1);
}

TEST_CASE("the chain of a client is checked") {
  ClientOptions options;
  options.middlewares = {hedge(), retry()};
  CHECK_THROWS_WITH(Client{options}, "hedge is above retry: put it below, to race single attempts");
  options.middlewares = {retry(), guards(), hedge()};
  CHECK_THROWS_WITH(Client{options},
                    "guards is above hedge: put it below, so that it applies to each send");
  options.middlewares = {retry(), hedge(), hedge()};
  CHECK_THROWS_WITH(Client{options}, "two hedge middlewares in one chain: remove one");
}

TEST_CASE("a report tells of hedges") {
  HedgedCalls calls;
  calls.network->say(Response(200, "slow"), 900ms).say(Response(200, "quick"), 20ms);
  const auto request = Request::get("http://x/");
  const auto report = report_json(request, calls.send(request));
  const auto has = [&](std::string_view text) { return report.find(text) != std::string::npos; };
  CHECK(has(R"("hedges": 1,)"));
  CHECK(has(R"("hedge_refused": null)"));
  CHECK(has(R"("decision": "lost")"));
  CHECK(has(R"("outcome": "won")"));
  CHECK(has(R"("from": "fixed")"));
}
