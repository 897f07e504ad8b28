// GuardPolicy: what holds sends back before they reach the wire, as in a policy file: a pause that
// the server asked for, a circuit breaker, a rate and a limit of concurrent sends. Data only.
#pragma once

#include <httpretry/export.hpp>
#include <httpretry/http/request.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/backoff.hpp>

#include <cstdint>
#include <optional>

namespace httpretry {

// Which sends share one state. Credentials: those with the same Authorization.
enum class GuardScope : std::uint8_t { Host, Endpoint, Policy, Credentials };

// A server that asks one call to wait asks all calls.
struct HTTPRETRY_API PausePolicy {
  // After the pause: Ramp sends one request, then two, four and so on; All sends what waits.
  enum class Resume : std::uint8_t { Ramp, All };
  PausePolicy() = default;
  friend bool operator==(const PausePolicy&, const PausePolicy&) = default;

  bool enabled = true;
  Duration max = std::chrono::minutes(1);
  Resume resume = Resume::Ramp;
  // Empty: a 503 pauses the host, a 429 the endpoint with the credentials that were sent.
  std::optional<GuardScope> scope;
};

// At most `requests` in `per`, evenly spaced; `burst` of them at once after a quiet time.
struct HTTPRETRY_API RatePolicy {
  RatePolicy() = default;
  friend bool operator==(const RatePolicy&, const RatePolicy&) = default;

  std::int64_t requests = 10;
  Duration per = std::chrono::seconds(1);
  std::int64_t burst = 1;
  GuardScope scope = GuardScope::Host;
  Duration max_wait = kForever;  // a send that would wait longer is refused
};

struct HTTPRETRY_API ConcurrencyPolicy {
  // Aimd: the limit grows by one while it is used and nothing fails, and falls to `backoff_ratio`
  // of itself where sends time out, fail in transport or are throttled.
  enum class Kind : std::uint8_t { Fixed, Aimd };
  enum class Order : std::uint8_t { Fifo, Lifo };
  // Of sends that wait for a slot.
  struct Queue {
    friend bool operator==(const Queue&, const Queue&) = default;
    int max = 1000;
    Duration timeout = kForever;
    Order order = Order::Fifo;
  };
  ConcurrencyPolicy() = default;
  friend bool operator==(const ConcurrencyPolicy&, const ConcurrencyPolicy&) = default;

  int max = 64;
  Kind kind = Kind::Fixed;
  int initial = 20;  // Aimd
  int min = 1;
  double backoff_ratio = 0.9;
  GuardScope scope = GuardScope::Host;
  Queue queue;
};

struct HTTPRETRY_API BreakerPolicy {
  // Ratio: opens when a share of the sends of the last `window` failed. Consecutive: after
  // `failures` in a row. Share: no states; refuses the more, the fewer sends succeed.
  enum class Kind : std::uint8_t { Ratio, Consecutive, Share };
  enum class AppliesTo : std::uint8_t { All, Retries };
  enum class WhenOpen : std::uint8_t { Fail, Wait };
  BreakerPolicy();
  friend bool operator==(const BreakerPolicy&, const BreakerPolicy&) = default;

  Kind kind = Kind::Ratio;
  double failure_ratio = 0.5;
  int min_requests = 20;
  Duration window = std::chrono::seconds(10);
  int failures = 0;  // in a row; for Ratio 0 means that they do not count
  Duration slow_after = kForever;
  double slow_ratio = 1;
  double k = 2;  // Share
  Duration share_window = std::chrono::minutes(2);
  Backoff open_for;  // exponential, 5s to 1m
  int probes = 1;    // successes that close it
  Duration probe_timeout = std::chrono::seconds(30);
  bool throttle_fails = false;
  AppliesTo applies_to = AppliesTo::All;
  WhenOpen when_open = WhenOpen::Fail;
  GuardScope scope = GuardScope::Host;
  bool dry_run = false;
};

struct HTTPRETRY_API GuardPolicy {
  GuardPolicy() = default;
  friend bool operator==(const GuardPolicy&, const GuardPolicy&) = default;

  // Whether there is more than the pause, which costs nothing while nobody asked for one.
  [[nodiscard]] bool has_limits() const {
    return rate.has_value() || concurrency.has_value() || breaker.has_value();
  }

  PausePolicy pause;
  std::optional<RatePolicy> rate;
  std::optional<ConcurrencyPolicy> concurrency;
  std::optional<BreakerPolicy> breaker;
  Priority priority = Priority::Normal;
};

}  // namespace httpretry
