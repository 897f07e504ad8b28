// Tests the labels and values of metrics after given observer events.
#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Lines = std::set<std::string>;

constexpr auto* kDurations = "http_client_request_duration_seconds";

// Returns "NAME=VALUE,NAME=VALUE: NUMBER" for each series of a family; the number of a histogram is
// that of its values.
Lines lines_of(const Metrics& numbers, std::string_view family_name) {
  const auto snapshot = numbers.snapshot();
  const auto* family = snapshot.find(family_name);
  REQUIRE(family != nullptr);
  Lines lines;
  for (const auto& series : family->series) {
    std::string line;
    for (const auto& [name, value] : series.labels) {
      line.append(line.empty() ? "" : ",").append(name).append("=").append(value);
    }
    const auto number = family->kind == MetricFamily::Kind::Histogram
                            ? static_cast<std::int64_t>(series.count())
                            : static_cast<std::int64_t>(series.value);
    lines.insert(line + ": " + std::to_string(number));
  }
  return lines;
}

// Makes a call to http://x/ that these metrics observe, and of which `act` is a part.
void call_with(const std::shared_ptr<Metrics>& numbers,
               const std::function<void(Request&, Call&)>& act) {
  const Conversation talk;
  talk.network->say(Response(200));
  ClientOptions options;
  options.middlewares = {on_request("acts", act)};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {numbers};
  REQUIRE(Client(options).get("http://x/"));
}

// An exchange of the call from its beginning to its end.
void emit_exchange(Call& call, const Request& request, const Outcome& outcome) {
  call.emit(&Observer::exchange_started, request, 77);
  call.emit(&Observer::exchange_ended, request, 77, outcome);
}

// A client whose requests have the policies of this file.
Client client_with_policies(const Conversation& talk, const std::shared_ptr<Metrics>& numbers,
                            const std::string& json, std::vector<MiddlewarePtr> more = {}) {
  ClientOptions options;
  options.middlewares = {retry(parse_policies(json, "policy.json").value())};
  for (auto& each : more) options.middlewares.push_back(std::move(each));
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {numbers};
  return Client(options);
}

}  // namespace

TEST_CASE("a send is counted by its method, its server, its version, and its status or error") {
  const auto numbers = metrics();
  call_with(numbers, [](Request& request, Call& call) {
    const auto ended = [&](int status, const char* version) {
      Response response(status);
      response.http_version = version;
      emit_exchange(call, request, response);
    };
    ended(399, "");
    ended(400, "1.0");
    ended(599, "2");
    ended(201, "3");
    ended(202, "2.5");
    Error partial(Errc::Receive);
    partial.status = 206;
    emit_exchange(call, request, partial);
    emit_exchange(call, Request::get("https://[2001:db8::1]/"), Response(203));
  });
  const std::string begin = "http_request_method=GET,server_address=x,server_port=80,";
  CHECK(
      lines_of(*numbers, kDurations) ==
      Lines{begin + "http_response_status_code=200,network_protocol_version=1.1: 1",
            begin + "http_response_status_code=399: 1",
            begin + "http_response_status_code=400,error_type=400,network_protocol_version=1.0: 1",
            begin + "http_response_status_code=599,error_type=599,network_protocol_version=2: 1",
            begin + "http_response_status_code=201,network_protocol_version=3: 1",
            begin + "http_response_status_code=202,network_protocol_version=_other: 1",
            begin + "http_response_status_code=206,error_type=receive: 1",
            "http_request_method=GET,server_address=2001:db8::1,server_port=443,"
            "http_response_status_code=203,network_protocol_version=1.1: 1"});
  CHECK(lines_of(*numbers, "httpretry_call_attempts") == Lines{"stop_reason=success: 1"});
}

TEST_CASE("each error and each method has a label of its own, and other methods are _OTHER") {
  const auto numbers = metrics();
  constexpr int kErrors = static_cast<int>(Errc::Status) + 1;
  const std::array<const char*, 12> methods{"GET",     "POST",    "PUT",     "DELETE",
                                            "HEAD",    "PATCH",   "QUERY",   "TRACE",
                                            "CONNECT", "OPTIONS", "GETAWAY", "BREW"};
  call_with(numbers, [&](Request& request, Call& call) {
    for (int i = 0; i < kErrors; ++i) emit_exchange(call, request, Error(static_cast<Errc>(i)));
    for (const auto* method : methods) {
      emit_exchange(call, Request(method, "http://y/"), Response(200));
    }
  });
  const auto snapshot = numbers->snapshot();
  for (int i = 0; i < kErrors; ++i) {
    const auto error = to_string(static_cast<Errc>(i));
    CAPTURE(error);
    CHECK(snapshot.sum(kDurations, {{"error_type", error}}) == 1);
  }
  CHECK(snapshot.sum(kDurations, {{"http_response_status_code", ""}}) == kErrors);
  for (const auto* method : methods) {
    CAPTURE(method);
    const bool is_other =
        std::string_view(method) == "GETAWAY" || std::string_view(method) == "BREW";
    CHECK(snapshot.sum(kDurations, {{"server_address", "y"}, {"http_request_method", method}}) ==
          (is_other ? 0 : 1));
  }
  CHECK(snapshot.sum(kDurations, {{"http_request_method", "_OTHER"}}) == 2);
  CHECK(snapshot.find(kDurations)->series.size() == 1 + kErrors + 11);
}

TEST_CASE("the upper bounds of histograms are those of the conventions, and inclusive") {
  const auto numbers = metrics();
  const std::vector<double> bounds{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25,
                                   0.5,   0.75, 1,     2.5,  5,     7.5, 10};
  call_with(numbers, [&](Request& /*request*/, Call& call) {
    const auto request = Request::get("http://y/");
    for (const auto bound : bounds) {
      Response response(200);
      response.exchange.timings.total =
          std::chrono::microseconds(static_cast<std::int64_t>(bound * 1e6 + 0.5));
      emit_exchange(call, request, response);
      response.exchange.timings.total += 1ns;
      emit_exchange(call, request, response);
    }
    for (const std::size_t count : {0U, 1U, 2U, 5U, 6U, 10U, 11U}) {
      Response response(200);
      response.history.attempts.resize(count);
      response.history.elapsed = 2s;
      response.history.stop_reason = Reason::NotRetryable;
      call.emit(&Observer::call_ended, Outcome(response));
    }
  });
  const auto snapshot = numbers->snapshot();
  const auto* durations = snapshot.find(kDurations);
  CHECK(durations->bounds == bounds);
  CHECK(durations->unit == "s");
  for (const auto& series : durations->series) {
    if (series.label("server_address") != "y") continue;
    CHECK(series.counts == std::vector<std::uint64_t>{1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1});
    CHECK(series.count() == 28);
  }
  CHECK(snapshot.find("httpretry_call_duration_seconds")->bounds == bounds);
  CHECK(snapshot.find("httpretry_queue_seconds")->bounds == bounds);
  const auto* attempts = snapshot.find("httpretry_call_attempts");
  CHECK(attempts->bounds == std::vector<double>{1, 2, 3, 4, 5, 10});
  for (const auto& series : attempts->series) {
    if (series.label("stop_reason") != "not_retryable") continue;
    CHECK(series.counts == std::vector<std::uint64_t>{2, 1, 0, 0, 1, 2, 1});
    CHECK(series.value == 35);
  }
  for (const auto& series : snapshot.find("httpretry_call_duration_seconds")->series) {
    if (series.label("stop_reason") != "not_retryable") continue;
    CHECK(series.value == 14);
    CHECK(series.counts[10] == 7);
  }
}

TEST_CASE("what retries, hedges and guards did is counted by its reason") {
  const auto numbers = metrics();
  call_with(numbers, [](Request& request, Call& call) {
    const auto retried = [&](Class cls, const char* rule) {
      Attempt attempt;
      attempt.cls = cls;
      attempt.rule = rule;
      attempt.retried = true;
      attempt.wait = 1500ms;
      call.emit(&Observer::attempt_ended, request, attempt);
    };
    retried(Class::Transient, "status 503");
    retried(Class::Transient, "error_codes: aws SlowDown");
    retried(Class::Pending, "pending: status 202");
    retried(Class::Transport, "transport timeout");
    retried(Class::Permanent, "error");
    retried(Class::Throttle, "proxy 407");
    retried(Class::Throttle, "grpc-retry-pushback");
    retried(Class::Transport, "stale connection");
    retried(Class::Success, "no middleware retry");
    retried(Class::Transient, "mine");
    retried(Class::Transient, "stat");
    const auto hedged = [&](Race race) {
      Attempt attempt;
      attempt.hedge = std::make_shared<Hedge>();
      attempt.race = race;
      call.emit(&Observer::attempt_ended, request, attempt);
    };
    hedged(Race::Won);
    hedged(Race::Lost);
    hedged(Race::Lost);
    for (int i = 0; i <= static_cast<int>(Reason::Canceled); ++i) {
      Response response(200);
      response.history.stop_reason = static_cast<Reason>(i);
      call.emit(&Observer::call_ended, Outcome(response));
    }
    for (const auto why : {HedgeRefused::Method, HedgeRefused::RetryBudget}) {
      Response response(200);
      response.history.hedge_refused = why;
      call.emit(&Observer::call_ended, Outcome(response));
    }
    int times = 0;
    for (const auto code : {Errc::Timeout, Errc::Paused, Errc::CircuitOpen, Errc::RateLimited,
                            Errc::QueueFull, Errc::Status, Errc::InvalidRequest}) {
      for (int i = 0; i < times; ++i) call.emit(&Observer::shed, Error(code));
      ++times;
    }
    call.emit(&Observer::exchange_started, request, 99);  // it does not end
  });
  CHECK(lines_of(*numbers, "httpretry_retries_total") ==
        Lines{"class=transient,rule_kind=status: 1", "class=transient,rule_kind=error_codes: 1",
              "class=pending,rule_kind=pending: 1", "class=transport,rule_kind=transport: 1",
              "class=permanent,rule_kind=error: 1", "class=throttle,rule_kind=proxy: 1",
              "class=throttle,rule_kind=grpc-retry-pushback: 1",
              "class=transport,rule_kind=stale connection: 1",
              "class=success,rule_kind=no middleware retry: 1",
              "class=transient,rule_kind=other: 2"});
  CHECK(numbers->snapshot().sum("httpretry_retry_wait_seconds_total") == 16.5);
  CHECK(lines_of(*numbers, "httpretry_retries_refused_total") ==
        Lines{"reason=unsafe_to_repeat: 1", "reason=not_replayable: 1",
              "reason=attempts_exhausted: 1", "reason=elapsed_exhausted: 1",
              "reason=server_delay_too_long: 1", "reason=budget_exhausted: 1"});
  CHECK(lines_of(*numbers, "httpretry_hedges_total") == Lines{"result=won: 1", "result=lost: 2",
                                                              "result=refused_method: 1",
                                                              "result=refused_retry_budget: 1"});
  CHECK(lines_of(*numbers, "httpretry_refused_total") ==
        Lines{"reason=paused: 1", "reason=circuit_open: 2", "reason=rate_limited: 3",
              "reason=queue_full: 4"});
  CHECK(lines_of(*numbers, "httpretry_in_flight") == Lines{"scope=http://x: 1"});
  CHECK(lines_of(*numbers, "httpretry_fallbacks_total").empty());
}

TEST_CASE("waits before sends are counted by what caused them, each once") {
  const auto numbers = metrics();
  call_with(numbers, [](Request& request, Call& call) {
    Response response(200);
    response.exchange.timings.queued = 2s;
    response.exchange.queued_by = QueuedBy::MaxInFlight;
    emit_exchange(call, request, response);
    for (const auto by :
         {QueuedBy::Nothing, QueuedBy::Pause, QueuedBy::Ramp, QueuedBy::Circuit, QueuedBy::Rate,
          QueuedBy::Concurrency, QueuedBy::MaxInFlight, QueuedBy::SharedState}) {
      Exchange exchange;
      exchange.queued_by = by;
      exchange.timings.queued = 3s;
      Attempt attempt;
      attempt.set_exchange(exchange);
      call.emit(&Observer::attempt_ended, request, attempt);
    }
  });
  CHECK(lines_of(*numbers, "httpretry_queue_seconds") ==
        Lines{"by=pause: 1", "by=ramp: 1", "by=circuit: 1", "by=rate: 1", "by=concurrency: 1",
              "by=max_in_flight: 1", "by=shared_state: 1"});
  const auto snapshot = numbers->snapshot();
  for (const auto& series : snapshot.find("httpretry_queue_seconds")->series) {
    CHECK(series.value == (series.label("by") == "max_in_flight" ? 2 : 3));
  }
}

TEST_CASE("circuits, limits and pauses of different scopes do not mix") {
  const auto numbers = metrics();
  call_with(numbers, [](Request& /*request*/, Call& call) {
    const auto change = [&](std::string_view key, Circuit to) {
      CircuitChange circuit;
      circuit.key = key;
      circuit.to = to;
      call.emit(&Observer::circuit_changed, circuit);
    };
    change("http://a", Circuit::Open);
    change("http://a", Circuit::HalfOpen);
    change("http://a", Circuit::Open);
    change("http://b", Circuit::HalfOpen);
    change("http://c", Circuit::Closed);
    LimitChange limit;
    limit.key = "http://b";
    limit.from = 20;
    limit.to = 18;
    call.emit(&Observer::limit_changed, limit);
  });
  CHECK(lines_of(*numbers, "httpretry_circuit_state") ==
        Lines{"scope=http://a: 2", "scope=http://b: 1", "scope=http://c: 0"});
  CHECK(lines_of(*numbers, "httpretry_circuit_changes_total") ==
        Lines{"scope=http://a,to=open: 2", "scope=http://a,to=half_open: 1",
              "scope=http://b,to=half_open: 1", "scope=http://c,to=closed: 1"});
  CHECK(lines_of(*numbers, "httpretry_limit") == Lines{"scope=http://b: 18"});
  CHECK(lines_of(*numbers, "httpretry_paused").empty());
}

TEST_CASE("beyond 4096 series, the server and the status of a new one are _other") {
  const auto numbers = metrics();
  call_with(numbers, [](Request& request, Call& call) {
    for (int i = 0; i < 4096; ++i) emit_exchange(call, request, Response(1000 + i));
    emit_exchange(call, request, Response(1000));  // an old one
    emit_exchange(call, request, Response(9000));
    emit_exchange(call, request, Error(Errc::Timeout));
  });
  const auto snapshot = numbers->snapshot();
  CHECK(snapshot.sum(kDurations, {{"http_response_status_code", "1000"}}) == 2);
  CHECK(snapshot.sum(kDurations, {{"http_response_status_code", "5095"}}) == 1);
  // One of the two is the send of the call itself.
  CHECK(snapshot.sum(kDurations, {{"server_address", "_other"},
                                  {"server_port", ""},
                                  {"http_response_status_code", "_other"},
                                  {"error_type", ""}}) == 2);
  CHECK(snapshot.sum(kDurations, {{"server_address", "_other"},
                                  {"http_response_status_code", ""},
                                  {"error_type", "timeout"}}) == 1);
  CHECK(snapshot.find(kDurations)->series.size() == 4098);
}

TEST_CASE("calls are counted by their own endpoint and policy, in whatever order they come") {
  const Conversation talk;
  talk.network->say(Response(200));
  const auto numbers = metrics();
  auto client = client_with_policies(talk, numbers, R"({"version": 1,
    "policies": {"p": {}, "q": {}},
    "endpoints": [{"name": "a", "match": {"path": "/a"}, "policy": "p"},
                  {"name": "b", "match": {"path": "/b"}, "policy": "q"}]})");
  for (const auto* path : {"/a", "/b", "/b", "/a", "/b", "/c", "/a", "/c"}) {
    REQUIRE(client.get("http://x" + std::string(path)));
  }
  const Lines lines{"endpoint=a,policy=p,stop_reason=success: 3",
                    "endpoint=b,policy=q,stop_reason=success: 3",
                    "policy=standard,stop_reason=success: 2"};
  CHECK(lines_of(*numbers, "httpretry_call_attempts") == lines);
  CHECK(lines_of(*numbers, "httpretry_call_duration_seconds") == lines);
}

TEST_CASE("what is left of a budget is shown for the requests that share it") {
  const Conversation talk;
  talk.network->say(Response(200));
  const auto numbers = metrics();
  auto client = client_with_policies(talk, numbers, R"({"version": 1,
    "default": {"budget": {"kind": "tokens", "capacity": 70, "retry_cost": 10,
                           "scope": "endpoint"}},
    "policies": {"p": {"budget": {"kind": "tokens", "capacity": 80, "retry_cost": 10,
                                  "scope": "endpoint"}},
                 "q": {"budget": {"kind": "tokens", "capacity": 90, "retry_cost": 10,
                                  "scope": "host"}}},
    "endpoints": [{"name": "a", "match": {"path": "/a"}, "policy": "p"},
                  {"name": "b", "match": {"path": "/b"}, "policy": "q"}]})");
  for (const auto* url : {"http://x/a", "http://y/b", "http://z/c"}) REQUIRE(client.get(url));
  CHECK(lines_of(*numbers, "httpretry_budget_left") ==
        Lines{"scope=endpoint a policy p: 80", "scope=http://y: 90", "scope=http://z: 70"});
}

TEST_CASE("the budget of a host is that of the request, wherever a middleware sends it") {
  const Conversation talk;
  talk.network->say(Response(200));
  const auto numbers = metrics();
  const auto moves = on_request(
      "moves", [](Request& request, Call& /*call*/) { request.set_url("http://other/"); });
  auto client = client_with_policies(talk, numbers, R"({"version": 1,
    "default": {"budget": {"kind": "tokens", "capacity": 70, "retry_cost": 10, "scope": "host"}}})",
                                     {moves});
  REQUIRE(client.get("http://x/"));
  CHECK(lines_of(*numbers, "httpretry_budget_left") == Lines{"scope=http://x: 70"});
  CHECK(lines_of(*numbers, "httpretry_in_flight").contains("scope=http://other: 0"));
}

TEST_CASE("a host or an endpoint above the limit is _other, with what is left of its budget") {
  const Conversation talk;
  talk.network->say(Response(200));
  MetricsOptions limits;
  limits.max_hosts = 1;
  limits.max_endpoints = 1;
  const auto numbers = metrics(limits);
  auto client = client_with_policies(talk, numbers, R"({"version": 1,
    "policies": {
      "p": {"budget": {"kind": "tokens", "capacity": 80, "retry_cost": 10, "scope": "endpoint"}},
      "q": {"budget": {"kind": "tokens", "capacity": 90, "retry_cost": 10, "scope": "host"}}},
    "endpoints": [{"name": "a", "match": {"path": "/a"}, "policy": "p"},
                  {"name": "b", "match": {"path": "/b"}, "policy": "p"},
                  {"name": "c", "match": {"path": "/c"}, "policy": "q"}]})");
  for (const auto* url : {"http://x/a", "http://x/b", "http://x/c", "http://y/c"}) {
    REQUIRE(client.get(url));
  }
  CHECK(lines_of(*numbers, "httpretry_call_attempts") ==
        Lines{"endpoint=a,policy=p,stop_reason=success: 1",
              "endpoint=_other,policy=_other,stop_reason=success: 3"});
  CHECK(lines_of(*numbers, "httpretry_budget_left") ==
        Lines{"scope=endpoint a policy p: 80", "scope=endpoint _other policy _other: 80",
              "scope=http://x: 90", "scope=_other: 90"});
  CHECK(lines_of(*numbers, "httpretry_in_flight") == Lines{"scope=http://x: 0", "scope=_other: 0"});
}

TEST_CASE("without a budget, nothing is left of it") {
  const Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  const auto numbers = metrics();
  ClientOptions options;
  options.middlewares = {retry(steady_policy())};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {numbers};
  REQUIRE(Client(options).get("http://x/"));
  CHECK(lines_of(*numbers, "httpretry_retries_total").size() == 1);
  CHECK(lines_of(*numbers, "httpretry_budget_left").empty());
}

TEST_CASE("exchanges of a call end at their own servers, however many there are") {
  const auto numbers = metrics();
  call_with(numbers, [](Request& /*request*/, Call& call) {
    const auto first = Request::get("http://a/");
    const auto second = Request::get("http://b/");
    call.emit(&Observer::exchange_started, first, 1000);
    call.emit(&Observer::exchange_started, second, 1256);  // takes the place of the first one
    call.emit(&Observer::exchange_ended, first, 1000, Outcome(Response(200)));
    call.emit(&Observer::exchange_ended, second, 1256, Outcome(Response(200)));
  });
  CHECK(lines_of(*numbers, "httpretry_in_flight") ==
        Lines{"scope=http://a: 0", "scope=http://b: 0", "scope=http://x: 0"});
}

TEST_CASE("the exemplar of a bucket is replaced after a second") {
  const Conversation talk;
  talk.network->say(Response(200), 100ms);
  const auto numbers = metrics();
  std::vector<SpanPtr> sends;
  ClientOptions options;
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {traces([&](SpanPtr span) {
                         if (span->kind == Span::Kind::Client) sends.push_back(std::move(span));
                       }),
                       numbers};
  Client client(options);
  const auto exemplar = [&] {
    const auto snapshot = numbers->snapshot();
    const auto& series = snapshot.find(kDurations)->series.at(0);
    REQUIRE(series.exemplars.size() == 15);
    for (std::size_t i = 1; i < 15; ++i) CHECK_FALSE(series.exemplars[i]);
    REQUIRE(series.exemplars[0]);
    return *series.exemplars[0];
  };
  const auto begin = talk.clock->wall_now();
  REQUIRE(client.get("http://x/"));
  CHECK(exemplar().at == begin + 100ms);
  CHECK(exemplar().value == 0);
  CHECK(exemplar().trace_id == sends.at(0)->trace.hex());
  CHECK(exemplar().span_id == span_id_hex(sends.at(0)->id));
  talk.clock->advance(800ms);
  REQUIRE(client.get("http://x/"));  // ends 900 ms after the first one
  CHECK(exemplar().at == begin + 100ms);
  CHECK(exemplar().trace_id == sends.at(0)->trace.hex());
  REQUIRE(client.get("http://x/"));  // ends a second after the first one
  CHECK(exemplar().at == begin + 1100ms);
  CHECK(exemplar().trace_id == sends.at(2)->trace.hex());
}

TEST_CASE("a snapshot has no family and no label of an unknown name") {
  const auto numbers = metrics();
  const auto snapshot = numbers->snapshot();
  CHECK(snapshot.families.size() == 18);
  CHECK(snapshot.find("unknown") == nullptr);
  CHECK(snapshot.sum("unknown") == 0);
  MetricSeries series;
  series.labels = {{"a", "1"}, {"b", "2"}};
  CHECK(series.label("a") == "1");
  CHECK(series.label("b") == "2");
  CHECK(series.label("c").empty());
  CHECK(series.count() == 0);
}
