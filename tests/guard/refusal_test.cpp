// The errors for sends that a limit refuses.
#include "start.hpp"

#include "lib/core/guard/refusal.hpp"

#include <httpretry/http/result.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace httpretry;
using namespace httpretry::guard;
using namespace std::chrono_literals;

TEST_CASE("a refusal names the limit, and the time after which it allows a send if that is known") {
  struct Row {
    Hold hold;
    Errc code;
    std::string message;
  };
  const auto held = [](QueuedBy by, Time until = kNever) {
    Hold hold;
    hold.by = by;
    hold.until = until;
    return hold;
  };
  auto opened = held(QueuedBy::Circuit, kStart + 5s);
  opened.why = "5 failures in a row";
  auto at_random = held(QueuedBy::Circuit);
  at_random.at_random = true;
  const std::vector<Row> rows{
      {held(QueuedBy::Pause, kStart + 7s), Errc::Paused,
       "the pause of http://x that the server asked for ends in 7.00 s, too late"},
      {held(QueuedBy::Pause, kStart), Errc::Paused,
       "the pause of http://x that the server asked for ends too late"},
      {held(QueuedBy::Pause), Errc::Paused,
       "the pause of http://x that the server asked for ends too late"},
      {held(QueuedBy::Ramp, kStart + 7s), Errc::Paused,
       "after a pause, the ramp of http://x allows the request too late"},
      {opened, Errc::CircuitOpen, "the circuit of http://x is open (5 failures in a row)"},
      {held(QueuedBy::Circuit), Errc::CircuitOpen, "the circuit of http://x is open"},
      {at_random, Errc::CircuitOpen,
       "the circuit breaker of http://x refuses a part of the requests, because too many failed"},
      {held(QueuedBy::Rate, kStart + 500ms), Errc::RateLimited,
       "the rate of http://x allows the request in 500 ms, too late for max_elapsed_time, max_wait "
       "or the deadline"},
      {held(QueuedBy::Rate), Errc::RateLimited,
       "the rate of http://x allows the request too late for max_elapsed_time, max_wait or the "
       "deadline"},
      {held(QueuedBy::SharedState, kStart + 5s), Errc::RateLimited,
       "the shared limits of http://x were not known in time"},
      {held(QueuedBy::Concurrency), Errc::QueueFull,
       "too many sends are waiting for the limit of http://x, or this one has waited too long"},
  };
  for (const auto& row : rows) {
    const auto error = error_of_refusal(row.hold, "http://x", kStart);
    CHECK(error.code == row.code);
    CHECK(error.message == row.message);
  }
}
