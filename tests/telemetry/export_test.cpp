// Metrics, logs, archives and the exporter against servers on the wire: the numbers must be those
// of the history and of the server.
#include "collector.hpp"

#include <httpretry/httpretry.hpp>
#include <httpretry/telemetry/telemetry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <mutex>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Client client_with(std::vector<std::shared_ptr<Observer>> observers) {
  ClientOptions options;
  options.middlewares = {retry(quick())};
  options.observers = std::move(observers);
  return Client(options);
}

std::uint64_t drops(const Otlp& exporter, std::string_view why) {
  for (const auto& each : exporter.dropped()) {
    if (each.signal == "traces" && each.why == why) return each.count;
  }
  return 0;
}

SpanPtr some_span() {
  auto span = std::make_unique<Span>();
  span->method = "GET";
  span->trace = {1, 2};
  span->id = 0xAB;
  return span;
}

}  // namespace

TEST_CASE("metrics, history, spans and the server agree") {
  FaultServer server(
      {503, {200, "ok"}, {429, Headers{{"Retry-After", "0"}}}, {200, "ok"}, {404, ""}});
  const auto numbers = metrics();
  int spans = 0;
  const auto tracer = traces([&](SpanPtr span) { spans += span->kind == Span::Kind::Client; });
  auto client = client_with({numbers, tracer});
  std::size_t attempts = 0;
  for (int i = 0; i < 3; ++i) {
    attempts += history_of(client.get(server.url("/a"))).attempts.size();
  }
  const auto taken = numbers->snapshot();
  CHECK(attempts == 5);
  CHECK(server.requests() == 5);
  CHECK(spans == 5);
  CHECK(taken.sum("http_client_request_duration_seconds") == 5);
  CHECK(taken.sum("http_client_request_duration_seconds", {{"error_type", "503"}}) == 1);
  CHECK(taken.sum("httpretry_sends_total") == 5);
  CHECK(taken.sum("httpretry_call_attempts") == 3);
  CHECK(taken.sum("httpretry_retries_total") == 2);
  CHECK(taken.sum("httpretry_retries_total", {{"class", "throttle"}, {"rule_kind", "status"}}) ==
        1);
  CHECK(taken.sum("httpretry_in_flight") == 0);
  CHECK(taken.sum("httpretry_call_duration_seconds", {{"stop_reason", "success"}}) == 2);
  const auto open = numbers->openmetrics();
  CHECK(open.ends_with("# EOF\n"));
  CHECK(open.find(" # {trace_id=\"") != std::string::npos);
  CHECK(numbers->prometheus().find("trace_id") == std::string::npos);
}

TEST_CASE("threads count for themselves, and nothing is lost") {
  FaultServer server({{200, "ok"}});
  const auto numbers = metrics();
  auto client = client_with({numbers});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 25; ++n) CHECK(client.get(server.url()));
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(numbers->snapshot().sum("http_client_request_duration_seconds") == 200);
  CHECK(numbers->snapshot().sum("httpretry_in_flight") == 0);
}

TEST_CASE("hosts above the limit are _other") {
  const auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(200));
  MetricsOptions limits;
  limits.max_hosts = 2;
  const auto numbers = metrics(limits);
  ClientOptions options;
  options.transport = network;
  options.scheduler = std::make_shared<ManualScheduler>();
  options.observers = {numbers};
  Client client(options);
  for (const auto* host : {"a", "b", "c", "d", "a"}) {
    CHECK(client.get(std::string("http://") + host + "/"));
  }
  const auto taken = numbers->snapshot();
  constexpr auto* kName = "http_client_request_duration_seconds";
  CHECK(taken.sum(kName, {{"server_address", "_other"}}) == 2);
  CHECK(taken.sum(kName, {{"server_address", "a"}}) == 2);
}

TEST_CASE("by default two hundred hosts have series of their own") {
  const auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(200));
  const auto numbers = metrics();
  ClientOptions options;
  options.transport = network;
  options.scheduler = std::make_shared<ManualScheduler>();
  options.observers = {numbers};
  Client client(options);
  for (int i = 0; i < 205; ++i) CHECK(client.get("http://h" + std::to_string(i) + "/"));
  const auto taken = numbers->snapshot();
  constexpr auto* kName = "http_client_request_duration_seconds";
  CHECK(taken.find(kName)->series.size() == 201);
  CHECK(taken.sum(kName, {{"server_address", "_other"}}) == 5);
  CHECK(taken.find("httpretry_in_flight")->series.size() == 201);
}

TEST_CASE("the collector's answers: taken, retried, refused, rejected, hanging") {
  struct Row {
    Scenario steps;
    std::size_t requests;
    std::uint64_t exported, refused, rejected, unreachable;
  };
  const auto partial = R"({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "no"}})";
  const Row rows[] = {
      {Scenario{Step(200, "{}")}, 1, 3, 0, 0, 0},
      {Scenario{Step(503), Step(200, "{}")}, 2, 3, 0, 0, 0},
      {Scenario{Step(429), Step(200)}, 2, 3, 0, 0, 0},
      {Scenario{Step(400)}, 1, 0, 3, 0, 0},
      {Scenario{Step(200, partial)}, 1, 1, 0, 2, 0},
      {Scenario{Step(Fault::Hang)}, 3, 0, 0, 0, 3},
  };
  for (const auto& row : rows) {
    FaultServer collector(row.steps);
    auto options = to(collector);
    if (row.unreachable == 0) options.timeout = 10s;  // only the collector that hangs runs into it
    Otlp exporter(options);
    for (int i = 0; i < 3; ++i) exporter.add(some_span());
    CHECK(exporter.flush(10s));
    CHECK(collector.requests() == row.requests);
    CHECK(exporter.exported() == row.exported);
    CHECK(drops(exporter, "refused") == row.refused);
    CHECK(drops(exporter, "rejected") == row.rejected);
    CHECK(drops(exporter, "unreachable") == row.unreachable);
  }
}

TEST_CASE("exports are compressed, except for a collector that refuses that") {
  Step picky;
  picky.respond = [](const SeenRequest& request) {
    return Step(request.headers.contains("Content-Encoding") ? 415 : 200, "{}");
  };
  FaultServer collector(Scenario{picky});
  auto options = to(collector);
  options.compression = "gzip";
  options.timeout = 10s;
  Otlp exporter(options);
  for (int i = 0; i < 2; ++i) {
    exporter.add(some_span());
    CHECK(exporter.flush(10s));
  }
  CHECK(exporter.exported() == 2);
  const auto seen = collector.seen();
  REQUIRE(seen.size() == 3);  // the second export knows it
  CHECK(seen[0].headers.get("Content-Encoding") == "gzip");
  CHECK(seen[0].body_size < seen[1].body_size);
  for (const auto i : {1U, 2U}) {
    CHECK_FALSE(seen[i].headers.contains("Content-Encoding"));
    CHECK(seen[i].body.starts_with("{"));
  }
}

TEST_CASE("a full queue drops what is new, and counts it") {
  FaultServer collector({{200, "{}"}});
  auto options = to(collector);
  options.queue = 4;
  Otlp exporter(options);
  for (int i = 0; i < 7; ++i) exporter.add(some_span());
  CHECK(drops(exporter, "queue_full") == 3);
  CHECK(exporter.flush(10s));
  CHECK(exporter.exported() == 4);
}

TEST_CASE("logs and archives have an entry for each send, and no secrets") {
  FaultServer server({503, {200, Headers{{"Set-Cookie", "a=s3cr3t"}}, "ok"}});
  std::vector<std::string> lines;
  Har archive;
  auto client = client_with(
      {json_log([&](std::string_view line) { lines.emplace_back(line); }), archive.observer()});
  auto request = Request::get(server.url("/a?key=s3cr3t"));
  request.set_header("Authorization", "s3cr3t");
  REQUIRE(client.send(request));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].find("\"decision\":\"retry\"") != std::string::npos);
  CHECK(lines[0].find("\"peer\":\"127.0.0.1:") != std::string::npos);
  CHECK(lines[1].find("\"decision\":\"stop\"") != std::string::npos);
  CHECK(lines[2].find("\"event\":\"call\"") != std::string::npos);
  CHECK(archive.entries() == 2);
  std::string all = archive.text();
  for (const auto& line : lines) all += line;
  CHECK(all.find("s3cr3t") == std::string::npos);
}

TEST_CASE("an archive has bodies only if that is requested, up to a size") {
  const std::string bytes("\0\xff", 2);
  FaultServer server({503, {200, "text"}, {200, bytes}, {200, std::string(100, 'x')}});
  HarOptions options;
  options.max_body = 99;
  Har with;
  Har recording(options);
  auto client = client_with({with.observer(), recording.observer()});
  for (const auto* path : {"/a", "/b", "/c"}) REQUIRE(client.get(server.url(path)));
  CHECK(with.text().find(R"("text":)") == std::string::npos);
  const auto text = recording.text();
  CHECK(text.find(R"("size":4,"mimeType":"x-unknown","text":"text"})") != std::string::npos);
  CHECK(text.find(R"("text":"AP8=","encoding":"base64"})") != std::string::npos);
  CHECK(text.find("xxx") == std::string::npos);
}

TEST_CASE("what an archive records is replayed, with its failures and without its secrets") {
  std::string archive;
  {
    FaultServer server({{503, Headers{{"Retry-After", "0"}}},
                        Fault::Reset,
                        {200, Headers{{"Set-Cookie", "a=s3cr3t"}, {"X-Kept", "1"}}, "first"},
                        {200, "second"}});
    HarOptions options;
    options.max_body = 1000;
    Har recording(options);
    auto client = client_with({recording.observer()});
    auto request = Request::get(server.url("/a?key=s3cr3t"));
    request.set_header("Authorization", "s3cr3t");
    for (int i = 0; i < 2; ++i) REQUIRE(client.send(request));
    archive = recording.text();
    CHECK(archive.find("s3cr3t") == std::string::npos);
  }
  ClientOptions options;
  options.middlewares = {retry(quick())};
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = ScriptedTransport::from_har(archive);
  Client client(options);
  const auto first = client.get("http://localhost/a?key=other");
  REQUIRE(first);
  CHECK(first->body == "first");
  CHECK(first->headers.get("X-Kept") == "1");
  CHECK_FALSE(first->headers.contains("Set-Cookie"));
  REQUIRE(first->history.attempts.size() == 3);
  CHECK(first->history.attempts[0].status == 503);
  CHECK(first->history.attempts[1].error == Errc::Receive);
  CHECK(client.get("http://localhost/a?key=other")->body == "second");
}
