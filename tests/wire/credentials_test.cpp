// Requests with credentials beside others. To get a challenge, libcurl sends the first request of a
// negotiation without its body; no other request may lose its own by that.
#include "canned_server.hpp"
#include "event_loops.hpp"
#include "files.hpp"
#include "http2_server.hpp"
#include "send_functions.hpp"
#include "wire.hpp"

#include "lib/core/curl/poller.hpp"

#include <httpretry/body/awaited_body.hpp>
#include <httpretry/body/sink.hpp>

#include <future>
#include <vector>

using namespace httpretry;

namespace {

constexpr char kChallenge[] = R"(Digest realm="r", nonce="n", qop="auth", algorithm=MD5)";

bool has_digest(const SeenRequest& seen, const char* field = "Authorization") {
  return seen.headers.get(field).value_or("").starts_with("Digest ");
}

// Responds with what it has received.
Step echo() {
  Step step;
  step.respond = [](const SeenRequest& seen) { return Step(200, seen.method + " " + seen.body); };
  return step;
}

// The same, to who answers its challenge.
Step challenging() {
  Step step;
  step.respond = [](const SeenRequest& seen) {
    return has_digest(seen) ? Step(200, seen.method + " " + seen.body)
                            : Step(401, Headers{{"WWW-Authenticate", kChallenge}}, "who?");
  };
  return step;
}

// A path that only its client knows makes a server speak HTTP/2, too.
Scenario scenario(std::vector<Step> steps, bool http2) {
  Scenario scenario(std::move(steps));
  if (http2) scenario.paths.emplace("/http2", Script({Fault::Http2NoEndStream}));
  return scenario;
}

FaultServerOptions with_tls(bool tls) {
  FaultServerOptions options;
  if (tls) options.tls = Tls::Good;
  return options;
}

ClientOptions options_for(const FaultServer& server, std::vector<MiddlewarePtr> chain = {}) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.connection.ca_file = server.ca_file();
  return options;
}

Request digest(Request request) {
  request.edit_options().credentials.emplace(Credentials::Scheme::Digest, "ann", "secret");
  return request;
}

// The body of the response, or the error.
std::string text_of(const Outcome& outcome) {
  return outcome ? outcome->body : "error: " + outcome.error().message;
}

// "secret", in ways that a request can have. The first can be sent again.
constexpr std::size_t kReplayable = 3;
std::vector<Body> bodies() {
  const auto generate = [] {
    return [given = false](std::span<char> into) mutable -> std::size_t {
      return std::exchange(given, true) ? 0 : std::string("secret").copy(into.data(), into.size());
    };
  };
  return {Body("secret"),
          Body::generated(generate),
          Body::generated(generate, 6),
          Body::once(generate(), 6),
          Body::once(generate()),
          awaited_body_once([at = 0](Call&) mutable -> Task<Result<std::string>> {
            co_return ++at == 1 ? "secret" : "";
          })};
}

}  // namespace

TEST_CASE_TEMPLATE("after a request with digest, others on the same loop keep their bodies", Way,
                   ALL_SEND_FUNCTIONS) {
  for (const bool http2 : {false, true}) {
    CAPTURE(http2);
    Scenario steps = scenario({echo()}, http2);
    steps.paths.emplace("/busy", Script({Step(503, "busy")}));
    FaultServer server(steps, with_tls(http2));
    auto options = options_for(server);
    options.blocking = Way::kBlocking;
    Client client(options);
    for (int i = 0; i < 2; ++i) {
      const auto busy = Way::send(client, digest(Request::put(server.url("/busy"), "one")), {});
      REQUIRE(busy);
      CHECK(busy->status == 503);
      for (const auto* method : {"PUT", "POST", "PATCH"}) {
        auto plain = Request(method, server.url("/"));
        plain.set_body("two");
        if (i == 1) plain.set_header("Authorization", "Bearer token");
        const auto outcome = Way::send(client, plain, {});
        CHECK(text_of(outcome) == std::string(method) + " two");
        REQUIRE(outcome);
        CHECK(outcome->http_version == (http2 ? "2" : "1.1"));
      }
      const auto basic = "http" + std::string(http2 ? "s" : "") +
                         "://ann:secret@127.0.0.1:" + std::to_string(server.port()) + "/";
      const auto outcome = Way::send(client, Request::put(basic, "three"), {});
      CHECK(text_of(outcome) == "PUT three");
    }
  }
}

TEST_CASE("requests with and without digest that are in flight together all have their bodies") {
  for (const bool http2 : {false, true}) {
    for (const bool on_event_loop : {false, true}) {
      CAPTURE(http2);
      CAPTURE(on_event_loop);
      Scenario steps = scenario({echo()}, http2);
      steps.paths.emplace("/secret", Script({challenging()}));
      FaultServer server(steps, with_tls(http2));
      auto options = options_for(server);
      if (on_event_loop && !Poller::kHasDescriptor) continue;
      const auto loop = on_event_loop ? std::make_shared<EventLoop>() : nullptr;
      if (on_event_loop) options.scheduler = loop;
      Client client(options);
      const auto all = [&](const auto& each) {
        for (int i = 0; i < 60; ++i) {
          const auto body = std::string(static_cast<std::size_t>(i), 'b') + std::to_string(i);
          each(i % 3 == 0 ? digest(Request::post(server.url("/secret"), body))
                          : Request::put(server.url("/"), body),
               (i % 3 == 0 ? "POST " : "PUT ") + body);
        }
      };
      int whole = 0;
      int ended = 0;
      if (on_event_loop) {
        all([&](Request request, std::string expected) {
          client.send_then(std::move(request), [&, expected](const Outcome& outcome) {
            ++ended;
            if (outcome && outcome->body == expected) ++whole;
          });
        });
        turn_until(*loop, [&] { return ended == 60; });
      } else {
        std::vector<std::pair<std::future<Outcome>, std::string>> sent;
        all([&](Request request, std::string expected) {
          sent.emplace_back(client.send_async(std::move(request)), std::move(expected));
        });
        for (auto& [future, expected] : sent) {
          const auto outcome = future.get();
          REQUIRE(outcome);
          if (outcome->body == expected) ++whole;
        }
      }
      CHECK(whole == 60);
    }
  }
}

TEST_CASE("a blocking call that sends with and without digest at once gets both responses") {
  for (const bool digest_last : {false, true}) {
    CAPTURE(digest_last);
    std::promise<void> plain_came;
    std::promise<void> digest_came;
    Step plain;
    plain.respond = [&](const SeenRequest& seen) {
      plain_came.set_value();
      if (!digest_last) digest_came.get_future().wait();
      return Step(200, seen.method + " " + seen.body);
    };
    Step secret;
    secret.respond = [&](const SeenRequest& seen) {
      if (!has_digest(seen)) return Step(401, Headers{{"WWW-Authenticate", kChallenge}});
      digest_came.set_value();
      if (digest_last) plain_came.get_future().wait();
      return Step(200, seen.method + " " + seen.body);
    };
    Scenario steps({plain});
    steps.paths.emplace("/secret", Script({secret}));
    FaultServer server(steps);
    const auto both = [&](Request request, Call& call, Next next) -> Task<Outcome> {
      std::vector<Task<Outcome>> tasks;
      tasks.push_back(next(digest(Request::post(server.url("/secret"), "two")), call));
      tasks.push_back(next(std::move(request), call));
      auto all = when_all(std::move(tasks));
      std::vector<Outcome> outcomes = co_await all;
      if (outcomes[0] && outcomes[1]) outcomes[0]->body += ", " + outcomes[1]->body;
      co_return outcomes[0];
    };
    const auto outcome = Client({middleware("both", both)}).put(server.url(), "one");
    CHECK(text_of(outcome) == "POST two, PUT one");
  }
}

TEST_CASE("a server that wants no digest gets the body all the same, within one attempt") {
  for (const auto* method : {"PUT", "POST"}) {
    for (const auto& body : bodies()) {
      FaultServer server(Scenario{echo()});
      auto request = digest(Request(method, server.url()));
      request.set_body(body);
      const auto outcome = Client({retry(hasty())}).send(request);
      CHECK(text_of(outcome) == std::string(method) + " secret");
      REQUIRE(outcome);
      CHECK(outcome->exchange.sent == Sent::Answered);
      CHECK(outcome->exchange.wire_sends == 2);
      CHECK(outcome->history.attempts.size() == 1);
      const auto seen = server.seen();
      REQUIRE(seen.size() == 2);
      CHECK(seen[0].body.empty());
      CHECK(seen[1].body == "secret");
    }
  }
}

TEST_CASE("of a server that wants no digest, a sink gets the response to the whole request only") {
  FaultServer server(Scenario{echo()});
  const TemporaryDirectory directory;
  auto request = digest(Request::put(server.url(), "data"));
  request.edit_options().sink = save_to(directory.file("out"));
  REQUIRE(Client::bare().send(request));
  CHECK(read_file(directory.file("out")) == "PUT data");
}

TEST_CASE("a digest request with an empty body goes out once where no challenge comes") {
  for (const auto& body : {Body(), Body(""), Body::once([](std::span<char>) { return 0; }, 0)}) {
    FaultServer server(Scenario{echo()});
    auto request = digest(Request::post(server.url(), body));
    const auto outcome = Client::bare().send(request);
    CHECK(text_of(outcome) == "POST ");
    REQUIRE(server.requests() == 1);
    CHECK(server.seen()[0].headers.get("Content-Length") == "0");
  }
}

TEST_CASE("two digest requests at once to an HTTP/2 server both arrive whole") {
  FaultServer server(scenario({challenging()}, true), with_tls(true));
  Client client(options_for(server));  // with one loop
  for (int round = 0; round < 3; ++round) {
    auto one = client.send_async(digest(Request::post(server.url(), "one")));
    auto two = client.send_async(digest(Request::post(server.url(), "two")));
    const auto first = one.get();
    const auto second = two.get();
    REQUIRE(first);
    REQUIRE(second);
    CHECK(first->body == "POST one");
    CHECK(second->body == "POST two");
    CHECK(first->http_version == "1.1");
  }
}

TEST_CASE("digest works by HTTP/2 with prior knowledge, each request on connections of its own") {
  for (const bool tls : {false, true}) {
    CAPTURE(tls);
    FaultServer server(scenario({challenging()}, true), with_tls(tls));
    Client client(options_for(server));
    std::vector<std::future<Outcome>> sent;
    for (int i = 0; i < 4; ++i) {
      auto request = digest(Request::post(server.url(), std::to_string(i)));
      request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
      sent.push_back(client.send_async(request));
    }
    for (int i = 0; i < 4; ++i) {
      const auto outcome = sent[static_cast<std::size_t>(i)].get();
      CHECK(text_of(outcome) == "POST " + std::to_string(i));
      REQUIRE(outcome);
      CHECK(outcome->http_version == "2");
    }
    CHECK(server.connections() == 8);
  }
}

TEST_CASE("by way of a proxy with digest, bodies arrive") {
  for (const bool tunnel : {false, true}) {
    for (const bool challenges : {false, true}) {
      if (!tunnel && !challenges) continue;  // see below
      for (const auto& body : bodies()) {
        CAPTURE(tunnel);
        CAPTURE(challenges);
        FaultServer server(scenario({echo()}, tunnel), with_tls(tunnel));
        Step gate;
        gate.respond = [challenges](const SeenRequest& seen) {
          if (!challenges || has_digest(seen, "Proxy-Authorization")) {
            return Step(200, seen.method + " " + seen.body);
          }
          return Step(407, Headers{{"Proxy-Authenticate", kChallenge}}, "who?");
        };
        FaultServerOptions as_proxy;
        as_proxy.proxy = true;
        FaultServer proxy(Scenario{gate}, as_proxy);
        auto options = options_for(server);
        options.connection.proxy.url = proxy.url();
        options.connection.proxy.credentials.emplace(Credentials::Scheme::Digest, "ann", "secret");
        Client client(options);

        const auto outcome = client.put(server.url(), body);

        CHECK(text_of(outcome) == "PUT secret");
        for (const auto* method : {"POST", "PUT"}) {
          auto next = Request(method, server.url());
          next.set_body("next");
          const auto second = client.send(next);
          CHECK(text_of(second) == std::string(method) + " next");
        }
      }
    }
  }
}

// libcurl takes the response to the request that asks for the challenge.
TEST_CASE(
    "where a proxy gives no challenge, a request without a tunnel fails for want of its body") {
  FaultServerOptions as_proxy;
  as_proxy.proxy = true;
  FaultServer proxy(Scenario{echo()}, as_proxy);
  ClientOptions options;
  options.middlewares = {retry(hasty())};
  options.connection.proxy.url = proxy.url();
  options.connection.proxy.credentials.emplace(Credentials::Scheme::Digest, "ann", "secret");
  Client client(options);
  for (const auto& body : bodies()) {
    const auto outcome = client.put("http://server.invalid/", body);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Send);
    CHECK(outcome.error().exchange.sent == Sent::Maybe);
  }
  CHECK(text_of(client.post("http://server.invalid/", "")) == "POST ");
}

TEST_CASE("a netrc file, a name in the URL and a header of one's own go with whole bodies") {
  const TemporaryDirectory directory;
  write_file(directory.file("netrc"), "machine 127.0.0.1 login ann password secret\n");
  FaultServer server(Scenario{echo()});
  auto options = options_for(server);
  options.connection.netrc = directory.file("netrc");
  Client client(options);
  CHECK(text_of(client.send(digest(Request::put(server.url(), "first")))) == "PUT first");
  const auto in_url = "http://bob:pw@127.0.0.1:" + std::to_string(server.port()) + "/";
  auto own = Request::post(server.url(), "own").set_header("Authorization", "Bearer t");
  auto both = digest(Request::put(server.url(), "both").set_header("Authorization", "Bearer t"));
  CHECK(text_of(client.put(server.url(), "netrc")) == "PUT netrc");
  CHECK(text_of(client.put(in_url, "url")) == "PUT url");
  CHECK(text_of(client.send(own)) == "POST own");
  CHECK(text_of(client.send(both)) == "PUT both");
  CHECK(text_of(client.send(digest(Request::put(in_url, "url")))) == "PUT url");
}

TEST_CASE("a digest request keeps its body through redirects and retries") {
  for (const bool challenges : {false, true}) {
    CAPTURE(challenges);
    Scenario steps({challenges ? challenging() : echo()});
    Step moved;
    moved.respond = [challenges](const SeenRequest& seen) {
      return !challenges || has_digest(seen) ? Step(307, Headers{{"Location", "/"}})
                                             : Step(401, Headers{{"WWW-Authenticate", kChallenge}});
    };
    steps.paths.emplace("/moved", Script({moved}));
    steps.paths.emplace("/busy", Script({{503}, {503}, challenges ? challenging() : echo()}));
    steps.paths.emplace("/stale", Script({Fault::Stale, challenges ? challenging() : echo()}));
    FaultServer server(steps);
    Client client({redirect(), retry(hasty())});
    auto sent = bodies();
    if (challenges) sent.resize(kReplayable);  // the redirect comes after the body
    for (const auto& body : sent) {
      const auto outcome = client.send(digest(Request::put(server.url("/moved"), body)));
      CHECK(text_of(outcome) == "PUT secret");
    }
    CHECK(text_of(client.send(digest(Request::put(server.url("/busy"), "busy")))) == "PUT busy");
    REQUIRE(client.send(digest(Request::get(server.url("/stale")))));
    CHECK(text_of(client.send(digest(Request::put(server.url("/stale"), "stale")))) == "PUT stale");
    CHECK(client.put(server.url("/other"), "plain")->status == (challenges ? 401 : 200));
    CHECK(server.seen().back().body == "plain");
  }
}

TEST_CASE(
    "a success for a request whose body was not sent is an error, and may have been executed") {
  Scenario steps({echo()});
  steps.paths.emplace("/see", Script({Step(303, Headers{{"Location", "/"}})}));
  FaultServer server(steps);
  for (const auto& body : bodies()) {
    const auto outcome =
        Client({redirect(), retry(hasty())}).send(digest(Request::post(server.url("/see"), body)));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Send);
    CHECK(outcome.error().exchange.sent == Sent::Maybe);
    CHECK(outcome.error().status == 303);
    CHECK(outcome.error().message.find("a request that was sent without its body") !=
          std::string::npos);
    CHECK(outcome.error().history.attempts.size() == 1);
  }
}

TEST_CASE("without its body, a request gets each failure of the server as its response") {
  int status = 0;
  Step step;
  step.respond = [&status](const SeenRequest&) { return Step(status); };
  FaultServer server(Scenario{step});
  const auto result = [&](const char* method) {
    auto request = Request(method, server.url());
    request.set_body("data");
    const auto outcome = Client::bare().send(digest(request));
    return outcome ? outcome->status : outcome.error().code == Errc::Send ? 0 : -1;
  };
  for (status = 300; status <= 308; ++status) {
    CAPTURE(status);
    // 0: the error that says that the body was left out.
    CHECK(result("POST") == (status >= 301 && status <= 303 ? 0 : status));
    CHECK(result("PUT") == (status == 303 ? 0 : status));
  }
  for (const int failure : {400, 404, 499, 500, 503}) {
    status = failure;
    CHECK(result("POST") == status);
  }
}

TEST_CASE(
    "where the body cannot follow the request that asks for a challenge, it may have been "
    "executed") {
  FaultServer server(Scenario{Step(200, "ok"), Fault::Close});
  const auto outcome = Client::bare().send(digest(Request::put(server.url(), "data")));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().exchange.sent == Sent::Maybe);
  CHECK(outcome.error().exchange.wire_sends == 2);
}

TEST_CASE("digest teaches a client nothing about the versions of HTTP that a server speaks") {
  FaultServer server(scenario({echo()}, true), with_tls(true));
  Client client(options_for(server));
  CHECK(client.send_async(digest(Request::get(server.url()))).get()->http_version == "1.1");
  CHECK(client.send_async(Request::get(server.url())).get()->http_version == "2");
  CHECK(client.send_async(digest(Request::get(server.url()))).get()->http_version == "1.1");
  CHECK(client.send_async(Request::get(server.url())).get()->http_version == "2");
  CHECK(server.connections() == 2);
}

namespace {

Request signed_put(const std::string& url, std::size_t size) {
  auto request = Request::put(url, std::string(size, 'b'));
  Credentials key(Credentials::Scheme::AwsSigV4, "KEY", "secret");
  key.signer = "aws:amz:eu-central-1:s3";
  request.edit_options().credentials = key;
  return request;
}

}  // namespace

TEST_CASE("a request that is signed asks before a body of a megabyte, and signs the question") {
  constexpr std::size_t kFrom = 1 << 20;
  for (const std::size_t size : {kFrom - 1, kFrom}) {
    CAPTURE(size);
    FaultServer server;
    REQUIRE(Client::bare().send(signed_put(server.url(), size)));
    const auto seen = server.seen()[0];
    CHECK(seen.body_size == size);
    CHECK(seen.headers.contains("Expect") == (size == kFrom));
    const std::string signed_with(seen.headers.get("Authorization").value_or(""));
    CHECK((signed_with.find("expect;") != std::string::npos) == (size == kFrom));
  }
}

// libcurl 7.88 cannot sign such a request without the question.
TEST_CASE("a 417 to a large request that is signed is the response") {
  for (const bool wanted : {false, true}) {
    CAPTURE(wanted);
    const CannedServer server({"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"});
    auto request = signed_put(server.url(), 2 << 20);
    if (wanted) request.edit_options().expect_continue_from = 1;
    request.edit_options().expect_timeout = std::chrono::seconds(10);
    const auto outcome = Client::bare().send(request);
    REQUIRE_MESSAGE(outcome, outcome.error().message);
    CHECK(outcome->status == 417);
    CHECK(outcome->exchange.wire_sends == (wanted ? 2 : 1));
    CHECK(server.requests() == (wanted ? 2 : 1));
  }
}
