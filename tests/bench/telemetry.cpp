// What observers of httpretry::telemetry cost a send: whole calls in virtual time, without a
// network.
//
//   telemetry OBSERVERS WORK CALLS    OBSERVERS: off, idle (one that does nothing), metrics,
//                                     traces, propagate (traces with it), all
//                                     WORK: answered, and with two sends a call: redirected,
//                                     retried (after a 503)
#include "measure.hpp"

#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/telemetry/telemetry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

using namespace bench;      // NOLINT
using namespace httpretry;  // NOLINT
using namespace std::chrono_literals;

namespace {

class Prompt final : public Transport {
 public:
  explicit Prompt(int first) : first_(first) {}
  Task<Outcome> send(Request /*request*/, Call& call) override {
    Response response(call.attempt() == 1 ? first_ : 200);
    if (response.status == 302) response.headers.add("Location", "/items/8");
    response.http_version = "1.1";
    response.exchange.sent = Sent::Answered;
    response.exchange.wire_sends = 1;
    std::strcpy(response.exchange.peer.text.data(), "192.0.2.1");
    response.exchange.peer.port = 443;
    response.exchange.timings.sent = 1ms;
    response.exchange.timings.first_byte = 20ms;
    response.exchange.timings.total = 21ms;
    co_return response;
  }

 private:
  int first_;  // the status of the first attempt
};

PolicySet policies() {
  return parse_policies(R"({"version": 1, "endpoints": [{
    "name": "items", "match": {"host": "api.example.com", "path": "/items/{id}"},
    "policy": {"backoff": {"kind": "none"}, "budget": {"capacity": 1000000000}}}]})",
                        "policy.json")
      .value();
}

}  // namespace

int main(int argc, char** argv) {
  demand(argc == 4, "usage: telemetry OBSERVERS WORK CALLS");
  const std::string which = argv[1];
  const std::string work = argv[2];
  const auto calls = std::strtoul(argv[3], nullptr, 10);
  const std::map<std::string, int> works{{"answered", 200}, {"redirected", 302}, {"retried", 503}};
  demand(works.contains(work), "WORK: answered, redirected, retried");
  const std::size_t each = work == "answered" ? 1 : 2;

  // Its thread sleeps all the while: what it does later is no cost of a send.
  OtlpOptions where;
  where.queue = 1U << 16U;
  where.batch = where.queue;
  where.interval = where.metrics_interval = 1h;
  where.shutdown = 0ms;
  demand(calls * (each + 1) < where.queue / 2, "so many spans have no room");
  std::optional<Otlp> exporter;
  const auto numbers = metrics();

  ClientOptions options;
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = std::make_shared<Prompt>(works.at(work));
  options.middlewares = {redirect(), retry(policies())};
  if (which == "idle") options.observers.push_back(std::make_shared<Observer>());
  const bool spans = which == "traces" || which == "propagate" || which == "all";
  if (spans) options.observers.push_back(traces(exporter.emplace(where).sink()));
  if (which == "propagate" || which == "all") options.attempt_middlewares.push_back(propagate());
  if (which == "metrics" || which == "all") options.observers.push_back(numbers);
  demand(which == "off" || !options.observers.empty(),
         "OBSERVERS: off, idle, metrics, traces, propagate, all");
  Client client(std::move(options));

  const auto run = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto request = Request::get("https://api.example.com/items/7?page=2");
      request.set_header("Accept", "application/json");
      const auto outcome = client.send(std::move(request));
      demand(outcome && outcome->history.attempts.size() == each, "a call did not go as it should");
    }
  };
  run(100);
  const auto spent = spent_in([&] { run(calls); });
  const auto sends = calls * each;
  const auto counted = numbers->snapshot().sum("http_client_request_duration_seconds");
  demand(
      counted == static_cast<double>(which == "metrics" || which == "all" ? sends + 100 * each : 0),
      "the numbers are wrong");
  std::printf(
      R"({"observers": "%s", "work": "%s", "sends": %zu, "cpu_us": %.3f, "allocations": %.2f})"
      "\n",
      which.c_str(), work.c_str(), sends, spent.cpu_us / static_cast<double>(sends),
      static_cast<double>(spent.allocations) / static_cast<double>(sends));
}
