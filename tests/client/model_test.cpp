// Every short conversation, against a model of the loop that shares nothing with it.
#include "conversation.hpp"
#include "policies.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

enum class Says { Ok, Failed, Busy, Refused, TimedOut, Missing, Throttled, Pending };
constexpr int kWords = 8;
constexpr Duration kPatience = 2s;  // how long an attempt that times out takes
constexpr Duration kElapsed = 11s;

using Replies = std::vector<Says>;

RetryPolicy model_policy() {
  auto policy = steady_policy();  // 1, 2, 4 s
  policy.throttle_backoff = doubling(1500ms);
  policy.max_elapsed_time = kElapsed;
  auto& pending = policy.retry_on.pending.emplace();
  pending.statuses = {202};
  pending.max = 3;
  pending.backoff = doubling(500ms);
  return policy;
}

Outcome word(Says says) {
  switch (says) {
    case Says::Ok: return Response(200);
    case Says::Failed: return Response(503);
    case Says::Refused: return error_of(Errc::Connect);
    case Says::TimedOut: return error_of(Errc::Timeout);
    case Says::Missing: return Response(404);
    case Says::Throttled: return Response(429);
    case Says::Pending: return Response(202);
    case Says::Busy: break;
  }
  Response busy(503);
  busy.headers.add("Retry-After", "2");
  return busy;
}

struct Story {
  std::vector<Time> sends;
  std::vector<Duration> waits;
  Reason end = Reason::Success;
  friend bool operator==(const Story&, const Story&) = default;
};

Story expected(const Replies& script, bool post) {
  Story story;
  int failures = 0;
  int polls = 0;
  for (Time now;;) {
    const auto says = script[std::min(story.sends.size(), script.size() - 1)];
    const auto end = [&](Reason reason) { return story.end = reason, story; };
    story.sends.push_back(now);
    if (says == Says::TimedOut) now = std::min(now + kPatience, Time(kElapsed));
    if (says == Says::Ok) return end(Reason::Success);
    if (says == Says::Missing) return end(Reason::NotRetryable);

    const bool poll = says == Says::Pending;
    const bool throttled = says == Says::Busy || says == Says::Throttled;
    const int count = poll ? ++polls : ++failures;
    if (count == (poll ? 3 : 4)) return end(Reason::AttemptsExhausted);
    if (post && !throttled && says != Says::Refused) return end(Reason::UnsafeToRepeat);

    const Duration first = poll ? 500ms : throttled ? 1500ms : 1000ms;
    auto wait = first * (1 << (count - 1));
    if (says == Says::Busy) wait = std::max<Duration>(wait, 2s);
    if (now + wait > Time(kElapsed)) return end(Reason::ElapsedExhausted);
    story.waits.push_back(wait);
    now += wait;
  }
}

Story told(const Replies& script, const MiddlewarePtr& middleware, bool post) {
  Conversation talk;
  for (const auto says : script) {
    talk.network->say(word(says), says == Says::TimedOut ? kPatience : Duration());
  }
  auto client = talk.client({middleware});
  const auto outcome = post ? client.post("http://x/", "d") : client.get("http://x/");
  const auto& history = outcome ? outcome->history : outcome.error().history;
  Story story;
  for (const auto& seen : talk.network->requests()) story.sends.push_back(seen.when);
  for (const auto& attempt : history.attempts) {
    CHECK(attempt.retried == attempt.wait.has_value());
    if (attempt.wait) story.waits.push_back(*attempt.wait);
  }
  CHECK(history.attempts.size() == story.sends.size());
  story.end = history.stop_reason;
  return story;
}

std::string text(const Replies& script) {
  constexpr std::array<const char*, kWords> kNames{"200 ",     "503 ", "503+2 ", "refused ",
                                                   "timeout ", "404 ", "429 ",   "202 "};
  std::string names;
  for (const auto says : script) names += kNames[static_cast<std::size_t>(says)];
  return names;
}

// The script that counts up to the given number in the base of the words.
Replies script_of(int length, int number) {
  Replies script;
  for (int i = 0; i < length; ++i, number /= kWords) {
    script.push_back(static_cast<Says>(number % kWords));
  }
  return script;
}

void check_conversations(int length) {
  const auto middleware = retry(model_policy());
  int scripts = 1;
  for (int i = 0; i < length; ++i) scripts *= kWords;
  for (int number = 0; number < 2 * scripts; ++number) {
    const auto script = script_of(length, number / 2);
    const bool post = number % 2 == 1;
    CAPTURE(text(script));
    CAPTURE(post);
    CHECK(told(script, middleware, post) == expected(script, post));
  }
}

}  // namespace

TEST_CASE("every conversation of up to three words goes as the model of the loop says") {
  for (int length = 1; length <= 3; ++length) check_conversations(length);
}

TEST_CASE("every conversation of four words goes as the model of the loop says" *
          doctest::test_suite("large")) {
  check_conversations(4);
}
