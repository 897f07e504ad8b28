#include <httpretry/client/report.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Response after(std::vector<int> statuses, Reason reason, Duration elapsed) {
  Response response(statuses.empty() ? 0 : statuses.back());
  for (const int status : statuses) response.history.attempts.emplace_back().status = status;
  response.history.stop_reason = reason;
  response.history.elapsed = elapsed;
  return response;
}

}  // namespace

TEST_CASE("a call is told in one line") {
  CHECK(describe(after({503, 503, 200}, Reason::Success, 1312ms)) ==
        "succeeded after 3 attempts in 1.31 s: 503, 503, 200");
  CHECK(describe(after({503, 503}, Reason::AttemptsExhausted, 43ms)) ==
        "gave up after 2 attempts in 43.0 ms: 503 each time (attempts_exhausted)");
  CHECK(describe(after({500, 501, 502, 503, 504, 505}, Reason::AttemptsExhausted, 2s)) ==
        "gave up after 6 attempts in 2.00 s: 500, 501, 502, 503, 504, 505 (attempts_exhausted)");
  CHECK(describe(after({500, 501, 502, 503, 504, 505, 506}, Reason::AttemptsExhausted, 2s)) ==
        "gave up after 7 attempts in 2.00 s: ..., 501, 502, 503, 504, 505, 506 "
        "(attempts_exhausted)");
  auto unsafe = after({500}, Reason::UnsafeToRepeat, 5ms);
  unsafe.history.detail = "the server may have executed the request";
  unsafe.history.retry_at = WallTime(std::chrono::seconds(1'700'000'000));
  CHECK(describe(unsafe) ==
        "gave up after 1 attempt in 5.00 ms: 500; the server may have executed the request; come "
        "back at "
        "2023-11-14T22:13:20.000Z (unsafe_to_repeat)");
}

TEST_CASE("a response that no retry would change is no giving up") {
  CHECK(describe(after({404}, Reason::NotRetryable, 100ms)) ==
        "failed after 1 attempt in 100 ms: 404 (not_retryable)");
  auto conflict = after({502, 409}, Reason::NotRetryable, 100ms);
  conflict.history.attempts.back().ambiguous = true;
  CHECK(describe(conflict) ==
        "failed after 2 attempts in 100 ms: 502, 409; the server may have executed an earlier "
        "attempt (not_retryable)");
}

TEST_CASE("an attempt without a response is told by its error") {
  Error error(Errc::Timeout, "no response");
  auto& attempt = error.history.attempts.emplace_back();
  attempt.error = Errc::Timeout;
  error.history.stop_reason = Reason::ElapsedExhausted;
  CHECK(describe(error) == "gave up after 1 attempt in 0 s: timeout (elapsed_exhausted)");
}

TEST_CASE("a call that was never begun is told, too") {
  Error error(Errc::Canceled);
  error.history.stop_reason = Reason::Canceled;
  CHECK(describe(error) == "was canceled before the first attempt in 0 s");
  Error refused(Errc::InvalidRequest, "GET http://x/: not allowed");
  refused.history.stop_reason = Reason::NotRetryable;
  CHECK(describe(refused) == "not sent: GET http://x/: not allowed (not_retryable)");
  // A guard finds in an attempt that a request costs too much.
  refused.history.attempts.emplace_back().error = Errc::InvalidRequest;
  CHECK(describe(refused) == "not sent: GET http://x/: not allowed (not_retryable)");
}

TEST_CASE("a call that was canceled is told without the word twice") {
  Error error(Errc::Canceled, "canceled");
  error.history.stop_reason = Reason::Canceled;
  error.history.elapsed = 2s;
  error.history.attempts.emplace_back().error = Errc::Canceled;
  // For example, while it waited for its turn.
  CHECK(describe(error) == "was canceled before it was sent in 2.00 s");
  error.exchange.sent = Sent::Maybe;
  CHECK(describe(error) == "was canceled after 1 attempt in 2.00 s");
  error.history.attempts.front() = after({503}, Reason::Success, 0s).history.attempts.front();
  CHECK(describe(error) == "was canceled after 1 attempt in 2.00 s: 503");
}

TEST_CASE("only what was sent counts as an attempt that failed") {
  Error error(Errc::Tls, "the certificate of the client cannot be read");
  error.history.stop_reason = Reason::NotRetryable;
  error.history.attempts.emplace_back().error = Errc::Tls;
  CHECK(describe(error) == "failed before it was sent in 0 s: tls (not_retryable)");
  error.exchange.sent = Sent::Maybe;
  CHECK(describe(error) == "failed after 1 attempt in 0 s: tls (not_retryable)");
}

TEST_CASE("a redirect is not counted as an attempt") {
  CHECK(describe(after({302, 200}, Reason::Success, 5ms)) ==
        "succeeded after 1 attempt and 1 redirect in 5.00 ms: 302, 200");
  auto busy = after({302, 307, 503, 503}, Reason::AttemptsExhausted, 5ms);
  CHECK(describe(busy) ==
        "gave up after 2 attempts and 2 redirects in 5.00 ms: 302, 307, 503, 503 "
        "(attempts_exhausted)");
  auto retried = after({300, 200}, Reason::Success, 5ms);
  retried.history.attempts.front().retried = true;
  CHECK(describe(retried) == "succeeded after 2 attempts in 5.00 ms: 300, 200");
}

TEST_CASE("a response that needed no send has no attempts") {
  Response cached(200);
  CHECK(describe(cached) == "succeeded without an attempt in 0 s: 200");
}

TEST_CASE("a report needs no policy") {
  const auto json = report_json(Request::get("http://x/"), Response(200));
  CHECK(json.find(R"("preset": null)") != std::string::npos);
}

TEST_CASE("every time has a text in reports") {
  CHECK(rfc3339(WallTime::min()) == "1677-09-21T00:12:43.145Z");
  CHECK(rfc3339(WallTime::max()) == "2262-04-11T23:47:16.854Z");
  CHECK(rfc3339(WallTime(-1ns)) == "1969-12-31T23:59:59.999Z");
}
