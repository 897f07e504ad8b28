// Models, loads and triggers as they are written, and what is said of those that are wrong.
#include "tests/policy/temporary.hpp"
#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

template <class T>
std::string error_of(const Result<T>& result) {
  REQUIRE(!result);
  CHECK(result.error().code == Errc::InvalidRequest);
  return result.error().message;
}

struct Bad {
  std::string text;
  std::string message;  // whole
};

}  // namespace

TEST_CASE("a model has its defaults, and the keys of its kind") {
  using Kind = ServerModel::Kind;
  using Reject = ServerModel::Reject;
  CHECK(model_of("fail").probability == 0.5);
  CHECK(model_of("fail").status == 500);
  CHECK(model_of("fail").network.mean == 5ms);
  const auto fail = model_of("fail:probability=0.25,status=404,network=1s");
  CHECK(fail.kind == Kind::Fail);
  CHECK(fail.probability == 0.25);
  CHECK(fail.status == 404);
  CHECK(fail.network.mean == 1s);
  const auto capacity = model_of("capacity:rate=10.5,window=1s,reject=429,retry_after=2s");
  CHECK(capacity.rate == 10.5);
  CHECK(capacity.window == 1s);
  CHECK(capacity.reject == Reject::TooMany);
  CHECK(capacity.retry_after == 2s);
  CHECK(model_of("capacity:reject=503").reject == Reject::Unavailable);
  CHECK(model_of(R"({"kind": "capacity", "reject": 429})").reject == Reject::TooMany);
  CHECK(model_of(R"({"kind": "capacity", "reject": "429"})").reject == Reject::TooMany);
  const auto queue =
      model_of("queue:servers=3,service=exponential(20ms),queue=0,timeout_work=false,reject=drop");
  CHECK(queue.servers == 3);
  CHECK(queue.service.kind == Distribution::Kind::Exponential);
  CHECK(queue.service.mean == 20ms);
  CHECK(queue.queue == 0);
  CHECK(!queue.timeout_work);
  CHECK(queue.reject == Reject::Drop);
  CHECK(model_of("queue:service=lognormal(10ms,0)").service.sigma == 0);
  CHECK(model_of("queue:service=lognormal(10ms,100)").service.sigma == 100);
  const auto slope = model_of("slope:base=1s,per_request=10ms,above=5");
  CHECK(slope.base == 1s);
  CHECK(slope.per_request == 10ms);
  CHECK(slope.above == 5);
  CHECK(model_of("occ").network.kind == Distribution::Kind::Normal);
  CHECK(model_of("occ").network.deviation == 2ms);
  CHECK(model_of("occ:network=7ms").network.mean == 7ms);
  CHECK(model_of("fail:layers=2").layers.size() == 2);
  CHECK(!model_of("fail:layers=2").layers.front());
}

TEST_CASE("the layers of a model are presets, policy files and policies") {
  const TemporaryFile file(R"({"version": 1, "default": {"max_attempts": 7}})");
  const auto model = model_of(R"({"kind": "fail", "layers": ["curl", {"max_attempts": 2}, ")" +
                              file.path() + R"("]})");
  const auto url = Url::parse("http://a/").value();
  const auto attempts = [&](std::size_t layer) {
    return model.layers.at(layer)->find("GET", url, Headers()).policy->max_attempts;
  };
  REQUIRE(model.layers.size() == 3);
  CHECK(attempts(0) == resolve_preset("curl").value().policy->max_attempts);
  CHECK(attempts(1) == 2);
  CHECK(attempts(2) == 7);
}

TEST_CASE("a kind that does not exist has no word") {
  CHECK(to_string(ServerModel::Kind::Trace) == "trace");
  CHECK(to_string(static_cast<ServerModel::Kind>(99)) == "?");
  CHECK(to_string(Distribution::Kind::Empirical) == "empirical");
  CHECK(to_string(static_cast<Distribution::Kind>(99)) == "?");
}

TEST_CASE("loads and triggers have their keys") {
  CHECK(load_of("open").rate == 1000);
  CHECK(load_of("open:rate=5,arrivals=even").arrivals == Load::Arrivals::Even);
  CHECK(load_of("closed").think.mean == 1s);
  CHECK(load_of("closed:think=exponential(2s)").think.kind == Distribution::Kind::Exponential);
  CHECK(load_of("once").kind == Load::Kind::Once);
  const auto curve = load_of(
                         "{\"kind\": \"open\", \"curve\": [{\"at\": \"0s\", \"rate\": 40},\n"
                         "  {\"at\": \"20s\", \"rate\": 80}]}")
                         .curve;
  REQUIRE(curve.size() == 2);
  CHECK(curve[1].at == 20s);
  CHECK(curve[1].rate == 80);
  const auto trigger =
      trigger_of("at=20s,for=10s,capacity=0.2,fail=0.5,load=2,status=429,retry_after=1s");
  CHECK(trigger.at == 20s);
  CHECK(trigger.end() == 30s);
  CHECK(trigger.capacity == 0.2);
  CHECK(trigger.fail == 0.5);
  CHECK(trigger.load == 2);
  CHECK(trigger.status == 429);
  CHECK(trigger.retry_after == 1s);
  const auto two = model_of(R"({"kind": "queue", "triggers": [
      {"at": "1s", "for": "2s", "load": 3}, {"at": "5s", "for": "500ms", "fail": 1}]})");
  REQUIRE(two.triggers.size() == 2);
  CHECK(two.triggers[0].load == 3);
  CHECK(two.triggers[1].end() == 5500ms);
  CHECK(two.triggers[1].status == 503);
}

TEST_CASE("what is wrong with a model is said at its position") {
  const Bad cases[] = {
      {"bogus", R"(m:1:1: /kind: "bogus" is not one of fail, capacity, queue, slope, occ, trace)"},
      {"", R"(m:1:1: /kind: "" is not one of fail, capacity, queue, slope, occ, trace)"},
      {"fail:", R"(m:1:6: "" is not KEY=VALUE)"},
      {"queue:servers", R"(m:1:7: "servers" is not KEY=VALUE)"},
      {"queue:servers=1,servers=2", "m:1:17: /servers: the key is given twice"},
      {"queue:servers=0", "m:1:15: /servers: 0 is out of range: at least 1"},
      {"queue:timeout_work=1", "m:1:20: /timeout_work: expected true or false, found 1"},
      {"fail:probability=x", R"(m:1:18: /probability: expected a number, found "x")"},
      {"fail:probability=1.5", "m:1:18: /probability: 1.5 is out of range: 0 to 1"},
      {"fail:probabilty=1", R"(m:1:6: /probabilty: unknown key; did you mean "probability"?)"},
      {"fail:rate=3", R"(m:1:6: /rate: "rate" does not belong to kind "fail")"
                      "; the keys are: kind, network, probability, status, layers, triggers"},
      {"fail:status=100", "m:1:13: /status: 100 is out of range: 200 to 599"},
      {"fail:layers=9", "m:1:13: /layers: 9 is out of range: 0 to 8"},
      {"capacity:reject=500",
       R"(m:1:17: /reject: 500 is not a way to reject a request: write 503, 429 or "drop")"},
      {"capacity:window=0s", R"(m:1:17: /window: "0s" must be greater than 0)"},
      {"capacity:retry_after=5",
       R"(m:1:22: /retry_after: 5 has no unit; write a string such as "5s")"},
      {"{", "m:1:2: expected a key in double quotes, found the end of the text"},
      {"{\"kind\": \"queue\",\n \"servers\": 0}",
       "m:2:13: /servers: 0 is out of range: at least 1"},
      {"{}", R"(m:1:1: missing key "kind")"},
      {R"({"kind": "trace"})",
       R"(m:1:1: a trace needs a "file" with reports, as --report writes them)"},
      {"trace:file=/no/such.json", R"(m:1:12: /file: "/no/such.json" cannot be read)"},
      {R"({"kind": "fail", "layers": ["bogus"]})",
       R"(m:1:29: /layers/0: there is no preset "bogus")"},
      {R"({"kind": "fail", "layers": [3]})",
       "m:1:29: /layers/0: expected a preset, a policy file or a policy, found 3"},
      {R"({"kind": "fail", "layers": [{"max_attempts": 0}]})",
       "m:1:29: /layers/0: the policy:1:40: /default/max_attempts: 0 is out of range: at least 1; "
       "the first send counts"},
      {R"({"kind": "fail", "layers": ["/no/such.json"]})",
       "m:1:29: /layers/0: cannot read the policy file /no/such.json: No such file or directory"},
      {R"({"kind": "fail", "triggers": [{"at": "1s"}]})",
       R"(m:1:31: /triggers/0: missing key "for")"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    CHECK(error_of(parse_model(each.text, "m")) == each.message);
  }
  // All that is wrong is said at once.
  CHECK(error_of(parse_model("fail:probability=3,status=1", "m")) ==
        "m:1:18: /probability: 3 is out of range: 0 to 1\n"
        "m:1:27: /status: 1 is out of range: 200 to 599");
}

TEST_CASE("what is wrong with a distribution is said at its position") {
  const std::string how =
      " is neither a time nor a distribution: write it like \"10ms\", \"exponential(10ms)\", "
      "\"normal(10ms,2ms)\" or \"lognormal(10ms,0.5)\"";
  for (const std::string text :
       {"", "ten", "-5ms", "exponential(10)", "exponential(10ms,2ms)", "normal(10ms)", "normal()",
        "lognormal(10ms,1ms)", "lognormal(10ms,-1)", "lognormal(10ms,100.5)", "lognormal(10ms,101)",
        "exponential(10ms", "mix(1ms)", "()"}) {
    CAPTURE(text);
    CHECK(error_of(parse_model("queue:service=" + text, "m")) ==
          "m:1:15: /service: \"" + text + "\"" + how);
  }
  const Bad cases[] = {
      {"3", "m:1:29: /service: expected a time such as \"10ms\" or an object, found 3"},
      {R"({"kind": "exponential"})", R"(m:1:29: /service: missing key "mean")"},
      {R"({"kind": "lognormal", "sigma": 1})", R"(m:1:29: /service: missing key "median")"},
      {R"({"kind": "constant", "mean": "1ms"})",
       R"(m:1:50: /service/mean: "mean" does not belong to kind "constant"; the keys are: kind, value)"},
      {R"({"kind": "mix", "parts": []})",
       "m:1:54: /service/parts: there must be at least one part with a weight above 0"},
      {R"({"kind": "mix", "parts": [{"weight": 0, "of": "1ms"}]})",
       "m:1:54: /service/parts: there must be at least one part with a weight above 0"},
      {R"({"kind": "mix", "parts": [{"weight": 1}]})",
       R"(m:1:55: /service/parts/0: missing key "of")"},
      {R"({"kind": "empirical", "values": []})",
       "m:1:61: /service/values: there must be at least one time"},
      {R"({"kind": "empirical", "values": ["1ms", 2]})",
       R"(m:1:69: /service/values/1: 2 has no unit; write a string such as "2s")"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    CHECK(error_of(parse_model(R"({"kind": "queue","service": )" + each.text + "}", "m")) ==
          each.message);
  }
}

TEST_CASE("what is wrong with a load is said at its position") {
  const Bad cases[] = {
      {"bogus", R"(l:1:1: /kind: "bogus" is not one of open, closed, once)"},
      {"open:rate=-1", "l:1:11: /rate: -1 is out of range: at least 0"},
      {"open:rate=fast", R"(l:1:11: /rate: expected a number, found "fast")"},
      {"open:arrivals=often", R"(l:1:15: /arrivals: "often" is not one of poisson, even)"},
      {"open:think=1s", R"(l:1:6: /think: "think" does not belong to kind "open")"
                        "; the keys are: kind, rate, arrivals, curve"},
      {"closed:rate=5",
       R"(l:1:8: /rate: "rate" does not belong to kind "closed"; the keys are: kind, think)"},
      {"once:rate=1", R"(l:1:6: /rate: "rate" does not belong to kind "once"; the keys are: kind)"},
      {"[]", R"(l:1:1: /kind: "[]" is not one of open, closed, once)"},
      {R"({"kind": "open", "curve": 5})", "l:1:27: /curve: expected an array of points, found 5"},
      {R"({"kind": "open", "curve": []})", "l:1:27: /curve: there must be at least one point"},
      {R"({"kind": "open", "curve": [{"at": "5s"}]})", R"(l:1:28: /curve/0: missing key "rate")"},
      {R"({"kind": "open", "curve": [{"at": "5s", "rate": 1}, {"at": "1s", "rate": 2}]})",
       "l:1:53: /curve/1: a point is earlier than the one before it: put them in order"},
      {R"({"kind": "open", "rate": 5, "curve": [{"at": "5s", "rate": 1}]})",
       "l:1:26: /rate: the \"curve\" sets the rate: leave out one of them"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    CHECK(error_of(parse_load(each.text, "l")) == each.message);
  }
}

TEST_CASE("what is wrong with a trigger is said at its position") {
  const std::string nothing =
      R"(t:1:1: a trigger changes "capacity", "fail" or "load"; this one has none)";
  const Bad cases[] = {
      {"at=5s,fail=1", R"(t:1:1: missing key "for")"},
      {"for=5s,fail=1", R"(t:1:1: missing key "at")"},
      {"at=1s,for=1s", nothing},
      {R"({"at": "1s", "for": "1s"})", nothing},
      {"at=1s,for=0s,fail=1", R"(t:1:11: /for: "0s" must be greater than 0)"},
      {"at=1,for=1s,fail=1", R"(t:1:4: /at: 1 has no unit; write a string such as "1s")"},
      {"at=1s,for=1s,fail=2", "t:1:19: /fail: 2 is out of range: 0 to 1"},
      {"at=1s,for=1s,capacity=-1", "t:1:23: /capacity: -1 is out of range: 0 to 1"},
      {"at=1s,for=1s,load=-1", "t:1:19: /load: -1 is out of range: at least 0"},
      {"at=1s,for=1s,fail=1,status=200", "t:1:28: /status: 200 is out of range: 400 to 599"},
      {"at=1s,for=1s,fail=1,fail=1", "t:1:21: /fail: the key is given twice"},
      {"at=1s,for=1s,fial=1", R"(t:1:14: /fial: unknown key; did you mean "fail"?)"},
      {"at=1s,for=1s,load=2,status=500",
       "t:1:28: /status: it says how requests fail, but there is no \"fail\""},
      {"at=1s,for=1s,load=2,retry_after=1s",
       "t:1:33: /retry_after: it says how requests fail, but there is no \"fail\""},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    CHECK(error_of(parse_trigger(each.text, "t")) == each.message);
  }
}

TEST_CASE("a trace is read from reports: an array of them, or one on each line") {
  const std::string first =
      R"({"attempts": [{"duration_ms": 10.5, "status": 503, "server_delay_ms": 2000},
                                             {"duration_ms": 20, "status": 200}]})";
  const std::string second = R"({"attempts": [{"duration_ms": 1, "error": {"kind": "connect"}}]})";
  const auto line = [](std::string text) {
    std::erase(text, '\n');
    return text + "\n";
  };
  for (const auto& text : {"[" + first + ",\n" + second + "]", line(first) + "\n" + line(second)}) {
    const TemporaryFile file(text);
    const auto recorded = model_of("trace:file=" + file.path()).recorded;
    REQUIRE(recorded.size() == 3);
    CHECK(recorded[0].duration == 10500us);
    CHECK(recorded[0].status == 503);
    CHECK(recorded[0].retry_after == 2s);
    CHECK(recorded[1].status == 200);
    CHECK(recorded[2].status == 0);
    CHECK(recorded[2].error == Errc::Connect);
  }
}

TEST_CASE("a trace has any status from 100 to 599, and attempts that took no time") {
  const TemporaryFile file(R"({"attempts": [{"duration_ms": 0, "status": 100},
                                            {"duration_ms": 0, "status": 599}]})");
  const auto recorded = model_of("trace:file=" + file.path()).recorded;
  REQUIRE(recorded.size() == 2);
  CHECK(recorded[0].status == 100);
  CHECK(recorded[0].duration == 0s);
  CHECK(recorded[0].retry_after == 0s);
  CHECK(recorded[1].status == 599);
}

TEST_CASE("what is wrong with a trace is said at its position in the trace") {
  const Bad cases[] = {
      {"[]\n", "\"FILE\" has no attempts"},
      {"{\"attempts\": []}\n", "\"FILE\" has no attempts"},
      {"{\"calls\": 1}", "FILE:1:1: this is not a report: it has no \"attempts\""},
      {"{\"attempts\": []}\n{\"attempts\": [{\"status\": 200}]}\n",
       "FILE, line 2:1:15: /attempts/0: an attempt needs \"duration_ms\", and a \"status\" or an "
       "\"error\""},
      {R"({"attempts": [{"duration_ms": 1, "status": 99}]})",
       "FILE:1:44: /attempts/0/status: 99 is out of range: 100 to 599"},
      {R"({"attempts": [{"duration_ms": 1, "status": 600}]})",
       "FILE:1:44: /attempts/0/status: 600 is out of range: 100 to 599"},
      {R"({"attempts": [{"duration_ms": 1, "error": {"kind": "canceled"}}]})",
       "FILE:1:15: /attempts/0: an attempt needs \"duration_ms\", and a \"status\" or an "
       "\"error\""},
      {"{\"attempts\":\n [{\"duration_ms\": -1, \"status\": 200}]}",
       "FILE:2:19: /attempts/0/duration_ms: -1 is out of range: at least 0"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    const TemporaryFile file(each.text);
    auto message = each.message;
    for (auto at = message.find("FILE"); at != std::string::npos; at = message.find("FILE")) {
      message.replace(at, 4, file.path());
    }
    CHECK(error_of(parse_model("trace:file=" + file.path(), "m")) == "m:1:12: /file: " + message);
  }
}

TEST_CASE("options that make no sense are errors that say what to do") {
  struct Case {
    void (*change)(SimulationOptions& options);
    const char* message;
  };
  const Case cases[] = {
      {[](SimulationOptions& to) { to.policies.clear(); }, "there is no policy to simulate"},
      {[](SimulationOptions& to) { to.clients = 0; }, "there must be at least one client"},
      {[](SimulationOptions& to) { to.duration = 0s; }, "the duration must be greater than zero"},
      {[](SimulationOptions& to) { to.model = ServerModel(ServerModel::Kind::Trace); },
       "the trace has no attempts"},
      {[](SimulationOptions& to) { to.model.triggers = {trigger_of("at=1s,for=1s,capacity=0")}; },
       "a trigger changes the capacity, but the model \"fail\" has none: let it change \"fail\" "
       "instead"},
      {[](SimulationOptions& to) {
         to.load = load_of("closed");
         to.model.triggers = {trigger_of("at=1s,for=1s,load=2")};
       },
       "a trigger that changes the load needs an open load"},
      {[](SimulationOptions& to) { to.model.triggers = {trigger_of("at=49s,for=2s,fail=1")}; },
       "a trigger ends at 51s, and the simulation at 1m: it must continue for at least 10s after "
       "the trigger, to show the recovery"},
  };
  for (const auto& each : cases) {
    SimulationOptions options;
    options.policies = {{"it", PolicySet()}};
    each.change(options);
    CHECK(error_of(simulate(options)) == each.message);
  }
  SimulationOptions options;
  options.policies = {{"it", PolicySet()}};
  options.request = Request::get("no url");
  CHECK(!simulate(options));
}

TEST_CASE("a run that is too long, or is canceled, ends with an error") {
  SimulationOptions options;
  options.policies = {{"it", PolicySet()}};
  options.most_sends = 20'000;
  auto ended = simulate(options);
  REQUIRE(!ended);
  CHECK(ended.error().code == Errc::TooLarge);
  CHECK(ended.error().message ==
        "it: more than 20000 sends; simulate fewer clients, a lower rate or a shorter time");
  options.canceled = [] { return true; };
  ended = simulate(options);
  REQUIRE(!ended);
  CHECK(ended.error().code == Errc::Canceled);
}

TEST_CASE("a run asks every few thousand events whether it is canceled") {
  SimulationOptions options;
  options.policies = {{"it", PolicySet()}};
  options.duration = 5s;  // 5000 calls, with three events or more each
  int asked = 0;
  options.canceled = [&] { return ++asked == 0; };
  CHECK(simulate(options));
  CHECK(asked >= 3);
  CHECK(asked <= 100);
}
