// What has held sends back, as histories, reports and observers tell it.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/http/time.hpp>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

// Which of the sends that wait for a slot or a token go first.
enum class Priority : std::uint8_t { High, Normal, Low };

// Of a circuit breaker.
enum class Circuit : std::uint8_t {
  Closed,    // all sends go out
  Open,      // none does, until a time
  HalfOpen,  // a few go out to see whether the server is back
};

// What a send had to wait for before it went out.
enum class QueuedBy : std::uint8_t {
  Nothing,
  Pause,        // a server asked for it
  Ramp,         // after a pause not all go out at once
  Circuit,      // a circuit breaker with `when_open: wait`
  Rate,         // GuardPolicy::rate
  Concurrency,  // GuardPolicy::concurrency
  MaxInFlight,  // ClientOptions::max_in_flight
  SharedState,  // a reply of the place where ClientOptions::shared_state keeps the limits
};

// "closed", "open", "half_open"
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Circuit circuit);
// "pause", "ramp", "circuit", "rate", "concurrency", "max_in_flight",
// "shared_state"; empty for Nothing.
[[nodiscard]] HTTPRETRY_API std::string_view to_string(QueuedBy by);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Circuit circuit);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, QueuedBy by);

// The circuit breaker that a call has asked last, as it was then.
struct HTTPRETRY_API CircuitFacts {
  CircuitFacts() = default;

  std::string key;  // "https://api.example.com", and what else tells it apart
  Circuit state = Circuit::Closed;
  std::uint32_t failed = 0;  // of the sends that its window counts
  std::uint32_t total = 0;
  std::optional<WallTime> until;        // while it is open
  std::optional<double> refused_share;  // of kind Share
};

struct HTTPRETRY_API LimitFacts {
  LimitFacts() = default;

  Duration rate_wait{};          // of all attempts together, for a rate
  std::optional<int> limit;      // of sends at once; empty without a limit
  std::optional<int> in_flight;  // that use it, this one included
  std::optional<WallTime> paused_until;
};

// In History::guards. Each is empty where the policy has no such block.
struct HTTPRETRY_API GuardFacts {
  GuardFacts() = default;

  std::optional<CircuitFacts> circuit;
  std::optional<LimitFacts> limits;
};

// What observers are told. The views live as long as the event.
struct HTTPRETRY_API CircuitChange {
  CircuitChange() = default;

  std::string_view key;
  Circuit from = Circuit::Closed;
  Circuit to = Circuit::Closed;
  std::string_view why;  // "10 of 20 failed in 10s", "7 failures in a row", "a probe succeeded", …
  std::uint32_t failed = 0;
  std::uint32_t total = 0;
  Time until = kNever;   // of an open one
  bool dry_run = false;  // nothing is refused
};

struct HTTPRETRY_API PauseBegun {
  PauseBegun() = default;

  std::string_view key;
  Time until = kNever;
  std::string_view source;  // the header that asked for it: "retry-after"
};

struct HTTPRETRY_API LimitChange {
  LimitChange() = default;

  std::string_view key;
  int from = 0;  // sends at once
  int to = 0;
};

// The place where a SharedState keeps its limits cannot be reached any more, or can again.
struct HTTPRETRY_API SharedStateChange {
  SharedStateChange() = default;

  std::uint64_t number = 0;  // of the change, from 1
  bool degraded = false;     // this process goes on with its share of each limit
  std::string place;         // "redis://redis.internal:6379/0"
  std::string why;           // it cannot be reached
};

}  // namespace httpretry
