// A service that tells its metrics: what GET /metrics answers, in whatever HTTP server it has. The
// spans go to the collector that the environment names, if there is one.
#include <httpretry/httpretry.hpp>
#include <httpretry/telemetry/telemetry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>

using namespace httpretry;
using namespace std::chrono_literals;

int main() {
  // A server that fails first, so that there is something to count.
  FaultServer upstream({503, {200, "ok"}});
  FaultServer collector;  // in earnest: OtlpOptions::from_environment()
  OtlpOptions where;
  where.endpoint = collector.url();

  const auto exporter = std::make_shared<Otlp>(where);
  const auto numbers = metrics();
  exporter->export_metrics(numbers);
  ClientOptions options;
  options.middlewares = {redirect(), retry(), propagate()};
  options.observers = {numbers, traces(exporter->sink())};
  Client client(options);

  Step page;
  page.respond = [&](const SeenRequest& /*request*/) {
    const auto shown = numbers->page("text/plain");
    return Step(200, Headers{{"Content-Type", shown.type}}, shown.text);
  };
  FaultServer service({page});

  const Outcome outcome = client.get(upstream.url("/v1/items"));
  if (!outcome) return 1;
  const Outcome scraped = Client().get(service.url("/metrics"));
  if (!scraped) return 1;
  std::printf("%s", scraped->body.c_str());
  const bool delivered = exporter->flush(10s) && exporter->exported() == 3;
  const bool counted = scraped->body.find("httpretry_retries_total") != std::string::npos;
  return delivered && counted ? 0 : 1;
}
