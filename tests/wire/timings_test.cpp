// The durations that a call reports, by the clock of the system.
#include "send_functions.hpp"

#include <chrono>

using namespace httpretry;
namespace ways = httpretry::send_functions;

namespace {

// Measures what is behind it in the chain.
class Stopwatch final : public Middleware {
 public:
  explicit Stopwatch(std::shared_ptr<Duration> within) : within_(std::move(within)) {}
  [[nodiscard]] std::string_view name() const override { return "stopwatch"; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    const auto began = std::chrono::steady_clock::now();
    Outcome outcome = co_await next(std::move(request), call);
    *within_ = std::chrono::steady_clock::now() - began;
    co_return outcome;
  }

 private:
  std::shared_ptr<Duration> within_;
};

}  // namespace

// On a connection that is kept alive, a response can come within the turn of the loop that sends
// the request.
TEST_CASE_TEMPLATE("no part of a call takes longer than the whole, and none takes no time", Way,
                   ways::Blocking, ways::BlockingOnLoop, ways::Future) {
  FaultServer server;
  ClientOptions options;
  options.blocking = Way::kBlocking;
  const auto within = std::make_shared<Duration>();
  options.middlewares = {std::make_shared<Stopwatch>(within), retry(hasty())};
  Client client(std::move(options));
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const auto outcome = Way::send(client, Request::get(server.url()), {});
    REQUIRE(outcome);
    const auto& timings = outcome->exchange.timings;
    const auto& history = outcome->history;
    REQUIRE(history.attempts.size() == 1);
    REQUIRE(timings.first_byte > Duration::zero());
    REQUIRE(timings.first_byte <= timings.total);
    REQUIRE(timings.total <= history.attempts[0].duration);
    REQUIRE(history.attempts[0].duration <= history.elapsed);
    REQUIRE(*within <= history.elapsed);
  }
}

TEST_CASE("an attempt that fails within one turn took some time") {
  const ClosedPort port;
  Client client({retry(hasty())});
  for (int i = 0; i < 20; ++i) {
    const auto outcome = client.get(port.url());
    REQUIRE_FALSE(outcome);
    for (const auto& attempt : outcome.error().history.attempts) {
      REQUIRE(attempt.duration > Duration::zero());
    }
    REQUIRE(outcome.error().exchange.timings.total > Duration::zero());
  }
}
