// The bodies of failures and redirects: their status and headers count, whatever happens to the
// body.
#include "canned_server.hpp"
#include "http2_server.hpp"
#include "wire.hpp"

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Client quick_client() {
  ClientOptions options;
  options.middlewares = {redirect(), retry(hasty())};
  return Client(options);
}

Step failing(int status, Fault fault) {
  Step step(status, "the beginning of a body and its end");
  step.fault = fault;
  return step;
}

}  // namespace

TEST_CASE("a final status ends the call, though its body breaks off") {
  for (const auto fault : {Fault::Truncate, Fault::ResetDuring, Fault::BadChunk}) {
    for (const int status : {400, 401, 404, 501}) {
      CAPTURE(std::string(to_string(fault)));
      CAPTURE(status);
      const FaultServer server(Scenario{failing(status, fault)});
      const auto outcome = quick_client().get(server.url());
      if (!outcome) FAIL(outcome.error().message);
      CHECK(outcome->status == status);
      CHECK(outcome->incomplete);
      CHECK(outcome->body.starts_with("the beginning"));
      CHECK(outcome->history.stop_reason == Reason::NotRetryable);
      CHECK(server.requests() == 1);
    }
  }
}

TEST_CASE("a failure is retried by its status, though its body breaks off") {
  Step busy = failing(503, Fault::Truncate);
  busy.headers.add("Retry-After", "0");
  const FaultServer server(Scenario{busy, {200, "ok"}});
  const auto outcome = quick_client().post(server.url(), "unsafe");  // which this 503 has refused
  if (!outcome) FAIL(outcome.error().message);
  CHECK(outcome->body == "ok");
  CHECK_FALSE(outcome->incomplete);
  CHECK(outcome->history.attempts[0].rule == "status 503");
  CHECK_FALSE(outcome->history.attempts[0].error.has_value());
}

TEST_CASE("a redirect is followed, though its body breaks off") {
  Step moved = failing(302, Fault::Truncate);
  moved.headers.add("Location", "/there");
  const FaultServer server(Scenario{moved, {200, "there"}});
  const auto outcome = quick_client().get(server.url());
  if (!outcome) FAIL(outcome.error().message);
  CHECK(outcome->body == "there");
  CHECK(server.requests() == 2);
}

TEST_CASE("a success needs its whole body") {
  auto policy = hasty();
  ErrorRule fine;
  fine.source = ErrorRule::Source::Header;
  fine.selector = "X-Fine";
  fine.as = Class::Success;
  policy.retry_on.error_codes.push_back(fine);
  Step fine_404 = failing(404, Fault::Truncate);
  fine_404.headers.add("X-Fine", "yes");
  for (const auto& step :
       {failing(200, Fault::Truncate), failing(300, Fault::Truncate), fine_404}) {
    CAPTURE(step.status);
    const FaultServer server(Scenario{step, {200, "ok"}});
    const auto outcome = Client({retry(policy)}).get(server.url());
    if (!outcome) FAIL(outcome.error().message);
    CHECK(outcome->body == "ok");
    CHECK(outcome->history.attempts[0].rule == "transport: partial");
  }
}

TEST_CASE("a failure whose HTTP/2 stream is reset counts by its status") {
  const std::string k404 = "\x8d";
  const std::string k413 =
      "\x08\x03"
      "413";
  for (const auto& fields : {k404, k413}) {
    for (const int why : {kNoError, kInternalError, kCancel}) {
      CAPTURE(why);
      const FrameServer server([&](const std::string& stream, int) {
        return FrameServer::Pieces{headers(stream, fields), data(stream, "too"),
                                   reset(stream, why)};
      });
      ClientOptions options;
      options.connection.ca_file = server.ca_file();
      options.middlewares = {retry(hasty())};
      // The server reads nothing of the body beyond the first window.
      const auto outcome = Client(options).post(server.url(), std::string(1 << 20, 'x'));
      if (!outcome) FAIL(outcome.error().message);
      CHECK(outcome->status == (fields == k404 ? 404 : 413));
      CHECK(outcome->body == "too");
      CHECK(server.streams() == 1);
    }
  }
}

TEST_CASE("the body of a failure that cannot be decoded is kept as it came") {
  for (const char* coding : {"gzip", "br", "gzip, gzip"}) {
    for (const auto fault : {Fault::None, Fault::Drip}) {
      for (const std::string body : {"<html>busy</html>", "<"}) {
        CAPTURE(coding);
        CAPTURE(body);
        Step mislabeled(503, Headers{{"Content-Encoding", coding}, {"Retry-After", "0"}}, body);
        mislabeled.fault = fault;
        mislabeled.interval = 1ms;
        const FaultServer server(Scenario{mislabeled});
        auto policy = hasty();
        policy.max_attempts = 2;
        auto request = Request::get(server.url());
        request.edit_options().compressed = true;
        const auto outcome = Client({retry(policy)}).send(request);
        if (!outcome) FAIL(outcome.error().message);
        CHECK(outcome->status == 503);
        CHECK(outcome->body == body);
        CHECK(outcome->headers.get("Content-Encoding") == coding);
        CHECK(outcome->history.stop_reason == Reason::AttemptsExhausted);
        CHECK(server.requests() == 2);
      }
    }
  }
}

TEST_CASE("the gzip body of a failure is decoded, as far as it goes") {
  struct Row {
    const char* body;
    Fault fault;
    bool incomplete;
  };
  for (const auto& row :
       {Row{"not found", Fault::None, false}, Row{"not found", Fault::Drip, false},
        Row{"", Fault::None, false}, Row{"not found", Fault::GzipCutShort, true}}) {
    CAPTURE(row.body);
    CAPTURE(std::string(to_string(row.fault)));
    Step missing(404, row.body);
    missing.gzip = true;
    missing.fault = row.fault;
    missing.interval = 1ms;
    const FaultServer server(Scenario{missing});
    auto request = Request::get(server.url());
    request.edit_options().compressed = true;
    const auto outcome = Client({retry(hasty())}).send(request);
    if (!outcome) FAIL(outcome.error().message);
    CHECK(outcome->status == 404);
    CHECK(outcome->incomplete == row.incomplete);
    if (!row.incomplete) CHECK(outcome->body == row.body);
    CHECK(server.requests() == 1);
  }
}

TEST_CASE("the gzip body of a failure that ends after its first byte leaves that byte") {
  // A block of one byte, and not the checksum that must follow.
  const std::string body("\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x01\0\xfe\xffx", 16);
  const CannedServer server(
      {"HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 16\r\n\r\n" + body});
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  const auto outcome = Client::bare().send(request);
  if (!outcome) FAIL(outcome.error().message);
  CHECK(outcome->status == 404);
  CHECK(outcome->incomplete);
  CHECK(outcome->body == "x");
  CHECK_FALSE(outcome->headers.contains("Content-Encoding"));
  CHECK(outcome->exchange.body_received == 16);
}

TEST_CASE("of a response that will be retried, no more is received than rules may read") {
  Step endless(503);
  endless.fault = Fault::Huge;
  for (const std::uint64_t max_body : {1'000U, 1'000'000U}) {
    CAPTURE(max_body);
    const FaultServer server(Scenario{endless, endless, {200, "ok"}});
    auto request = Request::get(server.url());
    request.edit_options().max_body = max_body;
    const auto outcome = Client({retry(hasty())}).send(request);
    if (!outcome) FAIL(outcome.error().message);
    CHECK(outcome->body == "ok");
    for (const auto i : {0U, 1U}) {
      const auto& attempt = outcome->history.attempts[i];
      CHECK(attempt.rule == "status 503");
      CHECK(attempt.exchange().body_received < 1 << 20);
    }
  }
}

TEST_CASE("a retried response that drips is left after a few seconds") {
  const FaultServer server(Scenario{failing(503, Fault::Drip), {200, "ok"}});
  const auto outcome = Client({retry(hasty())}).get(server.url());
  if (!outcome) FAIL(outcome.error().message);
  CHECK(outcome->body == "ok");
  CHECK(outcome->history.attempts[0].exchange().body_received < 36);  // bytes, one each 100 ms
}

TEST_CASE("a short body of a retried response is received, and its connection used again") {
  const FaultServer server(Scenario{{503, "busy"}, {200, "ok"}});
  CHECK(Client({retry(hasty())}).get(server.url())->body == "ok");
  CHECK(server.seen()[1].connection == 1);
}

TEST_CASE("a final failure is received to its end, as far as it may be large") {
  const std::string body(200'000, 'x');
  auto policy = hasty();
  policy.max_attempts = 2;
  struct Row {
    int status;
    const char* method;
    std::size_t requests;
  };
  for (const auto& row : {Row{404, "GET", 1}, Row{503, "GET", 2}, Row{503, "POST", 1}}) {
    CAPTURE(row.status);
    const FaultServer server(Scenario{{row.status, body}});
    Request request(row.method, server.url());
    auto outcome = Client({retry(policy)}).send(request);
    REQUIRE(outcome);
    CHECK(outcome->body == body);
    CHECK_FALSE(outcome->incomplete);
    CHECK(server.requests() == row.requests);

    request.edit_options().max_body = 100'000;
    outcome = Client({retry(policy)}).send(request);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::TooLarge);
    CHECK(outcome.error().status == row.status);
  }
}

TEST_CASE("a final failure that drips ends with max_elapsed_time, by its status") {
  auto policy = hasty();
  policy.max_elapsed_time = 300ms;
  for (const int status : {404, 503}) {
    CAPTURE(status);
    const FaultServer server(Scenario{failing(status, Fault::Drip)});
    const auto outcome = Client({retry(policy)}).get(server.url());
    if (!outcome) FAIL(outcome.error().message);
    CHECK(outcome->status == status);
    CHECK(outcome->incomplete);
    CHECK(server.requests() == 1);
  }
}
