#include <httpretry/retry.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/policy/random.hpp"

using namespace std::chrono_literals;
using namespace httpretry;  // NOLINT: the test speaks of little else
using httpretry_test::Random;

namespace {

struct Situation {
  RetryPolicy policy;
  AttemptFacts facts;
  Clocks clocks{Time(10s), Time(10s), kNever, WallTime(1000s)};
};

// "503", "503; Retry-After: 7", or an error and what was sent: "receive maybe".
Outcome outcome_of(std::string_view text) {
  const auto space = text.find_first_of(" ;");
  const auto word = text.substr(0, space);
  if (word[0] >= '0' && word[0] <= '9') {
    Response response(std::stoi(std::string(word)));
    const auto field = text.find("; ");
    if (field != std::string_view::npos) {
      const auto colon = text.find(": ");
      response.headers.add(text.substr(field + 2, colon - field - 2), text.substr(colon + 2));
    }
    return response;
  }
  auto code = Errc::InvalidRequest;
  while (to_string(code) != word) code = static_cast<Errc>(static_cast<int>(code) + 1);
  Error error(code);
  if (text.ends_with("maybe")) error.exchange.sent = Sent::Maybe;
  if (text.ends_with("partial")) error.exchange.sent = Sent::Answered;
  error.partial = text.ends_with("partial");
  return error;
}

Decision decision_of(const Situation& situation, const Outcome& outcome, double u = 1) {
  const auto classified = classify(situation.policy, Observed(outcome, situation.clocks.wall_now));
  return decide(situation.policy, classified, situation.facts, situation.clocks, u);
}

std::string words(const Decision& decision) {
  if (!decision.retry) return std::string(to_string(decision.reason));
  return "retry after " + to_text(decision.wait);
}

// One row, one rule. The random number is 1: waits are the longest that jitter allows, 100 ms
// doubled for the standard policy and 1 s doubled where it is throttled.
struct Row {
  const char* rule;
  const char* method;
  const char* outcome;
  void (*change)(Situation&);
  const char* expected;
};

void nothing(Situation&) {}

const Row kRows[] = {
    // The outcome.
    {"a success ends the call", "GET", "200", nothing, "success"},
    {"a redirect that is not followed is an answer", "GET", "304", nothing, "success"},
    {"a client error would be the same again", "GET", "404", nothing, "not_retryable"},
    {"so would a missing method", "GET", "501", nothing, "not_retryable"},
    {"a server error passes", "GET", "503", nothing, "retry after 100ms"},
    {"a canceled call stays canceled", "GET", "canceled", nothing, "canceled"},
    {"an open circuit is no failure to repeat", "GET", "circuit_open", nothing, "circuit_open"},
    {"an answer over the limit would be too large again", "GET", "too_large maybe", nothing,
     "not_retryable"},
    {"a misdirected request gets one more connection", "POST", "421", nothing, "retry after 100ms"},
    {"and not two", "POST", "421", [](Situation& s) { s.facts.once_used = true; }, "not_retryable"},
    {"what is not HTTP is asked for once more", "GET", "protocol maybe", nothing,
     "retry after 100ms"},
    {"and not twice", "GET", "protocol maybe", [](Situation& s) { s.facts.once_used = true; },
     "not_retryable"},

    // Attempts.
    {"the third attempt may be followed by a fourth", "GET", "503",
     [](Situation& s) { s.facts.failures = 3; }, "retry after 400ms"},
    {"the fourth is the last", "GET", "503", [](Situation& s) { s.facts.failures = 4; },
     "attempts_exhausted"},
    {"max_attempts 1 means no retry", "GET", "503", [](Situation& s) { s.policy.max_attempts = 1; },
     "attempts_exhausted"},
    {"unlimited attempts", "GET", "503",
     [](Situation& s) {
       s.policy.max_attempts.reset();
       s.facts.failures = 1000;
     },
     "retry after 20s"},
    {"slots give up by themselves", "GET", "503",
     [](Situation& s) {
       s.policy.max_attempts.reset();
       s.policy.backoff.kind = Backoff::Kind::Slots;
       s.facts.failures = 16;
     },
     "attempts_exhausted"},
    {"attempts come before safety", "POST", "receive maybe",
     [](Situation& s) { s.facts.failures = 4; }, "attempts_exhausted"},

    // What can be sent again.
    {"a body that is gone ends the call", "PUT", "503",
     [](Situation& s) { s.facts.replayable = false; }, "not_replayable"},
    {"also where nothing was sent", "PUT", "connect",
     [](Situation& s) { s.facts.replayable = false; }, "not_replayable"},
    {"what the user has seen is not taken back", "GET", "receive partial",
     [](Situation& s) { s.facts.streaming = true; }, "not_replayable"},

    // Safety: nothing was sent.
    {"GET, never sent", "GET", "connect", nothing, "retry after 100ms"},
    {"POST, never sent", "POST", "connect", nothing, "retry after 100ms"},
    {"POST, no address", "POST", "resolve", nothing, "retry after 100ms"},
    {"POST, timeout before it went out", "POST", "timeout", nothing, "retry after 100ms"},
    {"POST, never sent, repeat never", "POST", "connect",
     [](Situation& s) { s.policy.repeat = Repeat::Never; }, "retry after 100ms"},
    // Safety: the server refused.
    {"POST, 429", "POST", "429", nothing, "retry after 1s"},
    {"POST, 425", "POST", "425", nothing, "retry after 100ms"},
    {"POST, 503 with Retry-After", "POST", "503; Retry-After: 2", nothing, "retry after 2s"},
    {"POST, 429, repeat never", "POST", "429",
     [](Situation& s) { s.policy.repeat = Repeat::Never; }, "unsafe_to_repeat"},
    // Safety: it may have been done.
    {"GET, maybe sent", "GET", "receive maybe", nothing, "retry after 100ms"},
    {"POST, maybe sent", "POST", "receive maybe", nothing, "unsafe_to_repeat"},
    {"POST, timeout after it went out", "POST", "timeout maybe", nothing, "unsafe_to_repeat"},
    {"POST, part of the answer came", "POST", "receive partial", nothing, "unsafe_to_repeat"},
    {"POST, maybe sent, repeat always", "POST", "receive maybe",
     [](Situation& s) { s.policy.repeat = Repeat::Always; }, "retry after 100ms"},
    {"GET, maybe sent, repeat never", "GET", "receive maybe",
     [](Situation& s) { s.policy.repeat = Repeat::Never; }, "unsafe_to_repeat"},
    // Safety: answered.
    {"POST, 503 without Retry-After", "POST", "503", nothing, "unsafe_to_repeat"},
    {"POST, 500", "POST", "500", nothing, "unsafe_to_repeat"},
    {"POST, 408", "POST", "408", nothing, "unsafe_to_repeat"},
    {"GET, 408", "GET", "408", nothing, "retry after 100ms"},
    {"POST, 502, repeat always", "POST", "502",
     [](Situation& s) { s.policy.repeat = Repeat::Always; }, "retry after 100ms"},

    // The server's hint.
    {"the larger wait counts", "GET", "503; Retry-After: 7", nothing, "retry after 7s"},
    {"zero is a hint, and ours is larger", "GET", "429; Retry-After: 0", nothing, "retry after 1s"},
    {"combine server takes the hint alone", "GET", "429; Retry-After: 0",
     [](Situation& s) { s.policy.server_delay.combine = ServerDelayPolicy::Combine::Server; },
     "retry after 0s"},
    {"combine own hears nothing", "GET", "429; Retry-After: 3600",
     [](Situation& s) { s.policy.server_delay.combine = ServerDelayPolicy::Combine::Own; },
     "retry after 1s"},
    {"the longest hint that is waited for", "GET", "429; Retry-After: 60",
     [](Situation& s) { s.policy.max_elapsed_time = kForever; }, "retry after 1m"},
    {"one second more ends the call now", "GET", "429; Retry-After: 61",
     [](Situation& s) { s.policy.max_elapsed_time = kForever; }, "server_delay_too_long"},
    {"or is cut, where the policy says so", "GET", "429; Retry-After: 61",
     [](Situation& s) {
       s.policy.max_elapsed_time = kForever;
       s.policy.server_delay.over_max = ServerDelayPolicy::OverMax::Clamp;
     },
     "retry after 1m"},
    {"a hint without end ends the call", "GET", "429; Retry-After: 99999999999999999999", nothing,
     "server_delay_too_long"},
    {"max_over_own bounds what a hint adds", "GET", "500; x-amz-retry-after: 10000",
     [](Situation& s) { s.policy.server_delay.max_over_own = 5s; }, "retry after 5.1s"},
    {"spread comes on top of the hint", "GET", "503; Retry-After: 10",
     [](Situation& s) { s.policy.server_delay.spread = 0.5; }, "retry after 15s"},
    {"a hint past the deadline", "GET", "503; Retry-After: 7",
     [](Situation& s) { s.clocks.deadline = s.clocks.now + 5s; }, "server_delay_too_long"},
    {"a hint comes after safety", "POST", "500; Retry-After: 9999", nothing, "unsafe_to_repeat"},
    {"a negative pushback", "GET", "503; grpc-retry-pushback-ms: -1", nothing, "not_retryable"},

    // Time.
    {"a wait that ends within the limit", "GET", "503",
     [](Situation& s) { s.clocks.now = s.clocks.started + 59s; }, "retry after 100ms"},
    {"a wait that would end past it is not begun", "GET", "503",
     [](Situation& s) { s.clocks.now = s.clocks.started + 59950ms; }, "elapsed_exhausted"},
    {"a hint past it neither", "GET", "503; Retry-After: 50",
     [](Situation& s) { s.clocks.now = s.clocks.started + 20s; }, "elapsed_exhausted"},
    {"a wait past the deadline is not begun", "GET", "503",
     [](Situation& s) { s.clocks.deadline = s.clocks.now + 50ms; }, "elapsed_exhausted"},
    {"before_wait lets the last wait overrun", "GET", "503",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::BeforeWait;
       s.clocks.now = s.clocks.started + 59990ms;
     },
     "retry after 100ms"},
    {"before_wait counts what is spent", "GET", "503",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::BeforeWait;
       s.clocks.now = s.clocks.started + 60001ms;
     },
     "elapsed_exhausted"},
    {"clip_wait shortens the last wait", "GET", "503",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.clocks.now = s.clocks.started + 59960ms;
     },
     "retry after 40ms"},
    {"clip_wait never comes before the server's time", "GET", "503; Retry-After: 7",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.clocks.now = s.clocks.started + 59s;
     },
     "elapsed_exhausted"},
    {"clip_wait ends when the time is used up", "GET", "503",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.clocks.now = s.clocks.started + 60s;
     },
     "elapsed_exhausted"},

    // Pending answers.
    {"not yet: a second, whatever the attempts", "GET", "202",
     [](Situation& s) {
       s.policy.retry_on.pending.emplace();
       s.policy.retry_on.pending->statuses = {202};
       s.facts.failures = 9;
       s.facts.polls = 7;
     },
     "retry after 1s"},
    {"polls have a limit of their own", "GET", "202",
     [](Situation& s) {
       s.policy.retry_on.pending.emplace();
       s.policy.retry_on.pending->statuses = {202};
       s.policy.retry_on.pending->max = 7;
       s.facts.polls = 7;
     },
     "attempts_exhausted"},
    {"asking again needs safety as any repeat", "POST", "202",
     [](Situation& s) {
       s.policy.retry_on.pending.emplace();
       s.policy.retry_on.pending->statuses = {202};
       s.facts.polls = 1;
     },
     "unsafe_to_repeat"},
    {"a poll hears the server", "GET", "202; Retry-After: 9",
     [](Situation& s) {
       s.policy.retry_on.pending.emplace();
       s.policy.retry_on.pending->statuses = {202};
       s.facts.polls = 1;
     },
     "retry after 9s"},
};

}  // namespace

TEST_CASE("the rules of a retry, one a row") {
  for (const auto& row : kRows) {
    INFO(std::string(row.rule) << ": " << std::string(row.method) << ", "
                               << std::string(row.outcome));
    Situation situation;
    situation.facts.repeatable = std::string_view(row.method) != "POST";
    row.change(situation);

    CHECK(words(decision_of(situation, outcome_of(row.outcome))) == std::string(row.expected));
  }
}

TEST_CASE("a stop says which limit and by how much") {
  Situation situation;
  const auto text = [&](const char* outcome) {
    return limit_text(decision_of(situation, outcome_of(outcome)));
  };
  CHECK(text("404").empty());
  CHECK(text("429; Retry-After: 120") ==
        "retry-after asks for 2m, 1m more than server_delay.max 1m");
  situation.clocks.now = situation.clocks.started + 59950ms;
  CHECK(text("503") == "a wait of 100ms would pass max_elapsed_time 1m by 50ms");
  situation.clocks.deadline = situation.clocks.now + 40ms;
  CHECK(text("503") == "a wait of 100ms would pass the deadline by 60ms");
  situation.facts.failures = 4;
  CHECK(text("503") == "max_attempts 4 reached");
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

TEST_CASE("durations as a policy file writes them") {
  CHECK(to_text(0ns) == "0s");
  CHECK(to_text(1ns) == "1ns");
  CHECK(to_text(51200ns) == "51.2us");
  CHECK(to_text(250ms) == "250ms");
  CHECK(to_text(1500ms) == "1.5s");
  CHECK(to_text(90s) == "1m30s");
  CHECK(to_text(1h + 1ms) == "1h0.001s");
  CHECK(to_text(24h) == "24h");
  CHECK(to_text(kForever) == "none");
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

TEST_CASE("the extremes of every clock are survived") {
  for (const auto now : {Time::min(), Time(0ns), Time::max()}) {
    for (const auto wall : {WallTime::min(), WallTime(0ns), WallTime::max()}) {
      Situation situation;
      situation.clocks = {now, Time(0ns), Time::max() - 1ns, wall};
      static_cast<void>(decision_of(situation, outcome_of("429; Retry-After: 999999999999999")));
      static_cast<void>(decision_of(situation, outcome_of("503")));
    }
  }
}

// Published cases that have no test here, and why:
//
//   Polly's decorrelated V2 and its jittered constant and linear    not kinds of ours
//   google-http-java-client's whole-millisecond draws               our waits keep nanoseconds
//   cenkalti, resilience4j: intervals cut at each step              ours come from one power: 1 ns
//   gax-go, google-cloud-cpp (ranges that slide), folly (log-normal), tenacity, stamina, got, ky,
//     axios-retry, tower, userver, aws-c-io, wget2, google-dotnet   not kinds of ours, or the same
//                                                                   formulas with other numbers
//   go-retry's Fibonacci                                            not a kind of ours
//   aws-sdk-cpp's legacy jitter before the cap                      a trap, not a model; cap: after
//                                                                   is tested with Drive and Azure
//   the variant of AWS's cubic table in Go and Rust                 an artefact of its own test
//   AWS's clock skew, long polling                                  see aws_scenarios_test
//   envoy's documented 25, 75, 175 ms                               describes older code
//   envoy's "discard and ask the next header" over a limit          ours stops and says when
//   ky's invalid Retry-After that blocks the next header            ours asks the next source
//   urllib3's first wait of 0, its backoff after redirects          not ours: one curve a call
//   gRPC hedging and validation; Finagle's bounds; go-retry's
//     and Google's preconditions; proto3 durations as input         what a policy may say is the
//                                                                   loader's
//   the AWS jitter simulation                                       compares algorithms, not code
//   SRE's and failsafe-go's adaptive throttling                     not a budget of ours
//   other clients' lists of retried statuses                        presets hold those that we ship
//   the Idempotency-Key draft's 400, 409, 422                       permanent, as any such status
