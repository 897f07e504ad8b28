// A circuit breaker for a dependency that goes down. It opens after five failures in a row, so that
// calls fail at once and put no load on the dependency. A single probe finds that it is back.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Prints when the breaker opens and closes.
class Circuits final : public Observer {
 public:
  void circuit_changed(const Call& /*call*/, const CircuitChange& change) noexcept override {
    std::printf("the circuit of %.*s is %.*s: %.*s\n", static_cast<int>(change.key.size()),
                change.key.data(), static_cast<int>(to_string(change.to).size()),
                to_string(change.to).data(), static_cast<int>(change.why.size()),
                change.why.data());
  }
};

}  // namespace

int main() {
  // The dependency responds with 500 five times, and works after that.
  Step down(500);
  down.times = 5;
  FaultServer dependency({down, {200, "ok"}});

  auto policy = RetryPolicy::standard({.max_attempts = 1});  // no retries
  auto& breaker = policy.guards.breaker.emplace();
  breaker.kind = BreakerPolicy::Kind::Consecutive;
  breaker.failures = 5;
  breaker.open_for.kind = Backoff::Kind::Constant;
  breaker.open_for.initial = 200ms;

  const auto state = local_state();  // so that the program can read it
  ClientOptions options;
  options.shared_state = state;
  options.observers = {std::make_shared<Circuits>()};
  options.policies = policy;
  Client client(options);

  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    const auto outcome = client.get(dependency.url());
    if (!outcome && outcome.error().code == Errc::CircuitOpen) ++refused;
  }
  std::printf("100 calls, %zu requests, %d refused\n", dependency.requests(), refused);

  const auto now = std::chrono::steady_clock::now();
  for (const auto& breaker_state : state->states(/*prefix=*/"breaker ", now)) {
    std::printf("%s: %s\n", breaker_state.key.c_str(),
                std::string(to_string(*breaker_state.circuit)).c_str());
  }

  // Longer than open_for, so that the next call is the probe.
  std::this_thread::sleep_for(300ms);
  const bool is_back = client.get(dependency.url()).has_value();
  return refused > 0 && is_back ? 0 : 1;
}
