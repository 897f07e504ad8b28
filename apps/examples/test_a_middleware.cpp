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
  return middleware("second", [host](Request request, Call& call, Next next) -> Task<Outcome> {
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

// Checks that the second server gets the request after both attempts at the first one failed. Runs
// in virtual time.
void test_fallback() {
  auto clock = std::make_shared<ManualScheduler>();
  auto network = std::make_shared<ScriptedTransport>();
  network->say(Response(503)).say(Response(503)).say(Response(200, "from the second"));

  RetryPolicy twice;
  twice.max_attempts = 2;
  ClientOptions options;
  options.middlewares = {fallback_to("second"), retry(twice)};
  options.scheduler = clock;
  options.transport = network;
  options.random = fixed_random(0.5);  // the middle of the 150 to 300 ms of the first wait
  Client client(options);

  const auto outcome = client.get("http://first/");

  check(outcome && outcome->body == "from the second", "the second server responds");
  const auto requests = network->requests();
  check(requests.size() == 3, "three requests are sent");
  check(requests.back().request.url() == "http://second/", "the last one to the second server");
  check(clock->now() == Time(225ms), "the wait was between 150 and 300 ms, in virtual time");
}

// Checks that a script can compute its responses, and that a server on real sockets can too.
void test_computed_responses() {
  auto network = std::make_shared<ScriptedTransport>();
  // `number` counts the requests from 1.
  network->say([](const Request& request, int number) -> Outcome {
    return Response(200, std::to_string(number) + ": " + *request.body().bytes());
  });
  ClientOptions options;
  options.transport = network;
  const auto scripted = Client(options).put("http://x/", "text");
  check(scripted && scripted->body == "1: text", "the script responds with the body");

  Step echo;
  echo.respond = [](const SeenRequest& request) { return Step(200, request.body); };
  FaultServer server({503, echo});
  Client client({retry()});
  const auto echoed = client.put(server.url("/"), "text");
  check(echoed && echoed->body == "text", "the server responds with the body");
  check(server.requests() == 2, "after a retry");
}

}  // namespace

int main() {
  test_fallback();
  test_computed_responses();
  return failures;
}
