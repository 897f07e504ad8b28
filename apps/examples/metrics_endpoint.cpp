// A service that exports its metrics: the response to GET /metrics, for any HTTP server. It also
// sends its spans to a collector.
//
//   metrics_endpoint [PORT]
//
// With a PORT it serves http://127.0.0.1:PORT/metrics until it is killed, and makes a call a
// second, so that the numbers change.
#include <httpretry/httpretry.hpp>
#include <httpretry/telemetry/telemetry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

int main(int argc, char** argv) {
  // A server that fails first, so that there is something to count.
  FaultServer upstream({503, {200, "ok"}});
  FaultServer collector;  // a real program uses OtlpOptions::from_environment()
  OtlpOptions otlp;
  otlp.endpoint = collector.url();

  const auto exporter = std::make_shared<Otlp>(otlp);
  const auto numbers = metrics();
  exporter->export_metrics(numbers);
  Client client(ClientOptions()
                    .with_attempt_middleware(propagate())
                    .with_observer(numbers)
                    .with_observer(traces(exporter->sink())));

  // In your server, this is the handler of /metrics.
  const auto answer = [&](const std::string& accept) {
    const auto page = numbers->page(accept);
    return Step(200, Headers{{"Content-Type", page.type}}, page.text);
  };

  Step step;
  step.respond = [&](const SeenRequest& request) {
    return answer(std::string(request.headers["Accept"]));
  };
  const bool has_port = argc > 1;
  FaultServerOptions listen;
  if (has_port) listen.port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  FaultServer service({step}, listen);

  const Outcome outcome = client.get(upstream.url("/v1/items"));
  if (!outcome) return 1;
  while (has_port) {  // until the program is killed or a call fails
    std::this_thread::sleep_for(1s);
    if (!client.get(upstream.url("/v1/items"))) return 1;
  }

  const Outcome scraped = Client().get(service.url("/metrics"));
  if (!scraped) return 1;
  std::printf("%s", scraped->body.c_str());
  // Three spans: the call and its two attempts.
  const bool delivered = exporter->flush(10s) && exporter->exported() == 3;
  const bool counted = scraped->body.find("httpretry_retries_total") != std::string::npos;
  return delivered && counted ? 0 : 1;
}
