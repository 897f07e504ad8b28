#include <httpretry/client/report.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>

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
  CHECK(describe(after({302, 302}, Reason::NotRetryable, 5ms)) ==
        "failed after 1 attempt and 1 redirect in 5.00 ms: 302 each time (not_retryable)");
  CHECK(describe(after({299, 400}, Reason::NotRetryable, 5ms)) ==
        "failed after 2 attempts in 5.00 ms: 299, 400 (not_retryable)");
  CHECK(describe(after({399, 400}, Reason::NotRetryable, 5ms)) ==
        "failed after 1 attempt and 1 redirect in 5.00 ms: 399, 400 (not_retryable)");
  auto retried = after({300, 200}, Reason::Success, 5ms);
  retried.history.attempts.front().retried = true;
  CHECK(describe(retried) == "succeeded after 2 attempts in 5.00 ms: 300, 200");
}

TEST_CASE("hedges are counted among the attempts") {
  auto hedged = after({503, 503, 200}, Reason::Success, 5ms);
  hedged.history.attempts[1].hedge = std::make_shared<const Hedge>(Hedge());
  CHECK(describe(hedged) == "succeeded after 3 attempts (1 hedge) in 5.00 ms: 503, 503, 200");
  hedged.history.attempts[2].hedge = std::make_shared<const Hedge>(Hedge());
  CHECK(describe(hedged) == "succeeded after 3 attempts (2 hedges) in 5.00 ms: 503, 503, 200");
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

TEST_CASE("a report of a response has all that is known of its call") {
  Response response(200, "body");
  response.http_version = "2";
  auto& history = response.history;
  history.attempts.resize(3);
  ResolvedPolicy policy;
  policy.name = "careful";
  policy.source = "policy.json:1:2";
  Attempt& busy = history.attempts[0];
  busy.policy = std::make_shared<const ResolvedPolicy>(policy);
  busy.status = 503;
  busy.duration = 1500us;
  busy.cls = Class::Transient;
  busy.rule = "status 503";
  busy.sent = Sent::Answered;
  busy.wire_sends = 1;
  busy.retried = true;
  busy.server_delay = Duration(2s);
  busy.server_delay_source = "retry-after";
  busy.backoff = Duration(1ms);
  busy.wait = Duration(2s);
  busy.budget_left = 0;
  Attempt& lost = history.attempts[1];
  Exchange exchange;
  exchange.sent = Sent::Maybe;
  exchange.wire_sends = 2;
  exchange.queued_by = QueuedBy::Rate;
  exchange.timings.queued = 125ns;
  lost.set_exchange(exchange);
  lost.number = 2;
  lost.start = 2001500us;
  lost.duration = 220ms;
  lost.error = Errc::Timeout;
  lost.curl_code = 28;
  lost.error_message = "too late";
  lost.cls = Class::Transport;
  lost.rule = "transport: timeout";
  lost.race = Race::Lost;
  Attempt& won = history.attempts[2];
  won.number = 3;
  won.start = 2201500us;
  won.duration = 20ms;
  won.status = 200;
  won.rule = "success";
  won.sent = Sent::Answered;
  won.wire_sends = 1;
  won.race = Race::Won;
  won.ambiguous = true;
  Hedge hedge;
  hedge.of = 2;
  hedge.after = 200ms;
  hedge.from = "fixed";
  won.hedge = std::make_shared<const Hedge>(hedge);
  auto& polled = history.polled.emplace_back();
  polled.first_attempt = polled.last_attempt = 3;
  polled.url = "https://x/jobs/7";
  history.hedge_refused = HedgeRefused::Busy;
  history.retry_at = WallTime(2s);
  history.elapsed = 2221500us;
  GuardFacts guards;
  auto& circuit = guards.circuit.emplace();
  circuit.key = "https://x";
  circuit.state = Circuit::HalfOpen;
  circuit.failed = 3;
  circuit.total = 4;
  circuit.until = WallTime(1s);
  circuit.refused_share = 0.5;
  auto& limits = guards.limits.emplace();
  limits.rate_wait = 1ms;
  limits.limit = 4;
  limits.in_flight = 2;
  limits.paused_until = WallTime(250ms);
  history.guards = std::make_shared<const GuardFacts>(guards);
  CHECK(report_json(Request::get("https://x/a"), response) == R"({
  "url": "https://x/a",
  "method": "GET",
  "policy": {
    "endpoint": null,
    "name": "careful",
    "preset": null,
    "source": "policy.json:1:2"
  },
  "outcome": "response",
  "status": 200,
  "error": null,
  "stop_reason": "success",
  "retry_at": "1970-01-01T00:00:02.000Z",
  "elapsed_ms": 2221.5,
  "circuit": {
    "key": "https://x",
    "state": "half_open",
    "failed": 3,
    "total": 4,
    "until": "1970-01-01T00:00:01.000Z",
    "p": 0.5
  },
  "limits": {
    "rate_wait_ms": 1.0,
    "concurrency": {
      "limit": 4,
      "in_flight": 2
    },
    "paused_until": "1970-01-01T00:00:00.250Z"
  },
  "bytes": 4,
  "http_version": "2",
  "hedges": 1,
  "hedge_refused": "busy",
  "attempts": [
    {
      "number": 1,
      "start_ms": 0.0,
      "duration_ms": 1.5,
      "status": 503,
      "error": null,
      "class": "transient",
      "rule": "status 503",
      "sent": "answered",
      "wire_sends": 1,
      "queued_ms": 0.0,
      "queued_by": null,
      "server_delay_ms": 2000.0,
      "server_delay_source": "retry-after",
      "backoff_ms": 1.0,
      "wait_ms": 2000.0,
      "budget_left": 0,
      "decision": "retry",
      "hedge": null,
      "outcome": null
    },
    {
      "number": 2,
      "start_ms": 2001.5,
      "duration_ms": 220.0,
      "status": null,
      "error": {
        "kind": "timeout",
        "curl_code": 28,
        "message": "too late",
        "maybe_sent": true
      },
      "class": "transport",
      "rule": "transport: timeout",
      "sent": "maybe",
      "wire_sends": 2,
      "queued_ms": 0.000125,
      "queued_by": "rate",
      "server_delay_ms": null,
      "server_delay_source": null,
      "backoff_ms": null,
      "wait_ms": null,
      "budget_left": null,
      "decision": "lost",
      "hedge": null,
      "outcome": "lost"
    },
    {
      "number": 3,
      "polled_url": "https://x/jobs/7",
      "start_ms": 2201.5,
      "duration_ms": 20.0,
      "status": 200,
      "error": null,
      "class": "success",
      "rule": "success",
      "sent": "answered",
      "wire_sends": 1,
      "queued_ms": 0.0,
      "queued_by": null,
      "server_delay_ms": null,
      "server_delay_source": null,
      "backoff_ms": null,
      "wait_ms": null,
      "budget_left": null,
      "decision": "stop",
      "hedge": {
        "of": 2,
        "after_ms": 200.0,
        "from": "fixed"
      },
      "outcome": "won",
      "ambiguous": true
    }
  ]
})");
}

TEST_CASE("a report of an error has null for what there is not") {
  Error error(Errc::Connect, "refused");
  error.curl_code = 7;
  error.status = 503;  // of a proxy
  error.history.stop_reason = Reason::AttemptsExhausted;
  GuardFacts guards;
  guards.limits.emplace();
  error.history.guards = std::make_shared<const GuardFacts>(guards);
  CHECK(report_json(Request::post("http://x/", "d"), error, /*virtual_time=*/true) == R"({
  "virtual": true,
  "url": "http://x/",
  "method": "POST",
  "policy": {
    "endpoint": null,
    "name": null,
    "preset": null,
    "source": null
  },
  "outcome": "error",
  "status": null,
  "error": {
    "kind": "connect",
    "curl_code": 7,
    "message": "refused",
    "maybe_sent": false
  },
  "stop_reason": "attempts_exhausted",
  "retry_at": null,
  "elapsed_ms": 0.0,
  "circuit": null,
  "limits": {
    "rate_wait_ms": 0.0,
    "concurrency": null,
    "paused_until": null
  },
  "bytes": 0,
  "http_version": null,
  "hedges": 0,
  "hedge_refused": null,
  "attempts": []
})");
}

TEST_CASE("the bytes of a report are those of the body or of the sink") {
  Response response(200);
  response.from_fallback = true;
  response.delivered = 7;
  const auto json = report_json(Request::get("http://x/"), response);
  CHECK(json.find("\n  \"bytes\": 7,\n") != std::string::npos);
  CHECK(json.find("\n  \"stop_reason\": \"success\",\n  \"fallback\": true,\n") !=
        std::string::npos);
  CHECK(json.find("\n  \"circuit\": null,\n  \"limits\": null,\n") != std::string::npos);
}
