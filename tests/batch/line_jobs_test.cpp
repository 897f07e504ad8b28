// Tests how LineJobs judges the outcome of a call.
#include "lib/extras/batch/line_jobs.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

namespace {

constexpr int kMostAttempts = 5;

BatchOptions options(Repeat repeat = Repeat::Safe, std::optional<int> most = kMostAttempts) {
  RetryPolicy policy;
  policy.max_attempts = most;
  policy.repeat = repeat;
  ResolvedPolicy resolved;
  resolved.policy = std::make_shared<RetryPolicy>(policy);
  BatchOptions options;
  options.policies = PolicySet(resolved);
  return options;
}

// An attempt for each error.
History history_with(const std::vector<Errc>& errors, Reason reason) {
  History history;
  history.stop_reason = reason;
  for (const auto error : errors) {
    auto& attempt = history.attempts.emplace_back();
    attempt.number = static_cast<int>(history.attempts.size());
    attempt.error = error;
  }
  return history;
}

// The date of all tests: 2027-01-15T08:00:00Z.
LineJobsStore store_of_tests() {
  LineJobsStore store;
  store.date_now = [] { return WallTime(std::chrono::seconds(1'800'000'000)); };
  return store;
}

Verdict verdict_on(const Job& job, Outcome outcome, BatchOptions with = options()) {
  LineJobs jobs(std::move(with), store_of_tests());
  const auto prepared = jobs.prepare(job);
  REQUIRE(std::holds_alternative<Prepared>(prepared));
  return jobs.judge(job, std::get<Prepared>(prepared), std::move(outcome));
}

}  // namespace

TEST_CASE("the attempts of a job are those of all its calls, without those that met a shortage") {
  using enum Errc;
  using What = Verdict::What;
  struct Row {
    Errc error;
    Reason reason;
    int attempts_before;
    std::vector<Errc> attempts;
    What what;
    int attempts_after;
  };
  const std::vector<Row> rows = {
      {Timeout, Reason::AttemptsExhausted, 0, {Timeout, Timeout}, What::End, 2},
      {Timeout, Reason::AttemptsExhausted, 3, {Timeout, Timeout}, What::End, 5},
      {Timeout, Reason::ServerDelayTooLong, 3, {Timeout, Timeout}, What::Wait, 5},
      {Timeout, Reason::BudgetExhausted, 0, {Timeout}, What::Wait, 1},
      {Timeout, Reason::BudgetExhausted, 3, {Timeout}, What::Wait, 4},
      {Timeout, Reason::BudgetExhausted, 4, {Timeout}, What::End, 5},
      {Timeout, Reason::BudgetExhausted, 3, {Timeout, Timeout}, What::End, 5},
      {CircuitOpen, Reason::CircuitOpen, 3, {}, What::Wait, 3},
      {CircuitOpen, Reason::CircuitOpen, 3, {Timeout, CircuitOpen}, What::Wait, 5},
      {LocalShortage, Reason::LocalShortage, 3, {LocalShortage}, What::GiveBack, 3},
      {LocalShortage, Reason::LocalShortage, 3, {Timeout, LocalShortage}, What::Wait, 4},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const auto& row = rows[i];
    Job job;
    job.text = "http://a.test/";
    job.attempts = row.attempts_before;
    Error error(row.error);
    error.history = history_with(row.attempts, row.reason);
    error.history.retry_at = std::chrono::system_clock::now() + 1h;
    const auto verdict = verdict_on(job, error);
    CHECK(verdict.what == row.what);
    CHECK((row.what == What::End ? verdict.end.attempts : verdict.attempts) == row.attempts_after);
    if (row.what == What::End) CHECK(verdict.end.state == State::Dead);
  }
}

TEST_CASE("a job that succeeds in a later call says how many attempts it took in all") {
  Job job;
  job.text = "http://a.test/";
  job.attempts = 3;
  Response response(200);
  response.history = history_with({Errc::Timeout}, Reason::Success);
  response.history.attempts.emplace_back();
  const auto verdict = verdict_on(job, response);
  CHECK(verdict.what == Verdict::What::End);
  CHECK(verdict.end.state == State::Done);
  CHECK(verdict.end.attempts == 5);
}

namespace {

constexpr const char* kGet = "http://a.test/";
constexpr const char* kPost = R"({"url":"http://a.test/","body":"x"})";

Job job_with(std::string text) {
  Job job;
  job.number = 7;
  job.id = "7";
  job.text = std::move(text);
  return job;
}

std::string with_deadline(const std::string& date) {
  return R"({"url":"http://a.test/","deadline":")" + date + "\"}";
}

}  // namespace

TEST_CASE("a job is sent before its deadline, and while a server remembers its key") {
  struct Row {
    std::string text;
    std::string key;
    std::optional<Duration> age;  // since when it may have been sent
    Repeat repeat;
    std::string reason;  // why it is not sent; empty: it is
    bool is_unsafe = false;
  };
  const std::vector<Row> rows = {
      {kPost, "", {}, Repeat::Safe, "", true},
      {kPost, "", 2h, Repeat::Safe, "", true},
      {kPost, "", {}, Repeat::Always, ""},
      {kPost, "k", {}, Repeat::Safe, ""},
      {kPost, "k", 1ms, Repeat::Safe, ""},
      {kPost, "k", 1h, Repeat::Safe, ""},
      {kPost, "k", 1h + 1ms, Repeat::Safe, "key_too_old"},
      {kPost, "k", 1h + 1ms, Repeat::Always, ""},
      {kPost, "k", {}, Repeat::Never, "", true},
      {kGet, "", {}, Repeat::Safe, ""},
      {kGet, "", {}, Repeat::Never, "", true},
      {kGet, "k", 2h, Repeat::Safe, ""},
      {with_deadline("2027-01-15T07:59:59Z"), "", {}, Repeat::Safe, "deadline"},
      {with_deadline("2027-01-15T08:00:00Z"), "", {}, Repeat::Safe, "deadline"},
      {with_deadline("2027-01-15T08:00:00.001Z"), "", {}, Repeat::Safe, ""},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const auto& row = rows[i];
    auto with = options(row.repeat);
    with.key_lifetime = 1h;
    const auto store = store_of_tests();
    auto job = job_with(row.text);
    job.key = row.key;
    if (row.age) {
      const auto age = std::chrono::duration_cast<WallTime::duration>(*row.age);
      job.maybe_sent_since = store.date_now() - age;
    }
    LineJobs jobs(with, store);
    const auto prepared = jobs.prepare(job);
    const auto* const end = std::get_if<JobEnd>(&prepared);
    CHECK((end != nullptr ? end->reason : std::string()) == row.reason);
    if (end != nullptr) {
      const bool is_dead = row.reason == "deadline";
      CHECK(end->state == (is_dead ? State::Dead : State::Unknown));
      CHECK(end->result.empty() != is_dead);
      CHECK(end->dead_letter.empty() != is_dead);
    } else {
      const auto& call = std::get<Prepared>(prepared);
      CHECK(call.unsafe == row.is_unsafe);
      CHECK(call.request.headers().contains("Idempotency-Key") == !row.key.empty());
      CHECK((call.options.deadline == kNever) == (row.text == kGet || row.text == kPost));
    }
  }
}

TEST_CASE("only a request that certainly was not executed, or may be twice, is sent again") {
  using enum Errc;
  using What = Verdict::What;
  struct Row {
    const char* text;
    Errc error;
    Reason reason;
    Sent sent;
    What what;
    State state = State::Done;  // only with What::End
  };
  const std::vector<Row> rows = {
      {kGet, Canceled, Reason::Canceled, Sent::Maybe, What::GiveBack},
      {kGet, Timeout, Reason::Canceled, Sent::Maybe, What::GiveBack},
      {kGet, Canceled, Reason::ElapsedExhausted, Sent::Maybe, What::GiveBack},
      {kPost, Canceled, Reason::Canceled, Sent::Never, What::GiveBack},
      {kPost, Canceled, Reason::Canceled, Sent::Maybe, What::End, State::Unknown},
      {kGet, Timeout, Reason::BudgetExhausted, Sent::Maybe, What::Wait},
      {kPost, Timeout, Reason::BudgetExhausted, Sent::Never, What::Wait},
      {kPost, Timeout, Reason::BudgetExhausted, Sent::Maybe, What::End, State::Dead},
      {kPost, LocalShortage, Reason::LocalShortage, Sent::Never, What::GiveBack},
      {kPost, LocalShortage, Reason::LocalShortage, Sent::Maybe, What::End, State::Dead},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const bool is_last_send : {false, true}) {
      CAPTURE(i);
      CAPTURE(is_last_send);
      const auto& row = rows[i];
      Error error(row.error);
      error.history = history_with({row.error, row.error}, row.reason);
      (is_last_send ? error.exchange.sent : error.history.attempts.front().sent) = row.sent;
      const auto verdict = verdict_on(job_with(row.text), error);
      CHECK(verdict.what == row.what);
      if (row.what != What::End) continue;
      CHECK(verdict.end.state == row.state);
      CHECK(verdict.end.result.empty() == (row.state == State::Unknown));
      CHECK(verdict.end.dead_letter.empty() == (row.state == State::Unknown));
    }
  }
}

TEST_CASE("a job waits as long as its host needs, if its deadline is later") {
  const auto waits = [](Errc code, Reason reason, std::optional<Circuit> circuit,
                        const std::string& text = kGet) {
    Error error(code);
    error.history = history_with({}, reason);
    if (circuit) {
      GuardFacts facts;
      facts.circuit.emplace();
      facts.circuit->state = *circuit;
      error.history.guards = std::make_shared<const GuardFacts>(facts);
    }
    const auto verdict = verdict_on(job_with(text), error);
    return verdict.what == Verdict::What::Wait ? std::optional(verdict.wait) : std::nullopt;
  };
  using enum Errc;
  CHECK(waits(CircuitOpen, Reason::CircuitOpen, {}) == 30s);
  CHECK(waits(CircuitOpen, Reason::CircuitOpen, Circuit::Open) == 30s);
  CHECK(waits(CircuitOpen, Reason::CircuitOpen, Circuit::HalfOpen) == 1s);
  CHECK(waits(RateLimited, Reason::RateLimited, Circuit::HalfOpen) == 30s);
  CHECK(waits(Timeout, Reason::BudgetExhausted, Circuit::HalfOpen) == 10s);
  CHECK_FALSE(waits(Timeout, Reason::AttemptsExhausted, Circuit::HalfOpen).has_value());
  // Without `retry_at`, the server has asked for no wait.
  CHECK_FALSE(waits(Timeout, Reason::ServerDelayTooLong, {}).has_value());
  const auto until = [&](const std::string& date) {
    return waits(Timeout, Reason::BudgetExhausted, {}, with_deadline(date));
  };
  CHECK_FALSE(until("2027-01-15T08:00:10Z").has_value());
  CHECK(until("2027-01-15T08:00:10.001Z") == 10s);
}

TEST_CASE("a time for the next attempt that has passed is no wait") {
  Error error(Errc::Timeout);
  error.history = history_with({Errc::Timeout}, Reason::ServerDelayTooLong);
  error.history.retry_at = std::chrono::system_clock::now() - 1h;
  const auto verdict = verdict_on(job_with(kGet), error);
  CHECK(verdict.what == Verdict::What::Wait);
  CHECK(verdict.wait == 0s);
}

TEST_CASE("a job whose policy limits no attempts has a thousand of them") {
  for (const int attempts_before : {998, 999}) {
    auto job = job_with(kGet);
    job.attempts = attempts_before;
    Error error(Errc::Timeout);
    error.history = history_with({Errc::Timeout}, Reason::BudgetExhausted);
    const auto verdict = verdict_on(job, error, options(Repeat::Safe, std::nullopt));
    CHECK((verdict.what == Verdict::What::Wait) == (attempts_before == 998));
  }
}

TEST_CASE("the body of a failed response is in the results if it has at most 64 KiB") {
  for (const auto size : {kMostInline, kMostInline + 1}) {
    CAPTURE(size);
    Response response(404, std::string(size, 'x'));
    response.history = history_with({}, Reason::NotRetryable);
    response.history.attempts.emplace_back();
    const auto end = verdict_on(job_with(kGet), response).end;
    CHECK(end.state == State::Dead);
    CHECK(end.status == 404);
    CHECK(end.attempts == 1);
    const bool fits = size == kMostInline;
    CHECK((end.result.find(R"("body_omitted":true)") == std::string::npos) == fits);
    CHECK((end.result.find(R"("body":"xxx)") != std::string::npos) == fits);
    CHECK((end.dead_letter.find(R"("body":"xxx)") != std::string::npos) == fits);
  }
}
