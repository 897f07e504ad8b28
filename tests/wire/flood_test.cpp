// Servers that send HTTP/2 frames without end, which libcurl handles without returning.
#include "files.hpp"
#include "http2_server.hpp"
#include "tls_server.hpp"
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

// A newer nghttp2 limits some floods, and then ends the connection before we do.
bool ended_by_nghttp2(const Outcome& outcome) {
  return !outcome && outcome.error().code == Errc::Receive &&
         outcome.error().message.find("ENHANCE_YOUR_CALM") != std::string::npos;
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
      auto client = Client::bare();
      CHECK(client.send_async(Request::get(healthy.url())).get());
      const auto outcome =
          blocking ? client.send(get(server)) : client.send_async(get(server)).get();
      REQUIRE_FALSE(outcome);
      CHECK(outcome.error().code == Errc::Receive);
      // libcurl may notice the end of the stream by itself before the flood has begun.
      const auto& message = outcome.error().message;
      CAPTURE(message);
      CHECK((message.find("endless HTTP/2 frames") != std::string::npos ||
             fault == Fault::Http2ResetFlood || ended_by_nghttp2(outcome)));
      CHECK(outcome.error().exchange.sent != Sent::Never);
      CHECK_FALSE(outcome.error().permanent);
      CHECK(client.send_async(Request::get(healthy.url())).get());
      CHECK(healthy.connections() == 1);  // its connection outlived the flood
    }
  }
}

// Opening the certificate takes libcurl more CPU time than the watchdog allows a flood.
TEST_CASE("a connection that receives nothing is not taken for a flood") {
  const TemporaryDirectory directory;
  make_client_certificate(directory.file(""), "ann", "p", 1'000'000);
  const Nghttpd server;
  const TlsServer other;
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = server.ca_file();
  options.connection.client_certificate.file = directory.file("client.p12");
  options.connection.client_certificate.key_password = "p";
  options.connection.connect_timeout = 10min;  // other work on the machine makes opening it slow
  Client client(options);
  const auto before = server.connections();
  CHECK(client.get(server.url()));
  CHECK_FALSE(client.get(other.url()));  // has another CA, but the certificate is opened first
  CHECK(client.get(server.url()));
  CHECK(server.connections() == before + 1);
}

TEST_CASE("a call whose time is over during a flood ends with a timeout") {
  FaultServer server({flood(Fault::Http2EmptyData)});
  CallOptions options;
  options.timeout = 10ms;
  const auto outcome = Client::bare().send(get(server), options);
  REQUIRE_FALSE(outcome);
  CHECK((outcome.error().code == Errc::Timeout || ended_by_nghttp2(outcome)));
}

TEST_CASE("a call that is stopped during a flood ends as canceled") {
  FaultServer server({flood(Fault::Http2EmptyData)});
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  auto client = Client::bare();
  auto call = client.send_async(get(server), options);
  CHECK(server.wait_for_requests(1, 10s));
  stop.request_stop();
  const auto outcome = call.get();
  REQUIRE_FALSE(outcome);
  CHECK((outcome.error().code == Errc::Canceled || ended_by_nghttp2(outcome)));
}

TEST_CASE("all calls of a connection that is flooded end") {
  FaultServer server({flood(Fault::Http2EmptyData)});
  auto client = Client::bare();
  auto first = client.send_async(get(server));
  auto second = client.send_async(get(server));
  for (auto* call : {&first, &second}) {
    const auto outcome = call->get();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Receive);
  }
}
