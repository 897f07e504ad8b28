// Clients for the tests on real sockets, and what they ask again and again.
#pragma once

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace httpretry {

// Waits of a millisecond: the wire is real here, the patience is not.
inline RetryPolicy hasty() {
  RetryPolicy policy;
  policy.backoff.initial = std::chrono::milliseconds(1);
  policy.throttle_backoff.reset();
  return policy;
}

// Waits of an hour, which only a stop can end.
inline RetryPolicy patient() {
  auto policy = hasty();
  policy.backoff.kind = Backoff::Kind::Constant;
  policy.backoff.jitter = Backoff::Jitter::None;
  policy.backoff.initial = policy.backoff.max_interval = std::chrono::hours(1);
  policy.max_elapsed_time = kForever;
  return policy;
}

inline int wire_sends(const Outcome& outcome) {
  int sends = 0;
  for (const auto& attempt : history_of(outcome).attempts) sends += attempt.wire_sends;
  return sends;
}

// Sets a variable of the environment for a scope.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

// A loopback port on which nobody listens: bound and never listened on, for as long as this lives.
class ClosedPort {
 public:
  ClosedPort();
  ~ClosedPort();
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;
  [[nodiscard]] std::string url() const;

 private:
  int fd_;
  int port_ = 0;
};

}  // namespace httpretry
