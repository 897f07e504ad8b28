#include "tests/retry/situation.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "tests/retry/random.hpp"

using namespace httpretry_test;  // NOLINT

TEST_CASE("a stop says which limit and by how much") {
  Situation situation;
  const auto text = [&](const char* outcome) {
    return limit_text(decision_of(situation, outcome_of(outcome)));
  };
  CHECK(text("404").empty());
  CHECK(text("429; Retry-After: 120") ==
        "retry-after asks for 2.00 min, 1.00 min more than server_delay.max 1.00 min");
  CHECK(text("429; Retry-After: 99999999999999999999")
            .find("retry-after asks for 292 years or more, ") == 0);
  situation.clocks.now = situation.clocks.started + 59950ms;
  CHECK(text("503") == "a wait of 100 ms would pass max_elapsed_time 1.00 min by 50.0 ms");
  situation.clocks.deadline = situation.clocks.now + 40ms;
  CHECK(text("503") == "a wait of 100 ms would pass the deadline by 60.0 ms");
  situation.clocks.deadline = situation.clocks.now + 100ms;
  CHECK(text("503") == "a wait of 100 ms would end at the deadline");
  situation.clocks.deadline = situation.clocks.now + 1ns;
  CHECK(text("503") == "a wait of 100 ms would pass the deadline by 100 ms");
  for (const auto ago : {0ns, 1ns, 60'000'000'000ns}) {
    CAPTURE(ago.count());
    situation.clocks.deadline = situation.clocks.now - ago;
    CHECK(text("503") == "the deadline has passed");
    CHECK(text("429; Retry-After: 1") == "the deadline has passed");
  }
  situation.clocks.deadline = kNever;
  situation.policy.elapsed_rule = ElapsedRule::BeforeWait;
  CHECK(text("503").empty());
  situation.clocks.now = situation.clocks.started + 60001ms;
  CHECK(text("503") == "max_elapsed_time 1.00 min has passed");
  situation.policy.elapsed_rule = ElapsedRule::ClipWait;
  situation.clocks.now = situation.clocks.started + 60s;
  CHECK(text("503") == "max_elapsed_time 1.00 min has passed");
  situation.facts.failures = 4;
  CHECK(text("503") == "max_attempts 4 reached");
}

TEST_CASE("a stop at the deadline names the wait that is too long for it") {
  Situation situation;
  situation.clocks.deadline = situation.clocks.now + 5s;
  const auto text = [&](const char* outcome) {
    return limit_text(decision_of(situation, outcome_of(outcome)));
  };
  auto& server_delay = situation.policy.server_delay;
  CHECK(text("429; Retry-After: 8") == "a wait of 8.00 s would pass the deadline by 3.00 s");
  server_delay.over_max = ServerDelayPolicy::OverMax::Clamp;  // to a minute
  CHECK(text("429; Retry-After: 90") == "a wait of 1.00 min would pass the deadline by 55.0 s");
  situation.policy.throttle_backoff->initial = 10s;
  for (const auto combine : {ServerDelayPolicy::Combine::Own, ServerDelayPolicy::Combine::Max}) {
    server_delay.combine = combine;
    CHECK(text("429; Retry-After: 1") == "a wait of 10.0 s would pass the deadline by 5.00 s");
  }
}

TEST_CASE("a stop says when the server wants us back") {
  Situation situation;
  const auto too_long = decision_of(situation, outcome_of("429; Retry-After: 3600"));
  CHECK(too_long.retry_at == WallTime(4600s));
  CHECK(too_long.server_delay == Duration(1h));
  CHECK_FALSE(decision_of(situation, outcome_of("503")).retry_at.has_value());
  CHECK_FALSE(decision_of(situation, outcome_of("503; Retry-After: 1")).retry_at.has_value());
  situation.facts.failures = 4;
  CHECK(decision_of(situation, outcome_of("503; Retry-After: 1")).retry_at == WallTime(1001s));
}

TEST_CASE("a conflict after a write that may have happened is ambiguous") {
  Situation situation;
  situation.facts.maybe_executed = true;
  for (const auto* outcome : {"404", "409", "412"}) {
    CHECK(decision_of(situation, outcome_of(outcome)).ambiguous);
  }
  CHECK_FALSE(decision_of(situation, outcome_of("400")).ambiguous);
  CHECK_FALSE(decision_of(situation, outcome_of("200")).ambiguous);
  situation.facts.maybe_executed = false;
  CHECK_FALSE(decision_of(situation, outcome_of("412")).ambiguous);

  const auto executed = [](const char* text) {
    const auto outcome = outcome_of(text);
    return may_have_executed(classify(RetryPolicy(), Observed(outcome, WallTime{})));
  };
  CHECK(executed("receive maybe"));
  CHECK(executed("504"));
  CHECK_FALSE(executed("connect"));
  CHECK_FALSE(executed("429"));
  CHECK_FALSE(executed("404"));
}

TEST_CASE("a lower bound from a body is never undercut, whatever the policy combines") {
  Situation situation;
  situation.policy.server_delay.combine = ServerDelayPolicy::Combine::Server;
  situation.policy.throttle_backoff->initial = 90s;
  situation.policy.throttle_backoff->max_interval = kForever;
  situation.policy.max_elapsed_time = kForever;
  const Outcome outcome(Response(403, R"({"message":"secondary rate limit"})"));
  CHECK(decision_of(situation, outcome).wait == 90s);
  CHECK(decision_of(situation, outcome, 0).wait == 60s);
}

// openai-python's test_retry_after_max_delay; curl's test 366 (--retry-max-time 10, Retry-After:
// 200).
TEST_CASE("a hint over a client's limit ends the call, one at it does not") {
  Situation openai;
  openai.policy.max_elapsed_time = kForever;
  openai.policy.server_delay.max = 120s;
  openai.clocks.wall_now = WallTime(1696004797s);
  const auto retried = [&](const char* outcome) {
    return decision_of(openai, outcome_of(outcome)).retry;
  };
  CHECK(retried("429; retry-after: 120"));
  CHECK_FALSE(retried("429; retry-after: 121"));
  CHECK(retried("429; retry-after-ms: 120000"));
  CHECK_FALSE(retried("429; retry-after-ms: 120001"));
  CHECK(retried("429; retry-after: Fri, 29 Sep 2023 16:28:37 GMT"));
  CHECK_FALSE(retried("429; retry-after: Fri, 29 Sep 2023 16:28:38 GMT"));

  Situation curl;
  curl.policy.max_elapsed_time = 10s;
  CHECK_FALSE(decision_of(curl, outcome_of("503; Retry-After: 200")).retry);
}

TEST_CASE("no decision waits past a limit, and attempts never exceed theirs") {
  Random random(20260101);
  CAPTURE(random.seed());
  const std::vector<const char*> outcomes = {
      "503",           "429; Retry-After: 5", "connect",
      "timeout maybe", "503; Retry-After: 0", "429; Retry-After: 70"};
  for (int i = 0; i < 20000; ++i) {
    Situation situation;
    situation.policy.elapsed_rule = random.one_of(ElapsedRule::ClipWait);
    situation.policy.repeat = random.one_of(Repeat::Never);
    situation.policy.max_elapsed_time = Duration(random.between(0, 100'000'000'000));
    situation.policy.server_delay.combine = random.one_of(ServerDelayPolicy::Combine::Own);
    situation.policy.server_delay.over_max = random.one_of(ServerDelayPolicy::OverMax::Clamp);
    situation.policy.server_delay.max = Duration(random.between(0, 100'000'000'000));
    situation.policy.server_delay.spread = random.coin() ? random.unit() : 0;
    situation.facts.failures = static_cast<int>(random.between(1, 5));
    situation.facts.repeatable = random.coin();
    situation.clocks.now += Duration(random.between(0, 120'000'000'000));
    if (random.coin()) {
      situation.clocks.deadline =
          situation.clocks.now + Duration(random.between(-9, 9'000'000'000));
    }
    const auto* text = outcomes[static_cast<std::size_t>(random.between(0, 5))];
    CAPTURE(i);
    const auto decision = decision_of(situation, outcome_of(text), random.unit());
    if (!decision.retry) continue;

    const auto end = situation.clocks.now + decision.wait;
    const auto limit = situation.clocks.started + situation.policy.max_elapsed_time;
    REQUIRE(decision.wait >= 0ns);
    REQUIRE(situation.facts.failures < 4);
    REQUIRE(end < situation.clocks.deadline);
    if (situation.policy.elapsed_rule != ElapsedRule::BeforeWait) REQUIRE(end <= limit);
    REQUIRE(situation.clocks.now <= limit);
  }
}

TEST_CASE("at the extremes of every clock, a decision is what it is at other times") {
  for (const auto now : {Time::min(), Time(0ns), Time::max()}) {
    for (const auto wall : {WallTime::min(), WallTime(0ns), WallTime::max()}) {
      Situation situation;
      situation.clocks = {now, Time(0ns), Time::max() - 1ns, wall};
      const auto throttled =
          decision_of(situation, outcome_of("429; Retry-After: 999999999999999"));
      CHECK(throttled.reason == Reason::ServerDelayTooLong);
      CHECK(throttled.retry_at.value() >= wall);
      const auto failed = decision_of(situation, outcome_of("503"));
      CHECK(failed.retry == (now != Time::max()));  // which is past the deadline
    }
  }
}

// Published cases that have no test here, and why:
//
//   Polly's decorrelated V2 and its jittered linear                 not kinds of ours
//   google-http-java-client's whole-millisecond draws               our waits keep nanoseconds
//   cenkalti, resilience4j: intervals cut at each step              ours come from one power: 1 ns
//   google-dotnet (a time more or less), userver (slots from 1),
//     folly's log-normal jitter, go-retry's Fibonacci               not kinds of ours
//   aws-c-io's first decorrelated wait, which may be 0              ours is the initial one at
//   least urllib3's first wait of 0                                       not ours: the first is
//   initial the variant of AWS's cubic table in Go and Rust                 an artefact of its own
//   test AWS's clock skew, long polling                                  see aws_scenarios_test
//   envoy's documented 25, 75, 175 ms                               describes older code
//   envoy's and openai's own wait instead of a hint over the limit  ours stops and says when
//   go-retryablehttp's 502, whose Retry-After is not heard          ours is heard
//   ky's invalid Retry-After that blocks the next header            ours asks the next source
//   gRPC's hedging, and its nine attempts that count as five        not ours; attempts are as
//   written Google's, gRPC's and Finagle's preconditions that we lack       a wait of 0, a
//   randomization of
//                                                                   1, one attempt, no status, a
//                                                                   long window mean what they say
//   SRE's and failsafe-go's adaptive throttling                     not a budget of ours
//   the lists of retried statuses of clients that are no preset     a policy says them
//   the Idempotency-Key draft's 400, 409, 422                       permanent, as any such status;
//                                                                   409 where a preset lists it
