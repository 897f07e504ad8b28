// GuardPolicy: what holds sends back before they reach the network: a pause that the server asked
// for, a circuit breaker, a rate and a limit of concurrent sends. Plain data with the members of a
// policy file; lib/core/policy/policy-file.md explains each of them.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/request.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/retry/backoff.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace httpretry {

// Which sends share one state. Credentials means those with the same Authorization.
enum class GuardScope : std::uint8_t { Host, Endpoint, Policy, Credentials };

// PausePolicy is `pause`: if a server asks one call to wait, all calls to it wait.
struct HTTPRETRY_API PausePolicy {
  // After the pause, Ramp sends one request, then two, four and so on. All sends everything that
  // waits.
  enum class Resume : std::uint8_t { Ramp, All };
  PausePolicy() = default;
  friend bool operator==(const PausePolicy&, const PausePolicy&) = default;

  bool enabled = true;                     // false: a server delay holds back only its own call
  Duration max = std::chrono::minutes(1);  // the longest pause, even if a server asks for more
  Resume resume = Resume::Ramp;
  // If empty, a 503 pauses the host, and a 429 pauses the endpoint for the credentials that were
  // sent.
  std::optional<GuardScope> scope;
};

// RatePolicy is `rate`: `requests` in the time `per`, evenly spaced. After an idle time, up to
// `burst` may be sent at once. So there are at most `requests` + `burst` sends in any time `per`. A
// rate may count what requests cost (RequestOptions::cost) instead, and a policy may have several
// rates:
//
//   auto rate = RatePolicy::of_requests(59, 1min);       // at most 60 in any minute
//   rate.further = {RatePolicy::of_cost(5'000, 1min)};  // at most 10,000: its burst is 5,000, too
struct HTTPRETRY_API RatePolicy {
  // Requests counts each send as one, Cost as RequestOptions::cost.
  enum class Counts : std::uint8_t { Requests, Cost };
  RatePolicy() = default;
  // Return a rate that counts each send as one.
  static RatePolicy of_requests(std::int64_t requests, Duration per) {
    RatePolicy rate;
    rate.requests = requests;
    rate.per = per;
    return rate;
  }
  static RatePolicy per_second(std::int64_t requests) {
    return of_requests(requests, std::chrono::seconds(1));
  }
  // Returns a rate that counts costs. After an idle time, the whole cost may be sent at once.
  static RatePolicy of_cost(std::int64_t cost, Duration per) {
    auto rate = of_requests(cost, per);
    rate.burst = cost;
    rate.counts = Counts::Cost;
    return rate;
  }
  friend bool operator==(const RatePolicy&, const RatePolicy&) = default;

  // Returns what a request with this cost takes from the rate.
  [[nodiscard]] std::int64_t amount_of(std::int64_t cost) const {
    return counts == Counts::Cost ? cost : 1;
  }

  std::int64_t requests = 10;              // or the cost
  Duration per = std::chrono::seconds(1);  // the unit of time of `requests`
  // A request that costs more can never be sent, and fails with Errc::InvalidRequest.
  std::int64_t burst = 1;
  GuardScope scope = GuardScope::Host;  // which sends share the rate
  // A send that would have to wait longer is refused. Of several rates, the shortest limit applies.
  Duration max_wait = kForever;
  Counts counts = Counts::Requests;
  // Further rates, which must all allow a send as well. They have the same scope as this one, and
  // no further rates of their own.
  std::vector<RatePolicy> further;
};

// ConcurrencyPolicy is `concurrency`: a limit of concurrent sends.
struct HTTPRETRY_API ConcurrencyPolicy {
  // Fixed is always `max`. Aimd adapts the limit: it grows by one while it is used and nothing
  // fails, and is multiplied by `backoff_ratio` if sends time out, fail in transport or are
  // throttled.
  enum class Kind : std::uint8_t { Fixed, Aimd };
  // The order of waiting sends: first in, first out, or last in, first out.
  enum class Order : std::uint8_t { Fifo, Lifo };
  // The queue of sends that wait for a slot.
  struct Queue {
    friend bool operator==(const Queue&, const Queue&) = default;
    int max = 1000;               // how many sends may wait; 0: none
    Duration timeout = kForever;  // of a wait
    Order order = Order::Fifo;
  };
  ConcurrencyPolicy() = default;
  friend bool operator==(const ConcurrencyPolicy&, const ConcurrencyPolicy&) = default;

  int max = 64;  // concurrent sends
  Kind kind = Kind::Fixed;
  int initial = 20;                     // for Aimd
  int min = 1;                          // for Aimd
  double backoff_ratio = 0.9;           // for Aimd: multiplies the limit after failures
  GuardScope scope = GuardScope::Host;  // which sends share the limit
  Queue queue;
};

// BreakerPolicy is `breaker`: a circuit breaker.
struct HTTPRETRY_API BreakerPolicy {
  // Ratio opens when a share of the sends in the last `window` failed. Consecutive opens after
  // `failures` in a row. Share has no states; the fewer sends succeed, the more it refuses.
  enum class Kind : std::uint8_t { Ratio, Consecutive, Share };
  // The sends that the breaker may refuse: all, or only those that are not the first of a call.
  enum class AppliesTo : std::uint8_t { All, Retries };
  // The fate of a send while the circuit is open: it fails at once, or it waits.
  enum class WhenOpen : std::uint8_t { Fail, Wait };
  BreakerPolicy();
  friend bool operator==(const BreakerPolicy&, const BreakerPolicy&) = default;

  Kind kind = Kind::Ratio;
  double failure_ratio = 0.5;  // for Ratio: this share of failures opens the circuit
  int min_requests = 20;       // for Ratio: fewer sends in `window` open nothing
  Duration window = std::chrono::seconds(10);  // the time over which sends are counted
  int failures = 0;                            // in a row; 0 for Ratio disables this condition
  Duration slow_after = kForever;  // for Ratio: a send is slow if its headers take longer
  double slow_ratio = 1;           // for Ratio: this share of slow sends opens the circuit
  double k = 2;                    // for Share
  Duration share_window = std::chrono::minutes(2);  // for Share: its window
  Backoff open_for;                                 // exponential, from 5 s to 1 min
  int probes = 1;  // the number of successes that close the circuit
  Duration probe_timeout = std::chrono::seconds(30);  // a probe that takes longer does not count
  bool throttle_fails = false;                        // a throttle counts as a failure
  AppliesTo applies_to = AppliesTo::All;
  WhenOpen when_open = WhenOpen::Fail;
  GuardScope scope = GuardScope::Host;  // which sends share the breaker
  bool dry_run = false;                 // refuses nothing, and only notifies observers
};

// GuardPolicy holds the guards of a policy.
struct HTTPRETRY_API GuardPolicy {
  GuardPolicy() = default;
  friend bool operator==(const GuardPolicy&, const GuardPolicy&) = default;

  // Returns whether there are guards other than the pause. The pause costs nothing until a server
  // asks for one.
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
