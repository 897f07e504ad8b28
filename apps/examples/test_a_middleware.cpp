// A middleware of one's own, and its test: no network, no waiting. The checks are plain ifs here;
// any test framework will do.
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// The middleware: sends the request to a second server if the first one failed.
MiddlewarePtr fallback_to(std::string host) {
  return middleware("fallback", [host](Request request, Call& call, Next next) -> Task<Outcome> {
    Outcome outcome = co_await next(request, call);
    if (outcome && outcome->status < 500) co_return outcome;
    request.set_url("http://" + host + "/");
    Outcome second = co_await next(request, call);
    co_return second;
  });
}

int failures = 0;
void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

}  // namespace

int main() {
  auto clock = std::make_shared<ManualScheduler>();
  auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(503)).say(Response(503)).say(Response(200, "from the second"));

  RetryPolicy twice;
  twice.max_attempts = 2;
  ClientOptions options;
  options.middlewares = {fallback_to("second"), retry(twice)};
  options.scheduler = clock;
  options.transport = network;
  options.random = fixed_random(0.5);
  Client client(options);

  const auto outcome = client.get("http://first/");

  check(outcome && outcome->body == "from the second", "the second server answers");
  check(network->requests().size() == 3, "the first was asked twice");
  check(network->requests()[2].request.url() == "http://second/", "then the second");
  check(clock->now() == Time(50ms), "and half of 100 ms was waited, in no time");
  return failures;
}
