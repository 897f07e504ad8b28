// The exporter, against a receiver that takes the standard at its word.
#include "collector.hpp"
#include "strict_otlp.hpp"

#include "tests/open_files.hpp"

#include <httpretry/httpretry.hpp>
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

SpanPtr some_span(int status = 200) {
  auto span = std::make_shared<Span>();
  span->method = "GET";
  span->trace = {1, 2};
  span->id = 0xAB;
  span->status = status;
  span->start = span->end = WallTime(std::chrono::seconds(1'700'000'000));
  return span;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

std::uint64_t drops(const Otlp& exporter, std::string_view signal, std::string_view why) {
  for (const auto& each : exporter.dropped()) {
    if (each.signal == signal && each.why == why) return each.count;
  }
  return 0;
}

OtlpJson body_of(const std::vector<SpanPtr>& spans) {
  return OtlpJson::parse(otlp_json(spans, {}));
}

}  // namespace

TEST_CASE("the strict receiver notices what the standard forbids") {
  const auto good = body_of({some_span(503)});
  CHECK(joined(wrong_in_spans(good)).empty());
  const auto broken = [&](std::string_view at, OtlpJson value) {
    auto body = good;
    body[OtlpJson::json_pointer("/resourceSpans/0/scopeSpans/0/spans/0" + std::string(at))] = value;
    return joined(wrong_in_spans(body));
  };
  CHECK(broken("/traceId", "AAAAAAAAAAEAAAAAAAAAAg==").find("32 hex") != std::string::npos);
  CHECK(broken("/spanId", "ab").find("16 hex") != std::string::npos);
  CHECK(broken("/kind", "SPAN_KIND_CLIENT").find("kind") != std::string::npos);
  CHECK(broken("/status/code", "STATUS_CODE_ERROR").find("status") != std::string::npos);
  CHECK(broken("/startTimeUnixNano", 1'700'000'000'000'000'000).find("as text") !=
        std::string::npos);
  CHECK(broken("/attributes/0/value", OtlpJson{{"intValue", 7}}).find("intValue") !=
        std::string::npos);
  CHECK(broken("/parent_span_id", "x").find("has parent_span_id") != std::string::npos);

  FaultServer server({{200, "ok"}});
  const auto numbers = metrics();
  ClientOptions options;
  options.observers = {numbers};
  REQUIRE(Client(options).get(server.url()));
  const auto sent = OtlpJson::parse(otlp_json(numbers->snapshot(), {}));
  CHECK(joined(wrong_in_metrics(sent)).empty());
  auto body = sent;
  auto& point =
      body.at("resourceMetrics")[0]["scopeMetrics"][0]["metrics"][0]["histogram"]["dataPoints"][0];
  point["bucketCounts"].erase(0);
  CHECK(joined(wrong_in_metrics(body)).find("one bucket more") != std::string::npos);
  point["count"] = 1;
  CHECK(joined(wrong_in_metrics(body)).find("as text") != std::string::npos);
}

TEST_CASE("spans and metrics of a client arrive as the standard wants them") {
  FaultServer server({503, {200, "ok"}, {404, ""}});
  FaultServer collector({{200, "{}"}});
  auto where = to(collector);
  where.service_name = "shop";
  where.resource = {{"deployment.environment", "test"}};
  where.headers = {{"Api-Key", "k"}};
  const auto exporter = std::make_shared<Otlp>(where);
  MetricsOptions with;
  with.exporter = exporter;
  const auto numbers = metrics(with);
  exporter->export_metrics(numbers);
  ClientOptions options;
  options.middlewares = {retry(quick()), propagate()};
  options.observers = {traces(exporter->sink()), numbers};
  Client client(options);
  REQUIRE(client.get(server.url("/a?page=1&sig=s3cr3t")));
  REQUIRE(client.get(server.url("/b")));
  REQUIRE(exporter->flush(10s));
  const auto seen = collector.seen();
  REQUIRE(seen.size() == 2);
  for (const auto& request : seen) {
    CHECK(joined(wrong_in(request)).empty());
    CHECK(request.headers["Api-Key"] == "k");
    CHECK(request.body.find("s3cr3t") == std::string::npos);
    // The exporter is not traced.
    CHECK_FALSE(request.headers.contains("traceparent"));
  }
  const auto spans = spans_of(OtlpJson::parse(seen[0].body));
  REQUIRE(spans.size() == 5);
  CHECK(exporter->exported() == 5);
  CHECK(spans[0].at("kind") == 3);
  CHECK(spans[2].at("kind") == 1);
  CHECK(spans[0].at("parentSpanId") == spans[2].at("spanId"));
  CHECK(attribute_of(spans[0], "http.response.status_code") == "503");
  CHECK(attribute_of(spans[0], "http.request.resend_count") == "-");
  CHECK(attribute_of(spans[1], "http.request.resend_count") == "1");
  CHECK(attribute_of(spans[0], "httpretry.sent") == "answered");
  CHECK(attribute_of(spans[0], "url.full") == server.url("/a?page=1&sig=REDACTED"));
  const auto resource = OtlpJson::parse(seen[0].body).at("resourceSpans")[0].at("resource");
  CHECK(attribute_of(resource, "service.name") == "shop");
  CHECK(attribute_of(resource, "deployment.environment") == "test");
  std::map<std::string, OtlpJson> by_name;
  for (const auto& metric : metrics_of(OtlpJson::parse(seen[1].body))) {
    by_name.emplace(metric.at("name"), metric);
  }
  const auto& duration = by_name.at("http.client.request.duration");
  CHECK(duration.at("unit") == "s");
  std::uint64_t sends = 0;
  for (const auto& point : duration.at("histogram").at("dataPoints")) {
    CHECK(point.at("explicitBounds").size() == 14);
    CHECK(attribute_of(point, "http.request.method") == "GET");
    CHECK(attribute_of(point, "server.port") == std::to_string(server.port()));
    CHECK(point.contains("exemplars"));
    sends += std::stoull(point.at("count").get<std::string>());
  }
  // Those of the exporter are not among them.
  CHECK(sends == 3);
  CHECK(server.requests() == 3);
  CHECK(by_name.at("httpretry.retries").at("sum").at("dataPoints")[0].at("asDouble") == 1);
}

TEST_CASE("what a collector answers to metrics: taken, retried, refused, rejected, hanging") {
  struct Row {
    Scenario steps;
    std::size_t requests;
    const char* why;
    bool some;  // only some were rejected
  };
  const auto partial = R"({"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": "no"}})";
  const Row rows[] = {
      {Scenario{Step(200, "{}")}, 1, "", false},
      {Scenario{Step(200, R"({"partialSuccess": {}})")}, 1, "", false},
      {Scenario{Step(503, Headers{{"Retry-After", "0"}}), Step(200, "{}")}, 2, "", false},
      {Scenario{Step(502), Step(504), Step(200)}, 3, "", false},
      {Scenario{Step(Fault::Reset), Step(200)}, 2, "", false},
      {Scenario{Step(429)}, 3, "unreachable", false},
      {Scenario{Step(400)}, 1, "refused", false},
      {Scenario{Step(500)}, 1, "refused", false},
      {Scenario{Step(301, Headers{{"Location", "/"}})}, 1, "refused", false},
      {Scenario{Step(200, partial)}, 1, "rejected", true},
      {Scenario{Step(Fault::Hang)}, 3, "unreachable", false},
  };
  FaultServer server({{200, "ok"}});
  for (const auto& row : rows) {
    FaultServer collector(row.steps);
    auto where = to(collector);
    // The preset, but quick.
    const auto preset = parse_policies(R"({"version": 1, "default": {"preset": "otlp"}})", "otlp");
    where.policy = *preset.value().find("POST", *Url::parse("http://h/")).policy;
    where.policy->max_attempts = 3;
    where.policy->backoff = Backoff::constant(1ms);
    where.policy->throttle_backoff.reset();
    const auto exporter = std::make_shared<Otlp>(where);
    MetricsOptions with;
    with.exporter = exporter;
    const auto numbers = metrics(with);
    exporter->export_metrics(numbers);
    ClientOptions options;
    options.observers = {numbers};
    REQUIRE(Client(options).get(server.url()));
    std::uint64_t points = 0;
    for (const auto& family : numbers->snapshot().families) points += family.series.size();
    REQUIRE(exporter->flush(10s));
    CAPTURE(row.why);
    CHECK(collector.requests() == row.requests);
    for (const auto& request : collector.seen()) CHECK(joined(wrong_in(request)).empty());
    const auto lost = std::string_view(row.why).empty() ? 0 : row.some ? 2 : points;
    CHECK(drops(*exporter, "metrics", row.why) == lost);
    CHECK(exporter->dropped().size() == (lost > 0 ? 1U : 0U));
    CHECK(numbers->snapshot().sum("httpretry_telemetry_dropped_total",
                                  {{"signal", "metrics"}, {"why", row.why}}) ==
          static_cast<double>(lost));
  }
}

TEST_CASE("calls go on while the collector hangs") {
  FaultServer server({{200, "ok"}});
  FaultServer collector({Step(Fault::Hang)});
  auto where = to(collector);
  where.timeout = where.policy->attempt_timeout = 1h;
  where.policy->max_elapsed_time = 2h;
  where.queue = 8;
  where.batch = 2;
  {
    Otlp exporter(where);
    exporter.add(some_span());
    CHECK_FALSE(exporter.flush(1ms));
    REQUIRE(collector.wait_for_requests(1, 10s));
    ClientOptions options;
    options.observers = {traces(exporter.sink())};
    Client client(options);
    for (int i = 0; i < 20; ++i) CHECK(client.get(server.url()));
    CHECK(server.requests() == 20);
    // Of 40 spans 8 have room.
    CHECK(drops(exporter, "traces", "queue_full") == 32);
    CHECK(exporter.exported() == 0);
  }  // and the end does not wait either
  CHECK(collector.requests() == 1);
}

TEST_CASE("metrics that own their exporter can be destroyed while they are exported") {
  FaultServer collector({Step(Fault::Hang)});
  auto where = to(collector);
  where.timeout = where.policy->attempt_timeout = 1h;
  where.policy->max_elapsed_time = 2h;
  auto exporter = std::make_shared<Otlp>(where);
  MetricsOptions with;
  with.exporter = exporter;
  auto numbers = metrics(std::move(with));
  exporter->export_metrics(numbers);
  CHECK_FALSE(exporter->flush(1ms));
  REQUIRE(collector.wait_for_requests(1, 10s));
  const std::weak_ptr<const Otlp> watched = exporter;
  exporter.reset();
  CHECK_FALSE(watched.expired());
  numbers.reset();
  CHECK(watched.expired());
}

TEST_CASE("a flush ends although spans are added as fast as they are sent") {
  Step slow(200, "{}");
  slow.delay = 20ms;
  FaultServer collector(Scenario{slow});
  Otlp exporter(to(collector));
  std::atomic<bool> done = false;
  std::thread producer([&] {
    while (!done) {
      exporter.add(some_span());
      std::this_thread::sleep_for(1ms);
    }
  });
  CHECK(exporter.flush(5s));
  std::this_thread::sleep_for(20ms);  // so that some spans wait
  CHECK(exporter.flush(5s));
  CHECK(collector.requests() > 0);
  done = true;
  producer.join();
}

TEST_CASE("without an interval, the exporter still waits between two exports") {
  FaultServer collector({{200, "{}"}});
  auto where = to(collector);
  where.interval = where.metrics_interval = Duration::zero();
  const auto begin = std::chrono::steady_clock::now();
  const auto numbers = metrics();
  Otlp exporter(where);
  exporter.export_metrics(numbers);
  std::this_thread::sleep_for(200ms);
  const auto requests = collector.requests();
  const auto time = std::chrono::steady_clock::now() - begin;
  CHECK(requests <= static_cast<std::size_t>(time / 10ms));
}

TEST_CASE("a batch without spans and a queue without a limit are refused") {
  OtlpOptions options;
  options.batch = 0;
  CHECK_THROWS_WITH_AS(Otlp{options}, "OtlpOptions::batch must be at least 1",
                       std::invalid_argument);
  options.batch = 1;
  options.queue = SIZE_MAX;
  CHECK_THROWS_WITH_AS(Otlp{options}, "OtlpOptions::queue must be at most 2^30",
                       std::invalid_argument);
}

TEST_CASE("an exporter whose client cannot be made leaves no descriptor open") {
  OtlpOptions options;
  options.connection.proxy.url = "no://proxy";
  const auto before = open_files();
  CHECK_THROWS(Otlp(options));
  CHECK(open_files() == before);
}

TEST_CASE("what is left at the end is told") {
  FaultServer collector({Step(Fault::Hang)});
  std::vector<std::string> told;
  auto where = to(collector);
  where.timeout = where.policy->attempt_timeout = 1h;
  where.policy->max_elapsed_time = 2h;
  where.on_problem = [&](const std::string& problem) { told.push_back(problem); };
  auto exporter = std::make_shared<Otlp>(where);
  const auto sink = exporter->sink();
  sink(some_span());
  CHECK_FALSE(exporter->flush(1ms));
  REQUIRE(collector.wait_for_requests(1, 10s));
  sink(some_span());
  exporter.reset();
  sink(some_span());  // by a client that lives longer
  CHECK(joined(told) ==
        "OTLP: 2 spans and 0 data points were dropped, because no time was left: POST " +
            collector.url("/v1/traces") + ": the collector has not responded yet\n");
  CHECK(collector.requests() == 1);
}

TEST_CASE("what the collector responded last is told at the end") {
  FaultServer collector({503, Fault::Hang});
  std::vector<std::string> told;
  auto where = to(collector);
  where.timeout = where.policy->attempt_timeout = 1h;
  where.policy->max_elapsed_time = 2h;
  where.on_problem = [&](const std::string& problem) { told.push_back(problem); };
  {
    const auto numbers = metrics();
    std::size_t points = 0;
    for (const auto& family : numbers->snapshot().families) points += family.series.size();
    Otlp exporter(where);
    exporter.export_metrics(numbers);
    CHECK_FALSE(exporter.flush(1ms));
    REQUIRE(collector.wait_for_requests(2, 30s));
    CHECK(told.empty());
    told.push_back(std::to_string(points));
  }
  REQUIRE(told.size() == 2);
  CHECK(told[1] == "OTLP: 0 spans and " + told[0] +
                       " data points were dropped, because no time was left: POST " +
                       collector.url("/v1/metrics") + ": the collector responded with 503");
}

TEST_CASE("the end of the exporter sends what there is") {
  FaultServer collector({{200, "{}"}});
  std::vector<std::string> told;
  auto where = to(collector);
  where.shutdown = 10s;
  where.on_problem = [&](const std::string& problem) { told.push_back(problem); };
  { Otlp(where).add(some_span()); }
  CHECK(told.empty());
  REQUIRE(collector.requests() == 1);
  CHECK(spans_of(OtlpJson::parse(collector.seen()[0].body)).size() == 1);
}

TEST_CASE("each problem is told once, without the headers") {
  FaultServer collector({Step(401)});
  std::vector<std::string> told;
  auto where = to(collector);
  where.headers = {{"Authorization", "s3cr3t"}};
  where.on_problem = [&](const std::string& problem) { told.push_back(problem); };
  Otlp exporter(where);
  for (int i = 0; i < 3; ++i) {
    exporter.add(some_span());
    REQUIRE(exporter.flush(10s));
  }
  CHECK(drops(exporter, "traces", "refused") == 3);
  CHECK(joined(told) == "OTLP traces were dropped: POST " + collector.url("/v1/traces") +
                            ": the collector responded with 401\n");
}

TEST_CASE("what a partial success rejects is a number or a text, and at most what was sent") {
  struct Row {
    const char* rejected;
    std::uint64_t count;
  };
  const Row rows[] = {
      {R"("10")", 10}, {R"("")", 0}, {R"("99")", 12}, {"7", 7},
      {"0", 0},        {"-3", 0},    {"99", 12},      {"18446744073709551615", 12},
      {"true", 0},     {"1.5", 0},   {"null", 0},     {R"("x")", 0},
  };
  for (const auto& row : rows) {
    CAPTURE(row.rejected);
    const auto body = R"({"partialSuccess": {"rejectedSpans": )" + std::string(row.rejected) +
                      R"(, "errorMessage": "too old"}})";
    FaultServer collector(Scenario{Step(200, body)});
    std::vector<std::string> told;
    auto where = to(collector);
    where.timeout = 10s;
    where.on_problem = [&](const std::string& problem) { told.push_back(problem); };
    Otlp exporter(where);
    for (int i = 0; i < 12; ++i) exporter.add(some_span());
    REQUIRE(exporter.flush(10s));
    CHECK(collector.requests() == 1);
    CHECK(exporter.exported() == 12 - row.count);
    CHECK(drops(exporter, "traces", "rejected") == row.count);
    CHECK(joined(told) ==
          (row.count == 0 ? "" : "OTLP traces were rejected by the collector: too old\n"));
  }
}

TEST_CASE("a rejection without a message is told without one") {
  FaultServer collector(Scenario{Step(200, R"({"partialSuccess": {"rejectedSpans": 1}})")});
  std::vector<std::string> told;
  auto where = to(collector);
  where.timeout = 10s;
  where.on_problem = [&](const std::string& problem) { told.push_back(problem); };
  Otlp exporter(where);
  exporter.add(some_span());
  REQUIRE(exporter.flush(10s));
  CHECK(joined(told) == "OTLP traces were rejected by the collector\n");
}

TEST_CASE("spans are sent after the interval, and metrics after theirs, without a flush") {
  for (const bool sends_spans : {true, false}) {
    CAPTURE(sends_spans);
    FaultServer collector({{200, "{}"}});
    auto where = to(collector);
    where.timeout = 10s;
    (sends_spans ? where.interval : where.metrics_interval) = 20ms;
    const auto numbers = metrics();
    Otlp exporter(where);
    exporter.export_metrics(numbers);
    if (sends_spans) exporter.add(some_span());
    REQUIRE(collector.wait_for_requests(1, 30s));
    CHECK(collector.seen()[0].path == (sends_spans ? "/v1/traces" : "/v1/metrics"));
    if (!sends_spans) continue;
    REQUIRE(exporter.flush(30s));  // only this sends the metrics
    CHECK(collector.requests() == 2);
  }
}

TEST_CASE("a batch of one span is sent at once") {
  FaultServer collector({{200, "{}"}});
  auto where = to(collector);
  where.timeout = 10s;
  where.batch = 1;
  Otlp exporter(where);
  exporter.add(some_span());
  CHECK(collector.wait_for_requests(1, 30s));
}

TEST_CASE("a full batch is sent at once, and a request has at most one batch") {
  FaultServer collector({{200, "{}"}});
  auto where = to(collector);
  where.timeout = 10s;
  where.batch = 3;
  Otlp exporter(where);
  for (int i = 0; i < 2; ++i) exporter.add(some_span());
  REQUIRE(exporter.flush(30s));
  exporter.add(some_span());  // the third one since the beginning
  REQUIRE(collector.wait_for_requests(2, 30s));
  for (int i = 0; i < 5; ++i) exporter.add(some_span());
  REQUIRE(exporter.flush(30s));
  CHECK(exporter.exported() == 8);
  std::size_t spans = 0;
  for (const auto& request : collector.seen()) {
    const auto count = spans_of(OtlpJson::parse(request.body)).size();
    CHECK(count <= 3);
    spans += count;
  }
  CHECK(spans == 8);
}

TEST_CASE("spans that fill the queue are all sent by one flush, in their order") {
  FaultServer collector({{200, "{}"}});
  auto where = to(collector);
  where.timeout = 10s;
  where.queue = 5;  // rounded up to 8
  where.batch = 100;
  Otlp exporter(where);
  for (int i = 0; i < 9; ++i) exporter.add(some_span(200 + i));
  CHECK(drops(exporter, "traces", "queue_full") == 1);
  REQUIRE(exporter.flush(30s));
  CHECK(exporter.exported() == 8);
  CHECK(collector.requests() == 1);
  int status = 200;
  for (const auto& request : collector.seen()) {
    for (const auto& span : spans_of(OtlpJson::parse(request.body))) {
      CHECK(attribute_of(span, "http.response.status_code") == std::to_string(status));
      ++status;
    }
  }
  CHECK(status == 208);
}

TEST_CASE("at most 16 different problems are remembered, so further ones are told each time") {
  Step wrong;
  wrong.respond = [](const SeenRequest& request) {
    const auto span = spans_of(OtlpJson::parse(request.body)).at(0);
    const auto status = attribute_of(span, "http.response.status_code");
    return Step(200,
                R"({"partialSuccess": {"rejectedSpans": 1, "errorMessage": ")" + status + R"("}})");
  };
  FaultServer collector(Scenario{wrong});
  std::vector<std::string> told;
  auto where = to(collector);
  where.timeout = 10s;
  where.on_problem = [&](const std::string& problem) { told.push_back(problem); };
  Otlp exporter(where);
  for (int round = 0; round < 2; ++round) {
    for (int status = 200; status < 218; ++status) {
      exporter.add(some_span(status));
      REQUIRE(exporter.flush(10s));
    }
  }
  REQUIRE(told.size() == 20);  // 18 different ones, and the last two of them again
  CHECK(told[18] == "OTLP traces were rejected by the collector: 216");
  CHECK(told[19] == "OTLP traces were rejected by the collector: 217");
}

TEST_CASE("where endpoints lead") {
  struct Row {
    const char* base;
    const char* traces;
    const char* path;
  };
  FaultServer collector({{200, "{}"}});
  const auto at = [&](const char* path) { return collector.url("") + path; };
  const Row rows[] = {
      {"", "", "/v1/traces"},      {"/", "", "/v1/traces"},        {"/x", "", "/x/v1/traces"},
      {"/x/", "", "/x/v1/traces"}, {"/x?y=1", "", "/x/v1/traces"}, {"/x", "/t", "/t"},
      {"/x", "", "/x/v1/traces"},
  };
  for (const auto& row : rows) {
    auto where = to(collector);
    where.endpoint = at(row.base);
    if (*row.traces != '\0') where.traces_endpoint = at(row.traces);
    Otlp exporter(where);
    exporter.add(some_span());
    REQUIRE(exporter.flush(10s));
    CHECK(collector.seen().back().path == row.path);
  }
  auto where = to(collector);
  where.traces_endpoint = at("");
  Otlp exporter(where);
  exporter.add(some_span());
  REQUIRE(exporter.flush(10s));
  CHECK(collector.seen().back().path == "/");
  where.traces_endpoint = "collector:4318";
  CHECK_THROWS_AS(Otlp{where}, std::invalid_argument);
}
