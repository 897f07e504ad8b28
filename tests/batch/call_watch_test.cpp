// Which calls the threads of the client send by themselves.
#include "lib/extras/batch/call_watch.hpp"

#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

namespace {

struct Watched {
  Flight* flight(std::string host, bool unsafe = false) {
    Job job;
    job.host = std::move(host);
    Prepared prepared(Request::get("http://example.test/"));
    prepared.unsafe = unsafe;
    return &flights.emplace_back(std::move(job), std::move(prepared));
  }
  // So many are on their way, and `ready` wait for their turn.
  std::vector<Flight*> send(std::vector<Flight*> ready, std::size_t on_way, std::size_t most) {
    const auto all = on_way + ready.size() + watch->ready();
    return watch->send_ready(std::move(ready), all, most);
  }
  CallWatch::Updates take() { return watch->take(Time::min()); }

  std::deque<Flight> flights;
  std::shared_ptr<CallWatch> watch = std::make_shared<CallWatch>();
};

Outcome good() {
  Response response;
  response.status = 200;
  return response;
}
Outcome bad() { return Error(Errc::Timeout, "too late"); }

}  // namespace

TEST_CASE("as many calls are sent at once as may be on their way, the others when one ends well") {
  Watched all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("b");
  auto* const c = all.flight("c");
  CHECK(all.send({a, b, c}, 0, 1) == std::vector{a});
  CHECK(all.watch->ready() == 2);
  CHECK(all.watch->on_call_ended(*a, good()) == b);
  CHECK(all.watch->on_call_ended(*b, good()) == c);
  CHECK(all.watch->on_call_ended(*c, good()) == nullptr);
  CHECK(all.take().ended.size() == 3);
}

TEST_CASE("after a call that did not end well, nothing is sent until it is judged") {
  Watched all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a");
  auto* const c = all.flight("a");
  auto* const d = all.flight("a");
  CHECK(all.send({a, b, c, d}, 0, 2) == std::vector{a, b});
  CHECK(all.watch->on_call_ended(*a, bad()) == nullptr);
  CHECK(all.watch->on_call_ended(*b, good()) == nullptr);
  CHECK(all.take().needs_judgment);
  CHECK(all.send({}, 0, 1) == std::vector{c});
  CHECK(all.watch->on_call_ended(*c, good()) == d);
}

TEST_CASE("what ends while the thread of the run judges is sent by that thread") {
  Watched all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a");
  auto* const c = all.flight("a");
  all.send({a, b, c}, 0, 2);
  CHECK(all.watch->on_call_ended(*a, bad()) == nullptr);
  CHECK(all.take().ended.size() == 1);
  CHECK(all.watch->on_call_ended(*b, good()) == nullptr);
  CHECK(all.send({}, 0, 2) == std::vector{c});
}

TEST_CASE("what must not be sent twice is left to the thread of the run") {
  Watched all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a", true);
  all.send({a, b}, 0, 1);
  CHECK(all.watch->on_call_ended(*a, good()) == nullptr);
  CHECK(all.send({}, 0, 1) == std::vector{b});
}

TEST_CASE("after finish_up nothing more is sent") {
  Watched all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("a");
  all.send({a, b}, 0, 1);
  all.watch->ask(&CallWatch::Updates::finish_up);
  CHECK(all.watch->on_call_ended(*a, good()) == nullptr);
  CHECK(all.send({}, 0, 1).empty());
  CHECK(all.watch->withdraw([](const Flight&) { return true; }) == std::vector{b});
  CHECK(all.watch->ready() == 0);
}

TEST_CASE("calls to a host that has to be left alone are taken back") {
  Watched all;
  auto* const a = all.flight("a");
  auto* const b = all.flight("b");
  auto* const c = all.flight("a");
  CHECK(all.send({a, b, c}, 1, 1).empty());
  CHECK(all.watch->withdraw([](const Flight& one) { return one.job.host == "a"; }) ==
        std::vector{a, c});
  CHECK(all.send({}, 0, 1) == std::vector{b});
}

namespace {

// "a.test" redirects to "b.test", which fails the first send and answers the others after an hour.
struct Servers final : Transport {
  Task<Outcome> send(Request request, Call& call) override {
    if (request.parsed_url()->host() == "a.test") {
      Response response(302);
      response.headers.add("Location", "http://b.test/");
      co_return response;
    }
    if (++sends_to_b == 1) co_return Response(500);
    auto& clock = call.scheduler();
    co_await clock.sleep_until(clock.now() + 1h, call.stop());
    co_return Response(200);
  }
  int sends_to_b = 0;
};

}  // namespace

TEST_CASE("a send to which a redirect has led counts as one on the wire to its host") {
  Watched all;
  all.watch = std::make_shared<CallWatch>(std::make_shared<DownHosts>());
  const auto clock = std::make_shared<ManualScheduler>();
  RetryPolicy policy;
  policy.backoff = Backoff::constant(2h);
  policy.max_elapsed_time = kForever;
  policy.attempt_timeout = kForever;
  ClientOptions options;
  options.scheduler = clock;
  options.transport = std::make_shared<Servers>();
  options.middlewares = {redirect(), retry(policy)};
  options.observers = {all.watch};
  Client client(options);
  int succeeded_calls = 0;
  const auto send = [&](const std::string& url) {
    Prepared prepared(Request::get(url));
    auto* const flight = &all.flights.emplace_back(Job(), std::move(prepared));
    flight->prepared.request.edit_options().context.set(FlightOfCall{flight});
    all.watch->on_call_begins(*flight);
    client.send_then(flight->prepared.request, [&, flight](Outcome outcome) {
      if (succeeded(outcome)) ++succeeded_calls;
      static_cast<void>(all.watch->on_call_ended(*flight, std::move(outcome)));
    });
    clock->run();
  };
  send("http://b.test/");
  // One call that waits for its retry does not hold back others while nothing is on the wire.
  CHECK(all.take().blocked_hosts.empty());
  send("http://a.test/");
  CHECK(all.take().blocked_hosts == std::vector<std::string>{"http://b.test"});
  clock->advance(1h);
  CHECK(succeeded_calls == 1);
  CHECK(all.take().blocked_hosts.empty());
  clock->advance(3h);
  CHECK(succeeded_calls == 2);
}

namespace {

// Calls whose attempts a test reports, all to "http://b.test".
class ReportedCalls {
 public:
  ReportedCalls() : client_(with_reports()) {}

  Flight& begin() {
    auto& flight = flights_.emplace_back(Job(), Prepared(Request::get("http://b.test/")));
    flight.prepared.request.edit_options().context.set(FlightOfCall{&flight});
    watch->on_call_begins(flight);
    return flight;
  }
  void report(const Flight& flight, const Attempt& attempt) {
    attempt_ = attempt;
    client_.send_then(flight.prepared.request, [](Outcome /*outcome*/) {});
    clock_->run();
  }
  // Reports that guards() pauses what the key names.
  void report_pause(const Flight& flight, const std::string& key) {
    pause_key_ = key;
    report(flight, Attempt());
    pause_key_.clear();
  }
  CallWatch::Updates take() { return watch->take(Time::min()); }
  bool is_outage() { return !take().blocked_hosts.empty(); }
  bool is_down() { return !down_->take(Request::get("http://b.test/"), Classified(), Time{}); }

 private:
  struct Answering final : Transport {
    Task<Outcome> send(Request /*request*/, Call& /*call*/) override { co_return Response(200); }
  };
  ClientOptions with_reports() {
    ClientOptions options;
    options.scheduler = clock_;
    options.transport = std::make_shared<Answering>();
    options.middlewares = {
        middleware("reports", [this](Request request, Call& call, Next next) -> Task<Outcome> {
          if (pause_key_.empty()) {
            watch->attempt_started(call, request, attempt_.number);
            watch->attempt_ended(call, request, attempt_);
          } else {
            PauseBegun begun;
            begun.key = pause_key_;
            begun.until = Time(1h);
            watch->paused(call, begun);
          }
          Outcome outcome = co_await next(std::move(request), call);
          co_return outcome;
        })};
    return options;
  }

  Attempt attempt_;
  std::string pause_key_;
  std::deque<Flight> flights_;
  std::shared_ptr<DownHosts> down_ = std::make_shared<DownHosts>();
  std::shared_ptr<ManualScheduler> clock_ = std::make_shared<ManualScheduler>();

 public:
  std::shared_ptr<CallWatch> watch = std::make_shared<CallWatch>(down_);

 private:
  Client client_;
};

Attempt attempt_with(Class cls, int status, bool retried, Race race = Race::None) {
  Attempt attempt;
  attempt.cls = cls;
  attempt.status = status;
  attempt.retried = retried;
  attempt.race = race;
  return attempt;
}

}  // namespace

TEST_CASE(
    "an outage begins with a failure that is retried, and ends with a sign that a host works") {
  struct Row {
    Attempt attempt;
    bool begins = false;
    bool ends = false;
  };
  const std::vector<Row> rows = {
      {attempt_with(Class::Transient, 500, true), true},
      {attempt_with(Class::Transient, 500, false)},
      {attempt_with(Class::Transport, 0, true), true},
      {attempt_with(Class::Throttle, 429, true), true},
      {attempt_with(Class::Transient, 500, true, Race::Won), true},
      {attempt_with(Class::Transient, 500, true, Race::Lost)},
      {attempt_with(Class::Success, 200, false), false, true},
      {attempt_with(Class::Success, 200, false, Race::Won), false, true},
      {attempt_with(Class::Success, 200, false, Race::Lost)},
      {attempt_with(Class::Pending, 202, true), false, true},
      {attempt_with(Class::Permanent, 404, false), false, true},
      {attempt_with(Class::Permanent, 0, false)},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const auto& row = rows[i];
    for (const bool is_outage : {false, true}) {
      CAPTURE(is_outage);
      ReportedCalls calls;
      calls.begin();  // a send that stays on the wire
      if (is_outage) calls.report(calls.begin(), attempt_with(Class::Transient, 503, true));
      CHECK(calls.is_outage() == is_outage);
      calls.report(calls.begin(), row.attempt);
      CHECK(calls.is_outage() == (is_outage ? !row.ends : row.begins));
    }
  }
}

TEST_CASE("a call is between two attempts from a failure that is retried to its next attempt") {
  ReportedCalls calls;
  auto& flight = calls.begin();
  CHECK(calls.take().in_wait == 0);
  calls.report(flight, attempt_with(Class::Transient, 500, true));
  CHECK(calls.take().in_wait == 1);
  CHECK(flight.in_wait.load());
  // Its place is free for another call.
  auto& other = calls.begin();
  CHECK(calls.watch->send_ready({&other}, 2, 1) == std::vector{&other});
  calls.report(flight, attempt_with(Class::Success, 200, false));
  CHECK(calls.take().in_wait == 0);
  CHECK_FALSE(flight.in_wait.load());
  CHECK(calls.watch->send_ready({&other}, 2, 1).empty());
  CHECK(calls.watch->withdraw([](const Flight&) { return true; }) == std::vector{&other});
  calls.report(flight, attempt_with(Class::Transient, 500, true));
  CHECK(calls.watch->on_call_ended(flight, good()) == nullptr);
  CHECK(calls.take().in_wait == 0);
}

TEST_CASE("a host is down from the end of a call that gave up there to its next success") {
  struct Row {
    std::optional<Class> last_class;  // of the last attempt
    Reason reason;
    bool is_down;
  };
  const std::vector<Row> rows = {
      {Class::Transient, Reason::AttemptsExhausted, true},
      {Class::Transport, Reason::ElapsedExhausted, true},
      {Class::Transient, Reason::Canceled, false},
      {Class::Permanent, Reason::LocalShortage, false},
      {std::nullopt, Reason::AttemptsExhausted, false},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const auto& row = rows[i];
    for (const bool has_retried : {true, false}) {
      CAPTURE(has_retried);
      ReportedCalls calls;
      auto& flight = calls.begin();
      calls.report(flight, attempt_with(Class::Transient, 500, has_retried));
      Error error(Errc::Timeout);
      error.history.stop_reason = row.reason;
      if (row.last_class) error.history.attempts.emplace_back().cls = *row.last_class;
      CHECK_FALSE(calls.is_down());
      CHECK(calls.watch->on_call_ended(flight, error) == nullptr);
      CHECK(calls.is_down() == (row.is_down && has_retried));
      calls.report(calls.begin(), attempt_with(Class::Success, 200, false));
      CHECK_FALSE(calls.is_down());
    }
  }
}

TEST_CASE("a pause holds the queue of the call, or the host to which a redirect has led") {
  ReportedCalls calls;
  auto& flight = calls.begin();
  flight.job.host = "queue";
  calls.report_pause(flight, "http://b.test orders");
  CHECK(calls.take().holds.empty());
  calls.report_pause(flight, "http://c.test");
  CHECK_FALSE(flight.paused_host);
  auto updates = calls.take();
  CHECK(updates.needs_judgment);
  REQUIRE(updates.holds.size() == 1);
  CHECK(updates.holds[0].host == "http://c.test");
  CHECK(updates.holds[0].until == Time(1h));
  calls.report_pause(flight, "http://b.test");
  CHECK(flight.paused_host);
  updates = calls.take();
  REQUIRE(updates.holds.size() == 1);
  CHECK(updates.holds[0].host == "queue");
}
