// Recorded responses: which request gets which, what is left out, and archives with errors.
#include <httpretry/client/client.hpp>
#include <httpretry/client/client_options.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// An entry of an archive. `content` are the members of "content", `more` those of "response".
std::string entry(const std::string& method, const std::string& url, int status,
                  const std::string& content = R"("text": "")", const std::string& more = "") {
  return R"({"request": {"method": ")" + method + R"(", "url": ")" + url +
         R"("}, "response": {"status": )" + std::to_string(status) + ", \"content\": {" + content +
         "}" + more + "}}";
}

std::string text(const std::string& body) { return R"("size": 9, "text": ")" + body + '"'; }

std::string archive(const std::vector<std::string>& entries) {
  std::string list;
  for (const auto& each : entries) list += (list.empty() ? "" : ",\n") + each;
  return "{\"log\": {\"version\": \"1.2\", \"entries\": [\n" + list + "\n]}}";
}

// Sends without retries, in virtual time.
class Replay {
 public:
  explicit Replay(const std::vector<std::string>& entries)
      : network_(ScriptedTransport::from_har(archive(entries))) {
    ClientOptions options;
    options.middlewares.clear();
    options.scheduler = std::make_shared<ManualScheduler>();
    options.transport = network_;
    client_.emplace(options);
  }
  Outcome get(const std::string& url) { return client_->get(url); }
  Outcome send(const Request& request) { return client_->send(request); }

 private:
  std::shared_ptr<ScriptedTransport> network_;
  std::optional<Client> client_;
};

}  // namespace

TEST_CASE("requests get the responses of their method, path and query in order, then the last") {
  Replay replay({entry("GET", "https://api.example.com/a", 503, text("busy")),
                 entry("GET", "https://api.example.com/b", 200, text("b")),
                 entry("GET", "https://api.example.com/a", 200, text("second")),
                 entry("POST", "https://api.example.com/a", 201, text("made")),
                 entry("GET", "https://api.example.com/a?page=2", 200, text("page 2"))});
  CHECK(replay.get("http://localhost/a")->status == 503);
  CHECK(replay.get("http://localhost/b")->body == "b");
  CHECK(replay.get("http://localhost/a")->body == "second");
  CHECK(replay.get("http://localhost/a")->body == "second");
  CHECK(replay.send(Request::post("http://localhost/a", "x"))->status == 201);
  CHECK(replay.get("http://localhost/a?page=2")->body == "page 2");
}

TEST_CASE("a request without a recorded response gets a 501 that says so") {
  Replay replay({entry("GET", "https://h/a?x=1", 200)});
  for (const char* url : {"http://h/b", "http://h/a", "http://h/a?x=2", "http://h/a?x=1&y=2"}) {
    CAPTURE(url);
    CHECK(replay.get(url)->status == 501);
  }
  const auto other = replay.send(Request::del("http://h/a?x=1"));
  CHECK(other->body == "no response to DELETE /a?x=1 was recorded\n");
}

TEST_CASE("a redacted value of a query matches any value, and an equal query comes first") {
  Replay replay({entry("GET", "https://h/a?key=REDACTED&n=REDACTED", 200, text("redacted")),
                 entry("GET", "https://h/a?key=1&n=2", 200, text("equal")),
                 entry("GET", "https://h/b?REDACTED", 200, text("no name"))});
  CHECK(replay.get("http://h/a?key=1&n=2")->body == "equal");
  CHECK(replay.get("http://h/a?key=s3cr3t&n=")->body == "redacted");
  CHECK(replay.get("http://h/b?s3cr3t")->body == "no name");
  for (const char* url : {"http://h/a?key=1", "http://h/a?n=1&key=2", "http://h/a?key=1&n=2&m=3",
                          "http://h/b?a=1", "http://h/b"}) {
    CAPTURE(url);
    CHECK(replay.get(url)->status == 501);
  }
}

TEST_CASE("bodies are texts or base64") {
  Replay replay({entry("GET", "https://h/text", 200, R"("text": "a\u0000\u00e9")"),
                 entry("GET", "https://h/bytes", 200, R"("text": "AP/+", "encoding": "base64")"),
                 entry("GET", "https://h/empty", 200, R"("size": 0)"),
                 entry("GET", "https://h/missing", 200, R"("size": 5)")});
  CHECK(replay.get("http://h/text")->body == std::string("a\0\u00e9", 4));
  CHECK(replay.get("http://h/bytes")->body == std::string("\0\xff\xfe", 3));
  CHECK(replay.get("http://h/empty")->body.empty());
  CHECK(replay.get("http://h/empty")->status == 200);
  const auto missing = replay.get("http://h/missing");
  CHECK(missing->status == 501);
  CHECK(missing->body.find("--har-bodies") != std::string::npos);
}

TEST_CASE("headers that are redacted or about the connection or the coding are left out") {
  const auto headers = [](const std::string& coding) {
    return R"(, "headers": [{"name": "Set-Cookie", "value": "REDACTED"},
      {"name": "content-encoding", "value": "gzip"}, {"name": "Content-Length", "value": "7"},
      {"name": "transfer-encoding", "value": "chunked"}, {"name": ":status", "value": "200"},
      {"name": "connection", "value": "close"}, {"name": "Keep-Alive", "value": "timeout=1"},
      {"name": "alt-svc", "value": "clear"},
      {"name": "X-Kept", "value": "1"}, {"name": "X-Kept", "value": "2"},
      {"name": "Location", "value": "https://api.example.com/next?a=b"},
      {"name": "Link", "value": "<https://api.example.com/2>"}])" +
           coding;
  };
  Replay replay({entry("GET", "https://api.example.com/a", 200, text("x"), headers("")),
                 entry("GET", "https://h/b", 200, text("x") + R"(, "_encoded": true)", headers("")),
                 entry("HEAD", "https://h/a", 200, R"("size": 0)", headers(""))});
  const auto plain = replay.get("http://h/a")->headers;
  CHECK(plain.size() == 4);
  CHECK(plain.get_all("X-Kept").size() == 2);
  CHECK(plain.get("Location") == "/next?a=b");
  CHECK(replay.get("http://h/b")->headers.get("Content-Encoding") == "gzip");
  CHECK(replay.send(Request::head("http://h/a"))->headers.get("Content-Length") == "7");
}

TEST_CASE("every final status is replayed") {
  Replay replay({entry("GET", "https://h/200", 200), entry("GET", "https://h/999", 999)});
  CHECK(replay.get("http://h/200")->status == 200);
  CHECK(replay.get("http://h/999")->status == 999);
}

TEST_CASE("a location on an origin that was not recorded stays") {
  Replay replay({entry("GET", "https://h/a", 302, "",
                       R"(, "headers": [{"name": "Location", "value": "https://other/x"}])")});
  CHECK(replay.get("http://h/a")->headers.get("Location") == "https://other/x");
}

TEST_CASE("links on recorded origins lead to the server") {
  const auto links = [](const std::string& value) {
    return R"(, "headers": [{"name": "link", "value": ")" + value + R"("}])";
  };
  Replay replay(
      {entry("GET", "https://h/a?page=1", 200, "",
             links(R"(<https://h/a?page=2>; rel=\"next\", <http://api/z>;rel=last, <https://o/>)")),
       entry("GET", "http://api/b", 200, "",
             links(R"(</c>; title=\"a < b\", <https://h>; rel=next; title=\"<\", <d; rel=next)"))});
  CHECK(replay.get("http://h/a?page=1")->headers.get("Link") ==
        R"(</a?page=2>; rel="next", </z>;rel=last, <https://o/>)");
  CHECK(replay.get("http://h/b")->headers.get("Link") ==
        R"(</c>; title="a < b", </>; rel=next; title="<", <d; rel=next)");
}

TEST_CASE("entries that are not HTTP are skipped") {
  Replay replay({entry("GET", "wss://h/socket", 101), entry("GET", "WS://h/socket", 200),
                 entry("GET", "data:text/plain,x", 200),
                 R"({"request": {"method": "GET", "url": "blob:https://h/1"}, "response": {}})",
                 entry("GET", "HTTPS://h/a", 200, text("a"))});
  CHECK(replay.get("http://h/a")->body == "a");
  CHECK(replay.get("http://h/socket")->status == 501);
}

TEST_CASE("failures are replayed if the server saw the request") {
  Replay replay({entry("GET", "https://h/", 0, "", R"(, "_error": "connect")"),
                 entry("GET", "https://h/", 0, "", R"(, "_error": "receive")"),
                 entry("GET", "https://h/", 0, "", R"(, "_error": "timeout")"),
                 entry("GET", "https://h/", 200, R"("size": 7)", R"(, "_error": "receive")"),
                 entry("GET", "https://h/", 200, text("ok"))});
  const auto reset = replay.get("http://h/");
  REQUIRE_FALSE(reset);
  CHECK(reset.error().code == Errc::Receive);
  CHECK(reset.error().curl_code == 56);
  CHECK_FALSE(reset.error().partial);
  const auto late = replay.get("http://h/").error();
  CHECK(late.code == Errc::Timeout);
  CHECK(late.curl_code == 28);
  const auto truncated = replay.get("http://h/").error();
  CHECK(truncated.curl_code == 56);
  CHECK(truncated.partial);
  CHECK(truncated.status == 200);
  CHECK(replay.get("http://h/")->body == "ok");
}

TEST_CASE("a server plays the same, and reports what it had no response to") {
  std::vector<std::string> reasons;
  const auto scenario = parse_har(
      archive(
          {entry("GET", "https://h/a?k=REDACTED", 0, "", R"(, "_error": "receive")"),
           entry("GET", "https://h/a?k=REDACTED", 200, R"("text": "AP8=", "encoding": "base64")"),
           entry("GET", "https://h/r", 302, "",
                 R"(, "headers": [{"name": "Location", "value": "https://h/a?k=1"}])")}),
      "a.har", [&](const std::string& reason) { reasons.push_back(reason); });
  REQUIRE(scenario);
  {
    const FaultServer server(*scenario);
    auto policy = RetryPolicy::standard({});
    policy.backoff.initial = 1ms;
    Client client(ClientOptions().with_policies(policy));
    const auto outcome = client.get(server.url("/r"));
    REQUIRE(outcome);
    CHECK(outcome->body == std::string("\0\xff", 2));
    CHECK(outcome->history.attempts.size() == 3);  // 302, reset, 200
    CHECK(client.get(server.url("/b"))->status == 501);
    CHECK(server.requests() == 4);
  }
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0] == "no response to GET /b was recorded");
}

TEST_CASE("archives of browsers have several cookies in one header, and -1 for no response") {
  Replay replay({entry("GET", "https://h/", 200, text("a"),
                       R"(, "headers": [{"name": "set-cookie", "value": "a=1\nb=2; Secure"}])"),
                 entry("GET", "https://h/blocked", -1)});
  const auto response = replay.get("http://localhost/");
  REQUIRE(response);
  CHECK(response->headers.get_all("Set-Cookie") ==
        std::vector<std::string_view>{"a=1", "b=2; Secure"});
  CHECK(replay.get("http://localhost/blocked")->status == 501);
}

TEST_CASE("errors of an archive have a position, and say what was expected") {
  struct Row {
    std::string json;
    const char* problem;
  };
  const auto with = [](const std::string& content) {
    return archive({entry("GET", "https://h/", 200, content)});
  };
  const Row rows[] = {
      {"", "a.har:1:1: "},
      {"[]", "a.har:1:1: expected an object \"log\" here"},
      {R"({"log": {}})", R"(a.har:1:9: /log: expected an array "entries" here)"},
      {R"({"log": {"entries": []}})", "a.har:1:21: /log/entries: the archive has no response"},
      {R"({"log": {"entries": [{"request": {}}]}})",
       "a.har:1:22: /log/entries/0: expected an object \"response\" here"},
      {R"({"log": {"entries": [{"request": {"url": "http://h/"}, "response": {"status": 200}}]}})",
       "a.har:1:34: /log/entries/0/request: expected a string \"method\" here"},
      {R"({"log": {"entries": [{"request": {"method": "GET"}, "response": {"status": 200}}]}})",
       "a.har:1:34: /log/entries/0/request: expected a string \"url\" here"},
      {R"({"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}, "response": {}}]}})",
       "/log/entries/0/response: expected a number \"status\" here"},
      {R"({"log": {"entries": [{"request": {"method": 1, "url": "http://h/"}, "response": {}}]}})",
       "a.har:1:45: /log/entries/0/request/method: expected a string"},
      {R"({"log": {"entries": [7]}})",
       "a.har:1:22: /log/entries/0: expected an object \"request\" here"},
      {archive({entry("GET", "http:/h/", 200)}), "a.har:2:38: /log/entries/0/request/url: "},
      {archive({entry("GET", "h/", 200)}), "a.har:2:38: /log/entries/0/request/url: "},
      {archive({entry("GET", "ftp://h/", 200)}), "the archive has no response"},
      {archive({entry("GET", "https://h/", 1000)}), "expected a status from 200 to 999"},
      {archive({entry("GET", "https://h/", 199)}), "the archive has no response"},
      {with(R"("text": 5)"), "/log/entries/0/response/content/text: expected a string"},
      {with(R"("text": "!", "encoding": "base64")"), "content/text: this is not base64"},
      {with(R"("text": "a", "encoding": "gzip")"), "the encoding is not base64"},
      {archive({entry("GET", "https://h/", 200, "",
                      R"(, "headers": [{"name": "a b", "value": "c"}])")}),
       "headers/0: this cannot be sent as a header"},
      {archive({entry("GET", "https://h/", 200, "", R"(, "headers": [{"name": "a"}])")}),
       "headers/0: expected a string \"value\" here"},
      {archive({entry("GET", "https://h/", 0)}), "the archive has no response"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.json);
    const auto scenario = parse_har(row.json, "a.har");
    REQUIRE_FALSE(scenario);
    CHECK(scenario.error().code == Errc::InvalidRequest);
    if (scenario.error().message.find(row.problem) == std::string::npos) {
      FAIL_CHECK(scenario.error().message << "\nlacks " << row.problem);
    }
    CHECK_THROWS_AS(static_cast<void>(ScriptedTransport::from_har(row.json)),
                    std::invalid_argument);
  }
}
