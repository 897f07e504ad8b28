// The lines of a RecordingObserver, one for each event.
#include <httpretry/chain/middleware.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/policy/policy_source.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Lines = std::vector<std::string>;

// The lines of the events that `notify` reports, in a call whose clock stands at 3 s.
Lines lines_of(const std::function<void(RecordingObserver& observer, const Call& call)>& notify) {
  RecordingObserver observer;
  ClientOptions options;
  options.middlewares = {
      on_request("notify", [&](Request&, Call& call) { notify(observer, call); })};
  const auto clock = std::make_shared<ManualScheduler>();
  clock->advance(3s);
  options.scheduler = clock;
  const auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(200));
  options.transport = network;
  REQUIRE(Client(options).get("http://x/"));
  return observer.lines();
}

}  // namespace

TEST_CASE("a RecordingObserver has a line for each event of an attempt") {
  const auto request = Request::post("http://x/a", "body");
  Attempt attempt;
  attempt.number = 2;
  attempt.status = 503;
  attempt.cls = Class::Transient;
  const auto lines = lines_of([&](RecordingObserver& observer, const Call& call) {
    observer.call_started(call, request);
    observer.attempt_started(call, request, 2);
    observer.attempt_ended(call, request, attempt);
    attempt.retried = true;
    observer.attempt_ended(call, request, attempt);
    attempt.wait = 1500ms;
    observer.attempt_ended(call, request, attempt);
    attempt.wait = 1ms + 1ns;
    attempt.error = Errc::Receive;
    observer.attempt_ended(call, request, attempt);
    attempt.retried = false;
    attempt.race = Race::Lost;
    observer.attempt_ended(call, request, attempt);
    attempt.race = Race::Won;
    observer.attempt_ended(call, request, attempt);
    CHECK(observer.attempts().size() == 6);
    CHECK(observer.attempts().back().race == Race::Won);
  });
  CHECK(lines == Lines{"call POST http://x/a", "attempt 2", "attempt 2: 503 transient",
                       "attempt 2: 503 transient, retry after 0ms",
                       "attempt 2: 503 transient, retry after 1500ms",
                       "attempt 2: receive transient, retry after 1000001ns",
                       "attempt 2: receive transient, lost", "attempt 2: receive transient"});
}

TEST_CASE("a RecordingObserver has the times of guards, counted from now") {
  const auto lines = lines_of([](RecordingObserver& observer, const Call& call) {
    observer.hedge_started(call, Request::get("http://x/"), 2, 50ms);
    observer.hedge_refused(call, HedgeRefused::Busy);
    observer.held_back(call, QueuedBy::Rate, Time(5s));
    observer.held_back(call, QueuedBy::Concurrency, kNever);
    CircuitChange change;
    change.key = "http://x";
    change.to = Circuit::Open;
    change.why = "5 failures in a row";
    observer.circuit_changed(call, change);
    change.until = Time(8s);
    observer.circuit_changed(call, change);
    change.dry_run = true;
    observer.circuit_changed(call, change);
    PauseBegun pause;
    pause.key = "http://x";
    pause.until = Time(4s);
    pause.source = "retry-after";
    observer.paused(call, pause);
    observer.resumed(call, "http://x");
    LimitChange limit;
    limit.key = "http://x";
    limit.from = 20;
    limit.to = 18;
    observer.limit_changed(call, limit);
  });
  CHECK(lines == Lines{"hedge 2 after 50ms", "hedge refused: busy", "held back by rate for 2000ms",
                       "held back by concurrency", "circuit http://x: open, 5 failures in a row",
                       "circuit http://x: open for 5000ms, 5 failures in a row",
                       "circuit http://x: open for 5000ms, 5 failures in a row, a dry run",
                       "pause http://x: for 1000ms, retry-after", "pause http://x: over",
                       "concurrency http://x: 20 to 18"});
}

TEST_CASE("a RecordingObserver has redirects, reloads, refusals and the end of a call") {
  const auto lines = lines_of([](RecordingObserver& observer, const Call& call) {
    observer.redirected(call, Request::get("http://y/"));
    PolicyReload reload;
    observer.policies_reloaded(call, reload);
    reload.accepted = true;
    observer.policies_reloaded(call, reload);
    observer.shed(call, Error(Errc::CircuitOpen, "refused"));
    observer.call_ended(call, Response(404));
    observer.call_ended(call, Error(Errc::Timeout, "late"));
  });
  CHECK(lines == Lines{"redirect to http://y/", "policies refused", "policies accepted",
                       "not sent: circuit_open", "end 404 success", "end timeout success"});
}
