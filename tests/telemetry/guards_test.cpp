// What guards tell, in metrics, spans and log lines.
#include "tests/client/conversation.hpp"

#include <httpretry/guard/guards.hpp>
#include <httpretry/guard/hedge.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

struct Watched {
  // `policy`: JSON, for all requests.
  explicit Watched(const std::string& policy, std::size_t max_hosts = 200)
      : clock(std::make_shared<ManualScheduler>(std::chrono::system_clock::now())) {
    MetricsOptions limits;
    limits.max_hosts = max_hosts;
    numbers = metrics(limits);
    options.middlewares = {
        retry(
            parse_policies(R"({"version": 1, "default": )" + policy + "}", "policy.json").value()),
        hedge(), guards(local_state())};
    options.scheduler = clock;
    options.transport = network;
    options.observers = {traces([this](SpanPtr span) { spans.push_back(std::move(span)); }),
                         numbers,
                         json_log([this](std::string_view line) { lines.emplace_back(line); })};
    options.random = fixed_random(0.5);
  }
  double value(std::string_view name, const MetricsSnapshot::Labels& labels = {}) const {
    return numbers->snapshot().sum(name, labels);
  }
  bool logged(std::string_view text) const {
    return std::ranges::any_of(
        lines, [&](const auto& line) { return line.find(text) != std::string::npos; });
  }

  std::shared_ptr<ManualScheduler> clock;
  std::shared_ptr<ScriptedTransport> network = std::make_shared<ScriptedTransport>();
  std::shared_ptr<Metrics> numbers;
  std::vector<SpanPtr> spans;
  std::vector<std::string> lines;
  ClientOptions options;
};

}  // namespace

TEST_CASE("a circuit that opens and closes, and the send that it refuses") {
  Watched watched(R"({"max_attempts": 1, "pause": "none", "breaker": {"kind": "consecutive",
    "failures": 1, "open_for": {"kind": "constant", "interval": "5s"}}})");
  watched.network->say(Response(503)).say(Response(200));
  Client client(watched.options);
  CHECK(client.get("http://x/"));
  // The scope tells the block of the policy, too.
  CHECK(watched.value("httpretry_circuit_state", {{"scope", "http://x /default"}}) == 2);
  CHECK(watched.logged(R"("event":"circuit","call":)"));
  CHECK(watched.logged(R"("key":"http://x /default","from":"closed","to":"open","why":)"));
  watched.spans.clear();
  CHECK_FALSE(client.get("http://x/"));
  CHECK(watched.value("httpretry_refused_total", {{"reason", "circuit_open"}}) == 1);
  CHECK(watched.value("httpretry_sends_total") == 1);
  CHECK(watched.logged(R"("event":"refused")"));
  REQUIRE(watched.spans.size() == 1);  // nothing was sent
  REQUIRE(watched.spans[0]->events.size() == 1);
  CHECK(watched.spans[0]->events[0].name == "refused");
  CHECK(std::get<std::string>(watched.spans[0]->events[0].attributes[0].value) == "circuit_open");
  watched.clock->advance(6s);
  CHECK(client.get("http://x/"));
  CHECK(watched.value("httpretry_circuit_state") == 0);
  for (const auto* to : {"open", "half_open", "closed"}) {
    CAPTURE(to);
    CHECK(watched.value("httpretry_circuit_changes_total", {{"to", to}}) == 1);
  }
}

TEST_CASE("a hedge that wins, and one that is refused") {
  Watched watched(R"({"hedge": {"after": "100ms", "budget": "none"}})");
  Har archive;
  watched.options.observers.push_back(archive.observer());
  watched.network->say(Response(200), 1h).say(Response(204), 10ms);
  Client client(watched.options);
  CHECK(client.get("http://x/")->status == 204);
  CHECK(watched.value("httpretry_hedges_total", {{"result", "won"}}) == 1);
  CHECK(watched.value("httpretry_sends_total") == 2);
  REQUIRE(watched.spans.size() == 3);
  const auto& slow = *watched.spans[0];
  CHECK(slow.lost);
  CHECK(slow.outcome() == Span::Status::Unset);
  const auto& quick = *watched.spans[1];
  CHECK(quick.hedge_of == 1);
  CHECK(quick.resend_count == 1);
  CHECK(quick.parent == watched.spans[2]->id);
  const auto has = [](const Span& span, std::string_view key) {
    return std::ranges::any_of(span.attributes(), [&](const auto& one) { return one.key == key; });
  };
  CHECK(has(slow, "httpretry.lost"));
  CHECK(has(quick, "httpretry.hedge_of"));
  // Each of the two durations has the span of its own send.
  std::set<std::string> exemplars;
  const auto snapshot = watched.numbers->snapshot();
  for (const auto& series : snapshot.find("http_client_request_duration_seconds")->series) {
    for (const auto& exemplar : series.exemplars) {
      if (exemplar) exemplars.insert(exemplar->span_id);
    }
  }
  CHECK(exemplars == std::set{span_id_hex(slow.id), span_id_hex(quick.id)});
  CHECK(watched.logged(R"("event":"hedge")"));
  CHECK(watched.logged(R"("attempt":2,"after_ms":100)"));
  CHECK(watched.logged(R"("hedge_of":1,"lost":false)"));
  CHECK(archive.text().find("hedge of attempt 1 after 100 ms; success") != std::string::npos);

  watched.network->say(Response(200), 200ms);
  CHECK(client.post("http://x/", "one")->status == 200);
  CHECK(watched.value("httpretry_hedges_total", {{"result", "refused_method"}}) == 1);
  CHECK(watched.logged(R"("event":"hedge_refused")"));
  CHECK(watched.logged(R"("reason":"method")"));
}

TEST_CASE("a pause, and the call that waits for its end") {
  Watched watched(R"({"max_attempts": 1})");
  Response busy(503);
  busy.headers.add("Retry-After", "3000");
  watched.network->say(busy).say(Response(200));
  Client client(watched.options);
  CHECK(client.get("http://x/"));
  CHECK(watched.value("httpretry_paused", {{"scope", "http://x"}}) == 1);
  CHECK(watched.logged(R"("event":"pause")"));
  CHECK(watched.logged(R"("key":"http://x","for_ms":60000,"source":"retry-after")"));
}

TEST_CASE("the wait for a slot is told by what held the send back") {
  Watched watched(R"({"max_attempts": 1, "concurrency": {"max": 1}})");
  watched.network->say(Response(200), 2s);
  Client client(watched.options);
  int done = 0;
  for (int i = 0; i < 2; ++i) {
    client.send_then(Request::get("http://x/"), [&](const Outcome& outcome) {
      CHECK(outcome);
      ++done;
    });
  }
  watched.clock->advance(10s);
  CHECK(done == 2);
  CHECK(watched.value("httpretry_queue_seconds", {{"by", "concurrency"}}) == 1);
  const auto waited =
      std::ranges::find_if(watched.spans, [](const auto& span) { return !span->events.empty(); });
  REQUIRE(waited != watched.spans.end());
  const auto& event = (*waited)->events.front();
  CHECK(event.name == "queued");
  CHECK(std::get<double>(event.attributes[0].value) == 2);
  CHECK(std::get<std::string>(event.attributes[1].value) == "concurrency");
  CHECK(watched.logged(R"("queued":2000,)"));
  CHECK(watched.logged(R"("queued_by":"concurrency")"));
}

TEST_CASE("scopes above the limit are counted together, without a state") {
  Watched watched("{}", 2);
  watched.network->say(Response(200));
  watched.options.middlewares.push_back(on_request("tells", [](Request& request, Call& call) {
    CircuitChange circuit;
    circuit.key = request.url();
    circuit.to = Circuit::Open;
    call.emit(&Observer::circuit_changed, circuit);
    LimitChange limit;
    limit.key = request.url();
    limit.to = 18;
    call.emit(&Observer::limit_changed, limit);
    PauseBegun pause;
    pause.key = request.url();
    call.emit(&Observer::paused, pause);
    if (request.url().ends_with("/a")) {
      call.emit(&Observer::resumed, std::string_view(request.url()));
    }
  }));
  Client client(watched.options);
  for (const auto* url : {"http://x/a", "http://x/b", "http://x/c", "http://x/d"}) {
    CHECK(client.get(url));
  }
  CHECK(watched.value("httpretry_limit", {{"scope", "http://x/a"}}) == 18);
  CHECK(watched.value("httpretry_paused", {{"scope", "http://x/a"}}) == 0);
  CHECK(watched.value("httpretry_paused", {{"scope", "http://x/b"}}) == 1);
  CHECK(watched.value("httpretry_circuit_changes_total", {{"scope", "_other"}}) == 2);
  for (const auto* name : {"httpretry_limit", "httpretry_paused", "httpretry_circuit_state"}) {
    CHECK(watched.numbers->snapshot().find(name)->series.size() == 2);
  }
}

TEST_CASE("a number of hosts that is too large is reduced") {
  Watched watched(R"({"budget": {"kind": "tokens", "capacity": 100, "retry_cost": 10,
    "scope": "host"}})",
                  SIZE_MAX);
  watched.network->say(Response(200));
  Client client(watched.options);
  CHECK(client.get("http://x/"));
  CHECK(watched.value("httpretry_budget_left") > 0);
}

TEST_CASE("a shared state that is away, and back, is a line of the log") {
  Watched watched("{}");
  watched.network->say(Response(200));
  watched.options.middlewares.push_back(on_request("tells", [](Request&, Call& call) {
    SharedStateChange change;
    change.degraded = true;
    change.place = "redis://h:6379/0";
    change.why = "no response within 50 ms";
    call.emit(&Observer::shared_state_changed, change);
  }));
  Client client(watched.options);
  CHECK(client.get("http://x/"));
  CHECK(watched.logged(R"("event":"shared_state")"));
  CHECK(watched.logged(
      R"("degraded":true,"place":"redis://h:6379/0","why":"no response within 50 ms")"));
}
