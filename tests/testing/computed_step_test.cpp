// Steps that a function makes from the request.
#include <httpretry/client/client.hpp>
#include <httpretry/testing/testing.hpp>
#include <tests/testing/raw_client.hpp>

#include <stdexcept>
#include <string>

using namespace httpretry;
using namespace raw;

namespace {

Step computed_by(std::function<Step(const SeenRequest&)> respond) {
  Step step;
  step.respond = std::move(respond);
  return step;
}

Step echo(const SeenRequest& request) {
  Headers headers;
  headers.add("X-Version", request.http_version);
  return Step(201, headers, request.method + " " + request.path + " " + request.body);
}

}  // namespace

TEST_CASE("a step is computed from the request, its path and its body") {
  const FaultServer server(Scenario({computed_by(echo)}));
  auto client = Client::bare();
  for (const char* text : {"one", "other"}) {
    const auto outcome = client.put(server.url("/a?b"), text);
    REQUIRE(outcome);
    CHECK(outcome->status == 201);
    CHECK(outcome->headers.get("X-Version") == "1.1");
    CHECK(outcome->body == std::string("PUT /a ") + text);
  }
  CHECK(server.seen()[1].step == 0U);
  CHECK(server.connections() == 1);
}

TEST_CASE("a computed step takes its turn among the others, and has faults") {
  const auto refuse_posts = [](const SeenRequest& request) {
    return request.method == "POST" ? Step(Fault::Close) : Step(200, "computed");
  };
  const FaultServer server({503, computed_by(refuse_posts)});
  CHECK(status_of(RawClient(server.port()).ask(get())) == 503);
  CHECK(body_of(RawClient(server.port()).ask(get())) == "computed");
  RawClient poster(server.port());
  CHECK(poster.ask("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx").empty());
  CHECK(poster.end() == End::Fin);
}

TEST_CASE("a step is computed over HTTP/2 too") {
  Scenario scenario({computed_by(echo)});
  scenario.paths.emplace("/http2", Script({Fault::Http2NoEndStream}));
  const FaultServer server(scenario);
  auto request = Request::put(server.url("/x"), "text");
  request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  CHECK(outcome->headers.get("X-Version") == "2");
  CHECK(outcome->body == "PUT /x text");
}

TEST_CASE("a function that fails gives a 500 that says why") {
  const FaultServer server(
      {computed_by([](const SeenRequest&) -> Step { throw std::runtime_error("no such user"); }),
       computed_by([](const SeenRequest&) { return Step(99); }),
       computed_by([](const SeenRequest&) { return Step(Fault::Resolve); })});
  RawClient client(server.port());
  for (const char* why : {"no such user", "the status must be 200 to 999", "cannot play"}) {
    const auto response = client.ask(get());
    CHECK(status_of(response) == 500);
    CHECK(body_of(response).find(why) != std::string::npos);
  }
}
