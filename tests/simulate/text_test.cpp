// Numbers and descriptions in the texts of a report.
#include "lib/extras/simulate/text.hpp"

#include "tests/simulate/runs.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace httpretry;
using namespace std::chrono_literals;
using simulation::describe;

TEST_CASE("numbers have their decimals, groups of three digits, and the word that fits") {
  using simulation::counted;
  using simulation::grouped;
  using simulation::number;
  CHECK(number(1.25, 0) == "1");
  CHECK(number(-1.5, 1) == "-1.5");
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1 000");
  CHECK(grouped(999'999) == "999 999");
  CHECK(grouped(1'234'567) == "1 234 567");
  CHECK(grouped(-123) == "-123");
  CHECK(grouped(-1234) == "-1 234");
  CHECK(counted("0", "call", "calls") == "0 calls");
  CHECK(counted("1", "call", "calls") == "1 call");
  CHECK(counted("11", "call", "calls") == "11 calls");
}

TEST_CASE("only exact shares are 0 % and 100 %") {
  using simulation::percent;
  CHECK(percent(0) == "0 %");
  CHECK(percent(0.00001) == "0.1 %");
  CHECK(percent(0.5) == "50.0 %");
  CHECK(percent(0.99999) == "99.9 %");
  CHECK(percent(1) == "100 %");
  CHECK(percent(1.5) == "150 %");
}

TEST_CASE("a distribution is described as it is written, or counted") {
  using Kind = Distribution::Kind;
  CHECK(simulation::milliseconds(1500) == "1.50 s");
  CHECK(describe(Distribution(10ms)) == "10ms");
  CHECK(describe(Distribution(Kind::Exponential, 10ms)) == "exponential(10ms)");
  CHECK(describe(Distribution(Kind::Normal, 10ms, 2ms)) == "normal(10ms,2ms)");
  Distribution lognormal(Kind::Lognormal, 1s);
  lognormal.sigma = 0.5;
  CHECK(describe(lognormal) == "lognormal(1s,0.50)");
  Distribution mix(Kind::Mix, 0s);
  mix.parts.resize(2);
  CHECK(describe(mix) == "a mix of 2");
  Distribution empirical(Kind::Empirical, 0s);
  empirical.values = {1s};
  CHECK(describe(empirical) == "1 recorded time");
  empirical.values = {1s, 2s};
  CHECK(describe(empirical) == "2 recorded times");
}

TEST_CASE("a model is described with its network, its services and its triggers") {
  CHECK(describe(model_of("fail:probability=0,status=404")) ==
        "fail: 0 % of requests get a 404; network 5ms each way");
  CHECK(describe(model_of("capacity:rate=999.5,network=1s")) ==
        "capacity: 999.5 requests a second; network 1s each way");
  CHECK(describe(model_of("capacity:rate=1000")) ==
        "capacity: 1 000 requests a second; network 5ms each way");
  CHECK(describe(model_of("queue:servers=1,queue=0")) ==
        "queue: 1 worker of 50ms, a queue for 0; network 5ms each way");
  CHECK(describe(model_of("slope:base=1s,per_request=2ms")) ==
        "slope: 1s and 2ms for each other request; network 5ms each way");
  CHECK(describe(model_of("slope:above=1")) ==
        "slope: 50ms and 500us for each other request above 1; network 5ms each way");
  CHECK(describe(model_of("occ")) ==
        "occ: one row that all clients update; network normal(10ms,2ms) each way");
  ServerModel trace(ServerModel::Kind::Trace);
  trace.file = "a.json";
  trace.recorded.resize(1);
  CHECK(describe(trace) == "trace: 1 attempt of a.json");
  trace.recorded.resize(2);
  CHECK(describe(trace) == "trace: 2 attempts of a.json");
  CHECK(describe(model_of("occ:layers=1,network=0s")) ==
        "occ: one row that all clients update; network 0s each way; behind 1 service");
  CHECK(describe(model_of(R"({"kind": "fail", "layers": 2, "triggers": [
            {"at": "1s", "for": "2s", "load": 2}, {"at": "5s", "for": "1m", "fail": 1}]})")) ==
        "fail: 50.0 % of requests get a 500; network 5ms each way; behind 2 services; "
        "from 1s for 2s 2 times the calls; from 5s for 1m 100 % get a 503");
}

TEST_CASE("a load and a trigger are described in a few words") {
  CHECK(describe(load_of("once")) == "once: one call from each client, all at the start");
  CHECK(describe(load_of("closed:think=2s")) == "closed: the next call 2s after the last one");
  CHECK(describe(load_of("open:rate=1")) == "open: 1 call a second");
  CHECK(describe(load_of("open:rate=1500")) == "open: 1 500 calls a second");
  CHECK(describe(load_of(R"({"kind": "open", "curve": [{"at": "0s", "rate": 1}]})")) ==
        "open: a curve of 1 point");
  CHECK(describe(load_of(R"({"kind": "open", "curve": [{"at": "0s", "rate": 1},
                                                       {"at": "1s", "rate": 2}]})")) ==
        "open: a curve of 2 points");
  CHECK(describe(trigger_of("at=0s,for=1s,capacity=0")) == "from 0s for 1s 0 % of the capacity");
  CHECK(describe(trigger_of("at=0s,for=1s,fail=0.5,retry_after=2s")) ==
        "from 0s for 1s 50.0 % get a 503, Retry-After 2s");
  CHECK(describe(trigger_of("at=0s,for=1s,capacity=1,fail=1,status=429,load=0.5")) ==
        "from 0s for 1s 100 % of the capacity, 100 % get a 429, 0.5 times the calls");
}

TEST_CASE("bounds are described with what a budget adds to them") {
  PolicyBounds bounds;
  CHECK(describe(bounds) == "no limit on sends: no load is safe");
  bounds.w_l = 4;
  bounds.stable_below = 0.25;
  const std::string worst = "4.00 sends a call at worst: stable below 25.0 % of the capacity";
  CHECK(describe(bounds) == worst);
  bounds.burst = 2;
  CHECK(describe(bounds) == worst);
  bounds.sends_at_first = 4;
  CHECK(describe(bounds) == worst);
  bounds.sends_at_first = 5;
  const std::string full = worst + "; after 2 retries of a full budget (5 sends a call)";
  CHECK(describe(bounds) == full);
  bounds.always = 0;
  CHECK(describe(bounds) == full);
  bounds.always = 2.5;
  CHECK(describe(bounds) == full + "; 2.5 retries a second are always allowed");
  bounds.burst.reset();
  bounds.always = 1;
  CHECK(describe(bounds) == worst + "; 1 retry at once is always allowed");
  bounds.always = 3;
  CHECK(describe(bounds) == worst + "; 3 retries at once are always allowed");
}
