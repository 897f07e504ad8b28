#include "lib/core/retry/retry_loop.hpp"

#include "tests/retry/situation.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <sstream>
#include <vector>

using namespace httpretry_test;  // NOLINT

namespace {

// Writes down what it is asked. Allows `tokens` retries, and holds back as many sends as it has
// `waits`.
class NotingAccount final : public RetryAccount {
 public:
  Duration take_send(Time) override {
    if (waits.empty()) return note("begin"), Duration::zero();
    const auto wait = waits.front();
    waits.erase(waits.begin());
    return note("held back"), wait;
  }
  void count_attempt(bool, Time) override {}
  void begin_call(Time) override {}
  RetryPermit end_attempt(BudgetClaim&, const Classified&, AfterAttempt next, Time) override {
    note(next == AfterAttempt::Retry ? "retry" : next == AfterAttempt::Poll ? "poll" : "stop");
    return {next != AfterAttempt::Retry || tokens-- > 0, tokens};
  }
  void cancel(BudgetClaim&, bool, Time) override { note("cancel"); }
  bool take_hedge(BudgetClaim&, Time) override { return true; }
  void give_back_hedge(BudgetClaim&, Time) override {}
  void end_hedge(BudgetClaim&, Time) override {}
  [[nodiscard]] std::optional<std::int64_t> left(Time) const override { return tokens; }

  int tokens = 100;
  std::vector<Duration> waits;
  std::string notes;

 private:
  void note(const char* text) { notes += (notes.empty() ? "" : ", ") + std::string(text); }
};

// Waits of 1, 2, 4 s; four attempts.
RetryPolicy steady() {
  RetryPolicy policy;
  policy.max_attempts = 4;
  policy.backoff.jitter = Backoff::Jitter::None;
  policy.backoff.initial = 1s;
  policy.throttle_backoff.reset();
  policy.adaptive = true;
  return policy;
}

Outcome stale(Sent sent = Sent::Maybe) {
  Error error(Errc::Receive);
  error.exchange.stale_connection = true;
  error.exchange.sent = sent;
  return error;
}

struct Run {
  RetryPolicy policy = steady();
  std::shared_ptr<NotingAccount> limits = std::make_shared<NotingAccount>();
  History history;
  RetryLoop::Options options;
  Duration takes = 0s;           // each attempt
  std::optional<double> random;  // none: as EndedAttempt has it, 0
  int canceled_after = 0;        // that many waits; 0: never
  bool may_resend = true;
  bool replayable = true;
  std::set<std::size_t> progressed;  // the attempts that get a download further, counted from 1
  bool names_url = false;            // each pending response

  // The steps of a call in which `outcomes` come back: "send 1, wait 1s, send 2, stop". It never
  // waits longer than it is told to.
  std::string steps(const std::vector<Outcome>& outcomes) {
    RetryLoop loop(policy, limits, history, options);
    std::string text;
    std::size_t attempts = 0;
    int waits = 0;
    auto step = loop.begin(now_);
    for (; step.kind != RetryStep::Kind::Stop; text += ", ") {
      if (step.kind == RetryStep::Kind::Send) {
        text += "send " + std::to_string(step.number) + (step.fresh_connection ? " fresh" : "");
        now_ += takes;
        const auto& outcome = outcomes.at(attempts++);
        step = ended(loop, outcome, progressed.contains(attempts));
      } else {
        text += "wait " + to_text(step.until - now_);
        now_ = step.until;
        if (++waits == canceled_after) return loop.cancel(now_), text + ", canceled";
        step = loop.begin(now_);
      }
    }
    return text + "stop";
  }
  std::string steps(std::string_view outcomes) {
    std::vector<Outcome> list;
    std::istringstream words{std::string(outcomes)};
    for (std::string word; words >> word;) {
      list.push_back(word == "stale" ? stale() : outcome_of(word));
    }
    return steps(list);
  }

 private:
  RetryStep ended(RetryLoop& loop, const Outcome& outcome, bool has_progressed) {
    EndedAttempt ended;
    ended.now = now_;
    if (random) ended.random = *random;
    ended.outcome = &outcome;
    ended.replayable = replayable;
    ended.progressed = has_progressed;
    auto step = may_resend ? loop.resend(ended) : std::nullopt;
    const auto classified = classify(policy, Observed(outcome, WallTime()));
    ended.names_url = names_url && classified.cls == Class::Pending;
    return step ? *step : loop.end(ended, classified, to_string(classified.rule));
  }

  Time now_{};
};

}  // namespace

TEST_CASE("each attempt is judged, paid for, recorded and waited for, in this order") {
  struct Row {
    const char* outcomes;
    const char* steps;
    const char* limits;
    Reason reason;
  };
  for (const auto& row : {
           Row{"200", "send 1, stop", "begin, stop", Reason::Success},
           Row{"404", "send 1, stop", "begin, stop", Reason::NotRetryable},
           Row{"503 200", "send 1, wait 1s, send 2, stop", "begin, retry, begin, stop",
               Reason::Success},
           Row{"connect 503 404", "send 1, wait 1s, send 2, wait 2s, send 3, stop",
               "begin, retry, begin, retry, begin, stop", Reason::NotRetryable},
           Row{"503 503 503 503", "send 1, wait 1s, send 2, wait 2s, send 3, wait 4s, send 4, stop",
               "begin, retry, begin, retry, begin, retry, begin, stop", Reason::AttemptsExhausted},
           Row{"canceled", "send 1, stop", "begin, stop", Reason::Canceled},
           Row{"202 202 503 202 200",
               "send 1, wait 5s, send 2, wait 5s, send 3, wait 1s, send 4, wait 5s, send 5, stop",
               "begin, poll, begin, poll, begin, retry, begin, poll, begin, stop", Reason::Success},
       }) {
    CAPTURE(row.outcomes);
    Run run;
    auto& pending = run.policy.retry_on.pending.emplace();
    pending.statuses = {202};
    pending.backoff.initial = 5s;
    CHECK(run.steps(row.outcomes) == row.steps);
    CHECK(run.limits->notes == row.limits);
    CHECK(run.history.stop_reason == row.reason);
  }
}

TEST_CASE("an attempt that gets a download further counts for all limits but max_attempts") {
  struct Row {
    std::set<std::size_t> progressed;
    std::function<void(Run&)> change;
    const char* steps;
    Reason reason;
  };
  for (const auto& row : {
           Row{{}, {}, "send 1, wait 1s, send 2, stop", Reason::AttemptsExhausted},
           // Neither do the waits grow.
           Row{{1, 2, 4},
               {},
               "send 1, wait 1s, send 2, wait 1s, send 3, wait 1s, send 4, wait 1s, send 5, stop",
               Reason::AttemptsExhausted},
           Row{{1, 2, 3, 4},
               [](Run& run) { run.limits->tokens = 2; },
               "send 1, wait 1s, send 2, wait 1s, send 3, stop",
               Reason::BudgetExhausted},
           Row{{1, 2, 3, 4},
               [](Run& run) { run.policy.max_elapsed_time = 1500ms; },
               "send 1, wait 1s, send 2, stop",
               Reason::ElapsedExhausted},
           // No retry means no retry.
           Row{{1, 2},
               [](Run& run) { run.policy.max_attempts = 1; },
               "send 1, stop",
               Reason::AttemptsExhausted},
       }) {
    Run run;
    run.policy.max_attempts = 2;
    run.progressed = row.progressed;
    if (row.change) row.change(run);
    CHECK(run.steps("timeout timeout timeout timeout timeout") == row.steps);
    CHECK(run.history.stop_reason == row.reason);
  }
}

TEST_CASE("a retry that the budget refuses ends the call, and so does a limit of its own") {
  struct Row {
    const char* outcomes;
    std::function<void(Run&)> change;
    const char* steps;
    const char* limits;
    Reason reason;
    const char* detail;
  };
  for (const auto& row : {
           Row{"503 503", [](Run& run) { run.limits->tokens = 1; }, "send 1, wait 1s, send 2, stop",
               "begin, retry, begin, retry", Reason::BudgetExhausted,
               "the budget is too low for a retry"},
           Row{"503", [](Run& run) { run.policy.max_attempts = 1; }, "send 1, stop", "begin, stop",
               Reason::AttemptsExhausted, "max_attempts 1 reached"},
           Row{"503 503", [](Run& run) { run.options.deadline = Time(2s); },
               "send 1, wait 1s, send 2, stop", "begin, retry, begin, stop",
               Reason::ElapsedExhausted,
               "a wait of 2.00 s would pass the deadline by 1.00 s; the attempts took 0 s, the "
               "waits "
               "1.00 s"},
           Row{"503", [](Run& run) { run.policy.max_elapsed_time = 500ms; }, "send 1, stop",
               "begin, stop", Reason::ElapsedExhausted,
               "a wait of 1.00 s would pass max_elapsed_time 500 ms by 500 ms; the attempt took 0 "
               "s"},
           Row{"503", [](Run& run) { run.options.repeatable = false; }, "send 1, stop",
               "begin, stop", Reason::UnsafeToRepeat,
               "the server may have executed the request, and executing it twice may do harm"},
           Row{"503 503", [](Run& run) { run.canceled_after = 1; }, "send 1, wait 1s, canceled",
               "begin, retry, cancel", Reason::Canceled, ""},
       }) {
    CAPTURE(row.detail);
    Run run;
    row.change(run);
    CHECK(run.steps(row.outcomes) == row.steps);
    CHECK(run.limits->notes == row.limits);
    CHECK(run.history.stop_reason == row.reason);
    CHECK(run.history.detail == row.detail);
  }
}

TEST_CASE("the send rate holds an attempt back, and ends a call that would have to wait too long") {
  struct Row {
    std::vector<Duration> waits;
    Time deadline;
    ElapsedRule rule;
    const char* steps;
    const char* limits;
    const char* detail;
  };
  for (const auto& row : {
           Row{{2s},
               kNever,
               ElapsedRule::IncludeWait,
               "wait 2s, send 1, stop",
               "held back, begin, stop",
               ""},
           Row{{2s, 1s},
               kNever,
               ElapsedRule::IncludeWait,
               "wait 2s, wait 1s, send 1, stop",
               "held back, held back, begin, stop",
               ""},
           Row{{2s},
               Time(2s),
               ElapsedRule::IncludeWait,
               "stop",
               "held back, cancel",
               "the send rate allows the next attempt in 2.00 s, too late"},
           Row{{1min},
               kNever,
               ElapsedRule::IncludeWait,
               "stop",
               "held back, cancel",
               "the send rate allows the next attempt in 1.00 min, too late"},
           Row{{1min},
               kNever,
               ElapsedRule::BeforeWait,
               "wait 1m, send 1, stop",
               "held back, begin, stop",
               ""},
       }) {
    CAPTURE(row.steps);
    Run run;
    run.limits->waits = row.waits;
    run.options.deadline = row.deadline;
    run.policy.elapsed_rule = row.rule;
    CHECK(run.steps("200") == row.steps);
    CHECK(run.limits->notes == row.limits);
    CHECK(run.history.detail == row.detail);
  }
}

TEST_CASE("after a stale connection a request is sent once on a new one, without cost or wait") {
  struct Row {
    const char* outcomes;
    std::function<void(Run&)> change;
    const char* steps;
    const char* limits;
  };
  for (const auto& row : {
           Row{"stale 200", [](Run&) {}, "send 1, wait 0s, send 2 fresh, stop",
               "begin, begin, stop"},
           Row{"stale stale 200", [](Run&) {},
               "send 1, wait 0s, send 2 fresh, wait 1s, send 3 fresh, stop",
               "begin, begin, retry, begin, stop"},
           Row{"stale 503 200", [](Run&) {}, "send 1, wait 0s, send 2 fresh, wait 1s, send 3, stop",
               "begin, begin, retry, begin, stop"},
           Row{"stale 200", [](Run& run) { run.may_resend = false; },
               "send 1, wait 1s, send 2 fresh, stop", "begin, retry, begin, stop"},
           Row{"stale", [](Run& run) { run.options.repeatable = false; }, "send 1, stop",
               "begin, stop"},
           Row{"stale", [](Run& run) { run.replayable = false; }, "send 1, stop", "begin, stop"},
           Row{"stale", [](Run& run) { run.policy.repeat = Repeat::Never; }, "send 1, stop",
               "begin, stop"},
       }) {
    CAPTURE(row.outcomes);
    Run run;
    row.change(run);
    CHECK(run.steps(row.outcomes) == row.steps);
    CHECK(run.limits->notes == row.limits);
  }
}

TEST_CASE("an attempt is recorded with its outcome, its time and what was decided") {
  Run run;
  run.takes = 100ms;
  run.options.call_started = Time(-10s);  // a redirect came before
  run.history.attempts.emplace_back();
  Error reset(Errc::Receive, "connection reset");
  reset.exchange.sent = Sent::Maybe;
  reset.exchange.wire_sends = 1;
  reset.curl_code = 56;
  CHECK(run.steps({reset, outcome_of("503; Retry-After: 7"), outcome_of("412")}) ==
        "send 2, wait 1s, send 3 fresh, wait 7s, send 4, stop");

  const auto& attempts = run.history.attempts;
  REQUIRE(attempts.size() == 4);
  CHECK(attempts[1].number == 2);
  CHECK(attempts[1].start == 10s);
  CHECK(attempts[1].duration == 100ms);
  CHECK(attempts[1].error == Errc::Receive);
  CHECK(attempts[1].error_message == "connection reset");
  CHECK(attempts[1].curl_code == 56);
  CHECK(attempts[1].sent == Sent::Maybe);
  CHECK(attempts[1].wire_sends == 1);
  CHECK(attempts[1].rule == "transport: receive");
  CHECK(attempts[1].cls == Class::Transport);
  CHECK(attempts[1].backoff == 1s);
  CHECK(attempts[1].wait == 1s);
  CHECK(attempts[1].budget_left == 99);
  CHECK(attempts[1].retried);
  CHECK(attempts[2].start == 11100ms);
  CHECK(attempts[2].status == 503);
  CHECK(attempts[2].server_delay == 7s);
  CHECK(attempts[2].server_delay_source == "retry-after");
  CHECK(attempts[2].backoff == 2s);
  CHECK(attempts[2].wait == 7s);
  CHECK(attempts[3].status == 412);
  CHECK(attempts[3].ambiguous);
  CHECK_FALSE(attempts[3].retried);
  CHECK_FALSE(attempts[3].wait.has_value());
}

TEST_CASE("what changes nothing is never ambiguous") {
  Run run;
  run.options.changes_nothing = true;
  (void)run.steps("503 412");
  CHECK_FALSE(run.history.attempts[1].ambiguous);
}

TEST_CASE("an attempt is told its deadline, and until when the response must have begun") {
  struct Row {
    ElapsedRule rule;
    Time now;
    Time until;
    Time respond_by;
  };
  for (const auto& row : {
           Row{ElapsedRule::IncludeWait, Time(1s), Time(6s), Time(10s)},
           Row{ElapsedRule::BeforeWait, Time(1s), Time(6s), Time(10s)},
           Row{ElapsedRule::IncludeWait, Time(11s), Time(16s), Time(10s)},
           Row{ElapsedRule::BeforeWait, Time(11s), Time(16s), kNever},
           Row{ElapsedRule::ClipWait, Time(10s), Time(15s), kNever},
       }) {
    Run run;
    run.policy.attempt_timeout = 5s;
    run.policy.max_elapsed_time = 10s;
    run.policy.elapsed_rule = row.rule;
    RetryLoop loop(run.policy, run.limits, run.history, run.options);
    const auto step = loop.begin(row.now);
    CHECK(step.until == row.until);
    CHECK(step.respond_by == row.respond_by);
  }
}

TEST_CASE("the wait grows from the second throttle in a row, whatever the server asks for") {
  Run run;
  run.policy.max_attempts = 9;
  CHECK(run.steps({outcome_of("429; Retry-After: 3"), outcome_of("429; Retry-After: 3"),
                   outcome_of("503"), outcome_of("429; Retry-After: 3"),
                   outcome_of("429; Retry-After: 3"), Response(200)}) ==
        "send 1, wait 3s, send 2, wait 5s, send 3, wait 4s, send 4, wait 8s, send 5, wait 19s, "
        "send 6, stop");
}

TEST_CASE("failures and polls each have a backoff that grows from its own last wait") {
  Run run;
  run.random = 1;
  run.policy.backoff.kind = Backoff::Kind::Decorrelated;
  run.policy.backoff.multiplier = 3;
  run.policy.retry_on.pending.emplace().statuses = {202};
  run.policy.retry_on.pending->backoff = run.policy.backoff;
  run.policy.retry_on.pending->backoff.initial = 100ms;
  CHECK(run.steps("503 202 503 202 200") ==
        "send 1, wait 3s, send 2, wait 300ms, send 3, wait 9s, send 4, wait 900ms, send 5, stop");
}

TEST_CASE("a backoff of one's own is asked after failures and polls, and is never below zero") {
  Run run;
  std::vector<int> asked;
  const BackoffFunction own = [&](const RetryPolicy&, const Classified&, const RetryState& state,
                                  double) {
    asked.push_back(state.failures);
    return state.failures == 1 ? Duration(7s) : Duration(-1s);
  };
  run.options.backoff = &own;
  CHECK(run.steps("503 503 404") == "send 1, wait 7s, send 2, wait 0s, send 3, stop");
  CHECK(asked == std::vector{1, 2});
}

TEST_CASE("once a response has named the URL to poll, all is repeated that a GET may be") {
  for (const auto repeat : {Repeat::Safe, Repeat::Never, Repeat::Refused}) {
    CAPTURE(static_cast<int>(repeat));
    Run run;
    run.policy.repeat = repeat;
    run.policy.retry_on.pending.emplace().statuses = {202};
    run.options.repeatable = false;
    CHECK(run.steps("202 200") == "send 1, stop");
    CHECK(run.history.stop_reason == Reason::UnsafeToRepeat);

    run.history = {};
    run.names_url = true;
    CHECK(run.steps("202 503 stale 202 200") ==
          "send 1, wait 1s, send 2, wait 1s, send 3, wait 0s, send 4 fresh, wait 1s, "
          "send 5, stop");
  }
}

TEST_CASE("a 404 to a poll is not the work of the request, nor of an earlier poll") {
  Run run;
  run.policy.retry_on.pending.emplace().statuses = {202};
  run.names_url = true;
  CHECK(run.steps("503 202 503 404") ==
        "send 1, wait 1s, send 2, wait 1s, send 3, wait 2s, send 4, stop");
  CHECK_FALSE(run.history.attempts[3].ambiguous);

  run.names_url = false;
  CHECK(run.steps("503 404") == "send 5, wait 1s, send 6, stop");
  CHECK(run.history.attempts[5].ambiguous);
}
