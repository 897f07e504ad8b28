#include "tests/retry/situation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

using namespace httpretry_test;  // NOLINT

namespace {

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
void only_refused(Situation& s) { s.policy.repeat = Repeat::Refused; }

const Row kRows[] = {
    // The outcome.
    {"a success ends the call", "GET", "200", nothing, "success"},
    {"a redirect that is not followed is a response", "GET", "304", nothing, "success"},
    {"a client error would be the same again", "GET", "404", nothing, "not_retryable"},
    {"so would a missing method", "GET", "501", nothing, "not_retryable"},
    {"a server error passes", "GET", "503", nothing, "retry after 100ms"},
    {"a canceled call stays canceled", "GET", "canceled", nothing, "canceled"},
    {"an open circuit is no failure to repeat", "GET", "circuit_open", nothing, "circuit_open"},
    {"nor is a rate of ours that allows it too late", "GET", "rate_limited", nothing,
     "rate_limited"},
    {"nor a queue that is full", "GET", "queue_full", nothing, "queue_full"},
    {"nor what this process lacks", "GET", "local_shortage", nothing, "local_shortage"},
    {"a pause was the server's word", "GET", "paused", nothing, "server_delay_too_long"},
    {"a response over the limit would be too large again", "GET", "too_large maybe", nothing,
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
    {"POST, 429 with Retry-After, repeat refused", "POST", "429; Retry-After: 2", only_refused,
     "retry after 2s"},
    {"POST, 503 with Retry-After, repeat refused", "POST", "503; Retry-After: 2", only_refused,
     "retry after 2s"},
    {"POST, 421, repeat refused", "POST", "421", only_refused, "retry after 100ms"},
    {"POST, 425, repeat refused", "POST", "425", only_refused, "retry after 100ms"},
    {"POST, never sent, repeat refused", "POST", "connect", only_refused, "retry after 100ms"},
    {"GET, 429, repeat refused", "GET", "429", only_refused, "unsafe_to_repeat"},
    {"GET, 503, repeat refused", "GET", "503", only_refused, "unsafe_to_repeat"},
    {"GET, maybe sent, repeat refused", "GET", "receive maybe", only_refused, "unsafe_to_repeat"},
    // Safety: it may have been done.
    {"GET, maybe sent", "GET", "receive maybe", nothing, "retry after 100ms"},
    {"POST, maybe sent", "POST", "receive maybe", nothing, "unsafe_to_repeat"},
    {"POST, timeout after it went out", "POST", "timeout maybe", nothing, "unsafe_to_repeat"},
    {"POST, part of the response came", "POST", "receive partial", nothing, "unsafe_to_repeat"},
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
    {"the server's two seconds, where ours are five", "GET", "429; Retry-After: 2",
     [](Situation& s) {
       s.policy.server_delay.combine = ServerDelayPolicy::Combine::Server;
       s.policy.throttle_backoff->initial = 5s;
     },
     "retry after 2s"},
    {"and where they are one", "GET", "503; Retry-After: 2",
     [](Situation& s) { s.policy.server_delay.combine = ServerDelayPolicy::Combine::Server; },
     "retry after 2s"},
    {"after the first throttle, the larger wait", "GET", "429; Retry-After: 2",
     [](Situation& s) { s.facts.throttles = 1; }, "retry after 2s"},
    {"after the second in a row, both together", "GET", "429; Retry-After: 2",
     [](Situation& s) { s.facts.failures = s.facts.throttles = 2; }, "retry after 4s"},
    {"unless the policy wants the larger one", "GET", "429; Retry-After: 2",
     [](Situation& s) {
       s.facts.failures = s.facts.throttles = 2;
       s.policy.server_delay.combine = ServerDelayPolicy::Combine::Max;
     },
     "retry after 2s"},
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
    {"half of Envoy's 120 s at most", "GET", "429; Retry-After: 120",
     [](Situation& s) {
       s.policy.max_elapsed_time = kForever;
       s.policy.server_delay.max = 300s;
       s.policy.server_delay.spread = 0.5;
     },
     "retry after 3m"},
    {"a hint over Envoy's 300 s ends the call", "GET", "429; Retry-After: 301",
     [](Situation& s) {
       s.policy.max_elapsed_time = kForever;
       s.policy.server_delay.max = 300s;
       s.policy.server_delay.spread = 0.5;
     },
     "server_delay_too_long"},
    {"a hint before the deadline", "GET", "503; Retry-After: 7",
     [](Situation& s) { s.clocks.deadline = s.clocks.now + 8s; }, "retry after 7s"},
    {"a hint past the deadline", "GET", "503; Retry-After: 7",
     [](Situation& s) { s.clocks.deadline = s.clocks.now + 5s; }, "server_delay_too_long"},
    {"a hint that ends at the deadline", "GET", "503; Retry-After: 7",
     [](Situation& s) { s.clocks.deadline = s.clocks.now + 7s; }, "server_delay_too_long"},
    {"a hint comes after safety", "POST", "500; Retry-After: 9999", nothing, "unsafe_to_repeat"},
    {"a negative pushback", "GET", "503; grpc-retry-pushback-ms: -1", nothing, "not_retryable"},

    // Time.
    {"a wait that ends within the limit", "GET", "503",
     [](Situation& s) { s.clocks.now = s.clocks.started + 59s; }, "retry after 100ms"},
    {"a wait that ends with the limit", "GET", "503",
     [](Situation& s) { s.clocks.now = s.clocks.started + 59900ms; }, "retry after 100ms"},
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
    {"before_wait lets a wait begin at the limit", "GET", "503",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::BeforeWait;
       s.clocks.now = s.clocks.started + 60s;
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
    {"go-retry's WithMaxDuration: 250 ms are left of a second", "GET", "429",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.policy.max_elapsed_time = 250ms;
     },
     "retry after 250ms"},
    {"and 50 ms later on", "GET", "429",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.policy.max_elapsed_time = 250ms;
       s.clocks.now = s.clocks.started + 200ms;
     },
     "retry after 50ms"},
    {"clip_wait never comes before the server's time", "GET", "503; Retry-After: 7",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.clocks.now = s.clocks.started + 59s;
     },
     "elapsed_exhausted"},
    {"clip_wait cuts the spread that comes on top of the server's time", "GET",
     "503; Retry-After: 7",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.policy.server_delay.spread = 0.5;
       s.clocks.now = s.clocks.started + 53s;
     },
     "retry after 7s"},
    {"clip_wait counts the part of the server's time that is obeyed", "GET",
     "503; Retry-After: 120",
     [](Situation& s) {
       s.policy.elapsed_rule = ElapsedRule::ClipWait;
       s.policy.server_delay.over_max = ServerDelayPolicy::OverMax::Clamp;
       s.policy.server_delay.max = 5s;
       s.policy.backoff.initial = s.policy.backoff.max_interval = 100s;
       s.policy.throttle_backoff.reset();
     },
     "retry after 1m"},
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
    {"a poll of a URL that a response named is safe, whatever the policy says", "POST", "202",
     [](Situation& s) {
       s.policy.repeat = Repeat::Never;
       s.policy.retry_on.pending.emplace();
       s.policy.retry_on.pending->statuses = {202};
       s.facts.polls = 1;
       s.facts.polls_url = true;
     },
     "retry after 1s"},
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

TEST_CASE("a retry is unsafe only if nothing but repeat: always allows it") {
  Situation situation;
  situation.facts.repeatable = false;
  situation.policy.repeat = Repeat::Always;
  situation.policy.retry_on.throttle_statuses.add(500);
  const auto is_unsafe = [&](std::string_view text) {
    const auto decision = decision_of(situation, outcome_of(text));
    CHECK(decision.retry);
    return decision.unsafe;
  };
  for (const auto* maybe_executed : {"500", "502", "503", "receive maybe", "timeout maybe"}) {
    CAPTURE(std::string(maybe_executed));
    CHECK(is_unsafe(maybe_executed));
  }
  for (const auto* not_executed :
       {"421", "425", "429", "503; Retry-After: 1", "connect", "receive"}) {
    CAPTURE(std::string(not_executed));
    CHECK_FALSE(is_unsafe(not_executed));
  }
  situation.facts.repeatable = true;
  CHECK_FALSE(is_unsafe("502"));
  situation.facts.repeatable = false;
  situation.facts.polls_url = true;
  CHECK_FALSE(is_unsafe("502"));
  situation.facts.polls_url = false;

  Error error(Errc::Receive);  // as after REFUSED_STREAM
  error.exchange.sent = Sent::Maybe;
  error.exchange.refused = true;
  const auto decision = decision_of(situation, error);
  CHECK(decision.retry);
  CHECK_FALSE(decision.unsafe);
}

TEST_CASE("every reason to end a call has a row, but the budget's, which decide is not told") {
  for (auto reason = Reason::Success; reason <= Reason::Canceled;
       reason = static_cast<Reason>(static_cast<int>(reason) + 1)) {
    const auto has_row = std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
      return to_string(reason) == row.expected;
    });
    CAPTURE(std::string(to_string(reason)));
    CHECK(has_row == (reason != Reason::BudgetExhausted));
  }
}

TEST_CASE("a retry that the budget forbids stops as it stands, and says when to come back") {
  const Situation situation;
  const auto outcome = outcome_of("503; Retry-After: 7");
  const auto classified = classify(situation.policy, Observed(outcome, situation.clocks.wall_now));
  const auto decision = decide(situation.policy, classified, situation.facts, situation.clocks, 1);
  REQUIRE(decision.retry);
  const auto stop = over_budget(decision, classified, situation.facts, situation.clocks);
  CHECK(words(stop) == "budget_exhausted");
  CHECK(limit_text(stop) == "the budget is too low for a retry");
  CHECK(stop.wait == 7s);
  CHECK(stop.retry_at == WallTime(1007s));
}

TEST_CASE("Retry-After is heard with every status that is retried, and 0 is not absent") {
  int retried = 0;
  for (int status = 400; status <= 599; ++status) {
    const auto with = [&](const char* seconds) {
      const auto text = std::to_string(status) + "; Retry-After: " + seconds;
      return decision_of(Situation(), outcome_of(text));
    };
    const auto told = with("7");
    if (!told.retry) continue;
    ++retried;
    CAPTURE(status);
    CHECK(told.wait == 7s);
    CHECK(told.server_delay == 7s);
    const auto now = with("0");
    CHECK(now.retry);
    CHECK(now.server_delay == 0s);
    CHECK(now.wait == now.backoff);
    CHECK_FALSE(with("soon").server_delay.has_value());
  }
  // 403, as GitHub says it; 408, 413, 421, 425, 429; all but four of the 5xx
  CHECK(retried == 102);
}
