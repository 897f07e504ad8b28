// A middleware and its test, without a network and without waiting. Any test framework can be used;
// here the checks are plain ifs.
#include <httpretry/httpretry.hpp>
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
void check(bool passed, const char* what) {
  if (passed) return;
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

  check(outcome && outcome->body == "from the second", "the second server responds");
  check(network->requests().size() == 3, "there are two requests to the first server");
  check(network->requests()[2].request.url() == "http://second/", "and then one to the second");
  check(clock->now() == Time(225ms), "the wait was between 150 and 300 ms, in virtual time");
  return failures;
}
