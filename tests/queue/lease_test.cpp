// Leases, and the sends that they allow.
#include "lib/extras/queue/lease.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace httpretry::queue;
using namespace std::chrono_literals;

TEST_CASE("a lease that was not renewed for half of its time allows no sends") {
  const Time began(100s);
  Lease lease(began, 30s);
  CHECK(lease.allows_sends(began));
  CHECK(lease.allows_sends(began + 15s - 1ns));
  CHECK_FALSE(lease.allows_sends(began + 15s));
  lease.renew(began + 10s);
  CHECK(lease.allows_sends(began + 24s));
  CHECK_FALSE(lease.allows_sends(began + 25s));
  lease.renew(began + 25s);
  lease.lose();
  CHECK_FALSE(lease.allows_sends(began + 25s));
}

namespace {

Outcome send_with(const std::string& url, std::shared_ptr<Lease> lease) {
  ClientOptions options;
  RetryPolicy policy;
  policy.backoff.initial = 1ms;
  options.middlewares = {retry(policy), leased_sends()};
  Client client(std::move(options));
  Request request("GET", url);
  request.edit_options().context.set(LeaseOfCall{std::move(lease)});
  return client.send(std::move(request));
}

}  // namespace

TEST_CASE("a call whose lease is over is canceled before it sends") {
  FaultServer server({200});
  const auto lease = std::make_shared<Lease>(std::chrono::steady_clock::now(), 1h);
  CHECK(send_with(server.url("/"), lease).has_value());
  CHECK(lease->idle());  // it is not on the wire
  lease->lose();
  const auto outcome = send_with(server.url("/"), lease);
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().code == Errc::Canceled);
  CHECK(history_of(outcome).stop_reason == Reason::Canceled);
  CHECK(outcome.error().message == "the lease of the job was not renewed");
  CHECK(server.requests() == 1);
}

TEST_CASE("a lease that ends between two attempts ends the call") {
  const auto lease = std::make_shared<Lease>(std::chrono::steady_clock::now(), 1h);
  Step step;
  step.respond = [&lease](const SeenRequest& /*request*/) {
    lease->lose();
    return Step{503, "busy"};
  };
  FaultServer server({step});
  const auto outcome = send_with(server.url("/"), lease);
  CHECK(history_of(outcome).stop_reason == Reason::Canceled);
  CHECK(server.requests() == 1);
}
