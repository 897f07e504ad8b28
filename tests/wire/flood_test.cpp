// Servers that send HTTP/2 frames without end, which libcurl handles without returning.
#include "wire.hpp"

#include <chrono>
#include <stop_token>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Ends only with its connection.
Step flood(Fault fault) {
  Step step(fault);
  step.size = std::uint64_t{1} << 60;
  return step;
}

Request get(const FaultServer& server) {
  auto request = Request::get(server.url());
  request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
  return request;
}

}  // namespace

TEST_CASE("a flood of HTTP/2 frames ends its call, and no other") {
  for (const auto fault :
       {Fault::Http2EmptyData, Fault::Http2GoawayFlood, Fault::Http2ResetFlood}) {
    for (const bool blocking : {true, false}) {
      const auto what = to_string(fault);
      CAPTURE(what);
      CAPTURE(blocking);
      FaultServer server({flood(fault)});
      FaultServer healthy(Scenario{Step(200, "hello")});
      Client client;
      CHECK(client.send_async(Request::get(healthy.url())).get());
      const auto outcome =
          blocking ? client.send(get(server)) : client.send_async(get(server)).get();
      REQUIRE_FALSE(outcome);
      CHECK(outcome.error().code == Errc::Receive);
      // libcurl may notice the end of the stream by itself before the flood has begun.
      const auto& message = outcome.error().message;
      CAPTURE(message);
      CHECK((message.find("HTTP/2 frames without end") != std::string::npos ||
             fault == Fault::Http2ResetFlood));
      CHECK(outcome.error().exchange.sent != Sent::Never);
      CHECK_FALSE(outcome.error().permanent);
      CHECK(client.send_async(Request::get(healthy.url())).get());
      CHECK(healthy.connections() == 1);  // its connection outlived the flood
    }
  }
}

TEST_CASE("a call whose time is over during a flood ends with a timeout") {
  FaultServer server({flood(Fault::Http2EmptyData)});
  CallOptions options;
  options.timeout = 10ms;
  const auto outcome = Client().send(get(server), options);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
}

TEST_CASE("a call that is stopped during a flood ends as canceled") {
  FaultServer server({flood(Fault::Http2EmptyData)});
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  Client client;
  auto call = client.send_async(get(server), options);
  CHECK(server.wait_for_requests(1, 10s));
  stop.request_stop();
  const auto outcome = call.get();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Canceled);
}

TEST_CASE("all calls of a connection that is flooded end") {
  FaultServer server({flood(Fault::Http2EmptyData)});
  Client client;
  auto first = client.send_async(get(server));
  auto second = client.send_async(get(server));
  for (auto* call : {&first, &second}) {
    const auto outcome = call->get();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Receive);
  }
}
