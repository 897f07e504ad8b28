// Receives server-sent events. A stream that ends or is cut off is requested again.
#include <httpretry/client/event_stream.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>

using namespace httpretry;

int main() {
  const Headers type{{"Content-Type", "text/event-stream"}};
  const Scenario scenario{{200, type, "retry: 100\nid: 1\ndata: first\n\n"},
                          {200, type, "id: 2\ndata: second\n\n"},
                          {204}};  // the server has no more events
  FaultServer server(scenario);

  Client client;
  const auto ended =
      listen(client, Request::get(server.url("/events")), [](const ServerEvent& event) {
        std::printf("%s %s: %s\n", event.id.c_str(), event.type.c_str(), event.data.c_str());
        return true;  // false would end the stream
      });
  if (!ended) std::fprintf(stderr, "%s\n", ended.error().message.c_str());
  return ended ? 0 : 1;
}
