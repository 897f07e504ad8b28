// Hedges on real sockets: what is sent, and on which connections.
#include "http2_server.hpp"
#include "wire.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/guard/hedge.hpp>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// A hedge soon, whatever it costs; but not while a busy machine makes a connection.
RetryPolicy prompt() {
  auto policy = hasty();
  policy.hedge.emplace();
  policy.hedge->after = 100ms;
  policy.hedge->budget.reset();
  policy.attempt_timeout = 1min;
  return policy;
}

ClientOptions hedging(const std::string& ca_file = {}) {
  ClientOptions options;
  options.connection.ca_file = ca_file;
  options.middlewares = {redirect(), retry(prompt()), hedge()};
  return options;
}

// For a request that must not be hedged, however busy the machine is.
CallOptions alone() {
  CallOptions options;
  options.policy = std::make_shared<RetryPolicy>(hasty());
  return options;
}

std::vector<Race> races(const Outcome& outcome) {
  std::vector<Race> races;
  for (const auto& attempt : history_of(outcome).attempts) races.push_back(attempt.race);
  return races;
}

Scenario first_hangs() {
  Scenario scenario;
  scenario.steps = {Step(Fault::Hang), Step(200, "quick")};
  return scenario;
}

}  // namespace

TEST_CASE("a send without a response is raced by a second one, and loses its connection") {
  FaultServerOptions how;
  SUBCASE("plain") {}
  SUBCASE("over TLS") { how.tls = Tls::Good; }
  FaultServer server(first_hangs(), how);
  Client client(hedging(server.ca_file()));
  const auto outcome = client.get(server.url());
  REQUIRE(outcome);
  CHECK(outcome->body == "quick");
  CHECK(races(outcome) == std::vector{Race::Lost, Race::Won});
  CHECK(outcome->history.attempts[0].sent == Sent::Maybe);
  CHECK(outcome->history.attempts[0].wire_sends == 1);
  CHECK(wire_sends(outcome) == 2);
  CHECK(server.requests() == 2);
  CHECK(server.connections() == 2);
  // The winner's connection is used again, the loser's is gone.
  CHECK(client.send(Request::get(server.url()), alone())->body == "quick");
  CHECK(server.connections() == 2);
}

TEST_CASE("only the response that is used reaches the sink, and the other is not read") {
  Step slow(200, std::string(1 << 20, 's'));
  slow.delay = 10s;
  Scenario scenario;
  scenario.steps = {slow, Step(200, "quick")};
  FaultServer server(scenario);
  std::string received;
  auto request = Request::get(server.url());
  request.edit_options().sink = pass_to([&](std::string_view bytes) {
    received += bytes;
    return true;
  });
  const auto outcome = Client(hedging()).send(std::move(request));
  REQUIRE(outcome);
  CHECK(received == "quick");
  CHECK(outcome->delivered == 5);
}

TEST_CASE("a call that is stopped leaves none of its sends behind") {
  Scenario scenario;
  scenario.steps = {Step(Fault::Hang)};
  FaultServer server(scenario);
  Client client(hedging());
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  auto call = client.send_async(Request::get(server.url()), options);
  REQUIRE(server.wait_for_requests(2, 10s));
  stop.request_stop();
  const auto outcome = call.get();
  CHECK(outcome.error().code == Errc::Canceled);
  CHECK(wire_sends(outcome) == 2);
  CHECK(server.requests() == 2);
}

TEST_CASE("over HTTP/2 a hedge has a connection of its own, and the loser's stays") {
  const FrameServer server([](const std::string& stream, int number) {
    // The first is a request without a hedge, which shows that the server speaks HTTP/2.
    const bool hangs = number == 2;
    return hangs ? FrameServer::Pieces{}
                 : FrameServer::Pieces{headers(stream, k204, kEndStream | kEndHeaders)};
  });
  Client client(hedging(server.ca_file()));
  const auto first = client.send(Request::get(server.url()), alone());
  REQUIRE(first);
  CHECK(first->http_version == "2");
  CHECK(server.connections() == 1);
  const auto outcome = client.get(server.url());
  REQUIRE(outcome);
  CHECK(outcome->status == 204);
  CHECK(races(outcome) == std::vector{Race::Lost, Race::Won});
  CHECK(server.streams() == 3);
  CHECK(server.connections() == 2);
  // Its stream was reset, which leaves the connection whole.
  CHECK(client.send(Request::get(server.url()), alone())->status == 204);
  CHECK(server.streams() == 4);
  CHECK(server.connections() == 2);
}
