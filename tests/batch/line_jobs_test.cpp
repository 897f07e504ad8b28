// Tests how LineJobs judges the outcome of a call.
#include "lib/extras/batch/line_jobs.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

namespace {

constexpr int kMostAttempts = 5;

BatchOptions options() {
  RetryPolicy policy;
  policy.max_attempts = kMostAttempts;
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

Verdict verdict_on(const Job& job, Outcome outcome) {
  LineJobs jobs(options(), {});
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
