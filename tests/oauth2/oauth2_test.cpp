// Tokens of an OAuth 2.0 server: when they are fetched, how, and what is said if there are none.
#include "tests/client/conversation.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/log/log.hpp>
#include <httpretry/oauth2/oauth2.hpp>
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <array>
#include <mutex>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr const char* kTokenUrl = "http://login.test/token";
constexpr const char* kSecret = "s3cr3t/&é";

OAuth2ClientCredentials credentials() { return {kTokenUrl, "my app", kSecret, "read write"}; }

std::string token_json(const std::string& token, const std::string& more) {
  return R"({"access_token": ")" + token + R"(", "token_type": "bearer")" + more + "}";
}

// An API and a token server in virtual time. The token server gives "t1", "t2", ... The API accepts
// `valid`, or any token if that is empty.
struct World {
  Conversation api;
  Conversation tokens;
  std::string valid;
  int issued = 0;
  Duration takes = 0ms;
  std::string more = R"(, "expires_in": 100)";

  World() {
    tokens.clock = api.clock;
    api.network->say([this](const Request& request, int) -> Outcome {
      const auto sent = request.headers().get("Authorization").value_or("");
      return Response(
          sent.starts_with("Bearer t") && (valid.empty() || sent == "Bearer " + valid) ? 200 : 401);
    });
  }

  Client client(const OAuth2ClientCredentials& its = credentials()) {
    tokens.network->say(
        [this](const Request&, int) -> Outcome {
          return Response(200, token_json("t" + std::to_string(++issued), more));
        },
        takes);
    return client_of_script(its);
  }
  // The same, but the token server says only what the test has scripted.
  Client client_of_script(const OAuth2ClientCredentials& its = credentials()) {
    ClientOptions token_client;
    token_client.scheduler = tokens.clock;
    token_client.transport = tokens.network;
    token_client.observers = {tokens.heard};
    token_client.random = fixed_random(0.5);
    auto chain = default_chain();
    chain.insert(chain.begin(), oauth2_client_credentials(its, token_client));
    return api.client(chain);
  }
};

std::string body_of(const Request& request) { return *request.body().bytes(); }

}  // namespace

TEST_CASE("a token is requested as RFC 6749 says") {
  World world;
  Client client = world.client();
  CHECK(client.get("http://api.test/")->status == 200);
  const auto request = world.tokens.sent(0);
  CHECK(request.method() == "POST");
  CHECK(request.url() == kTokenUrl);
  CHECK(request.headers().get("Content-Type") == "application/x-www-form-urlencoded");
  CHECK(request.headers().get("Accept") == "application/json");
  CHECK(body_of(request) == "grant_type=client_credentials&scope=read%20write");
  CHECK(request.options().max_body == std::uint64_t{1'048'576});
  const auto& login = request.options().credentials;
  REQUIRE(login);
  CHECK(login->scheme == Credentials::Scheme::Basic);
  CHECK(login->user == "my%20app");
  CHECK(login->password == "s3cr3t%2F%26%C3%A9");
  CHECK(world.api.sent(0).headers().get("Authorization") == "Bearer t1");
}

TEST_CASE("id and secret in the body, and further parameters") {
  World world;
  auto its = credentials();
  its.scope.clear();
  its.authentication = OAuth2ClientCredentials::Authentication::Body;
  its.parameters = {{"audience", "https://api.test/"}, {"resource", "a b"}};
  Client client = world.client(its);
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK_FALSE(world.tokens.sent(0).options().credentials);
  CHECK(body_of(world.tokens.sent(0)) ==
        "grant_type=client_credentials&audience=https%3A%2F%2Fapi.test%2F&resource=a%20b"
        "&client_id=my%20app&client_secret=s3cr3t%2F%26%C3%A9");
}

TEST_CASE("calls at the same time share one token request") {
  World world;
  world.takes = 10ms;
  Client client = world.client();
  std::vector<std::future<Outcome>> outcomes;
  for (int i = 0; i < 20; ++i) {
    outcomes.push_back(client.send_async(Request::get("http://api.test/")));
  }
  world.api.clock->advance(10ms);
  for (auto& outcome : outcomes) CHECK(outcome.get()->status == 200);
  CHECK(world.tokens.sends() == 1);
}

TEST_CASE("a token is renewed before it expires") {
  // Each lifetime, and when the token is renewed. A lifetime that is no time means "until a 401".
  const std::array<std::pair<const char*, Duration>, 9> cases{{
      {R"(, "expires_in": 100)", 90s},
      {R"(, "expires_in": 3600)", 3570s},
      {R"(, "expires_in": "100")", 90s},
      {R"(, "expires_in": "100.5")", 90s},
      {R"(, "expires_in": 100.0)", 90s},
      {R"(, "expires_in": 1e300)", 24h * 365},
      {R"(, "expires_in": "soon")", kForever},
      {R"(, "expires_in": null)", kForever},
      {"", kForever},
  }};
  for (const auto& each : cases) {
    const auto lifetime = each.first;
    const auto renewed_after = each.second;
    CAPTURE(lifetime);
    World world;
    world.more = lifetime;
    Client client = world.client();
    CHECK(client.get("http://api.test/")->status == 200);
    if (renewed_after >= 24h * 365) {
      world.api.clock->advance(24h * 365);
      CHECK(client.get("http://api.test/")->status == 200);
      CHECK(world.issued == 1);
      continue;
    }
    world.api.clock->advance(renewed_after - 1ms);
    CHECK(client.get("http://api.test/")->status == 200);
    CHECK(world.issued == 1);
    world.api.clock->advance(1ms);
    CHECK(client.get("http://api.test/")->status == 200);
    CHECK(world.issued == 2);
  }
}

TEST_CASE("a token that is already expired serves the calls that waited for it") {
  for (const auto* lifetime : {R"(, "expires_in": 0)", R"(, "expires_in": -5)"}) {
    CAPTURE(lifetime);
    World world;
    world.more = lifetime;
    Client client = world.client();
    CHECK(client.get("http://api.test/")->status == 200);
    CHECK(client.get("http://api.test/")->status == 200);
    CHECK(world.issued == 2);
  }
}

TEST_CASE("after a 401 the token is renewed and the request resent, once") {
  World world;
  Client client = world.client();
  CHECK(client.get("http://api.test/")->status == 200);
  world.valid = "t2";  // the first is revoked
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(world.issued == 2);
  CHECK(world.api.sends() == 3);
  world.valid = "none";
  CHECK(client.get("http://api.test/")->status == 401);
  CHECK(world.issued == 3);
  CHECK(world.api.sends() == 5);
}

TEST_CASE("token requests are retried by their own policy, and are no attempts of the call") {
  World world;
  world.tokens.network->say(Response(503)).say(error_of(Errc::Connect));
  Client client = world.client();
  const auto outcome = client.get("http://api.test/");
  CHECK(outcome->status == 200);
  CHECK(outcome->history.attempts.size() == 1);
  CHECK(world.tokens.sends() == 3);
}

TEST_CASE("the token request ends with its call") {
  World world;
  world.takes = 10s;
  Client client = world.client();
  CallOptions options;
  options.timeout = 1s;
  const auto began = world.api.clock->now();
  const auto outcome = client.get("http://api.test/", options);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  CHECK(world.api.clock->now() - began <= 1s);

  std::stop_source stop;
  options = CallOptions().with_stop(stop.get_token());
  auto canceled = client.send_async(Request::get("http://api.test/"), options);
  world.api.clock->advance(1s);
  stop.request_stop();
  world.api.clock->advance(0s);
  CHECK(canceled.get().error().code == Errc::Canceled);
  CHECK(world.api.sends() == 0);
}

TEST_CASE("what is said without a token names the token URL and the reason") {
  struct Case {
    Outcome response;
    Errc code;
    const char* message;  // after "no bearer token: "
    bool permanent = false;
  };
  const std::string html = "<p>" + std::string(kSecret) + "</p>";
  const std::array<Case, 14> cases{{
      {Response(401, R"({"error": "invalid_client", "error_description": "unknown client"})"),
       Errc::Status, "http://login.test/token: invalid_client: unknown client (status 401)", true},
      {Response(400, R"({"error": "invalid_scope"})"), Errc::Status,
       "http://login.test/token: invalid_scope (status 400)", true},
      {Response(200, R"({"error": "bad_verification_code"})"), Errc::Status,
       "http://login.test/token: bad_verification_code (status 200)"},
      {Response(400,
                R"({"error": "x", "error_description": "the secret s3cr3t/&é is\u0007wrong"})"),
       Errc::Status, "http://login.test/token: x: the secret REDACTED is\\u0007wrong (status 400)",
       true},
      {Response(400, R"({"error": "s3cr3t/&é s3cr3t/&é", "error_description": ")"
                     R"(s3cr3t%2F%26%C3%A9 bXklMjBhcHA6czNjcjN0JTJGJTI2JUMzJUE5 s3cr3t/&é"})"),
       Errc::Status,
       "http://login.test/token: REDACTED REDACTED: REDACTED REDACTED REDACTED (status 400)", true},
      {Response(304), Errc::Status, "http://login.test/token: the status is 304"},
      {Response(403, html), Errc::Status,
       "http://login.test/token: failed after 1 attempt in 0 s: 403 (not_retryable)", true},
      {Response(503, html), Errc::Status,
       "http://login.test/token: gave up after 5 attempts in 3.38 s: 503 each time "
       "(attempts_exhausted)"},
      {Response(200, html), Errc::Protocol,
       "http://login.test/token: the response has no value at \"/access_token\": the body is not "
       "JSON"},
      {Response(200, "{}"), Errc::Protocol,
       "http://login.test/token: the response has no value at \"/access_token\": there is no such "
       "value"},
      {Response(200, R"({"access_token": 7})"), Errc::Protocol,
       "http://login.test/token: its \"access_token\" is not a string"},
      {Response(200, R"({"access_token": "t1", "token_type": "mac"})"), Errc::Protocol,
       "http://login.test/token: the token has the type \"mac\", not Bearer"},
      {Response(200, R"({"access_token": "a\nb"})"), Errc::Protocol,
       "http://login.test/token: its \"access_token\" contains a control byte"},
      {error_of(Errc::Connect), Errc::Connect, "http://login.test/token: scripted"},
  }};
  for (const auto& each : cases) {
    CAPTURE(each.message);
    World world;
    world.tokens.network->say(each.response);
    Client client = world.client_of_script();
    const auto request = Request::post("http://api.test/", std::string("order"));
    const auto outcome = client.send(request);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().message == "no bearer token: " + std::string(each.message));
    CHECK(outcome.error().code == each.code);
    CHECK(outcome.error().permanent == each.permanent);
    CHECK_FALSE(outcome.error().maybe_sent());
    CHECK(outcome.error().history.attempts.empty());
    CHECK(report_json(request, outcome).find("s3cr3t") == std::string::npos);
    CHECK(world.api.sends() == 0);
  }
}

TEST_CASE("the transport's message names the token URL only once") {
  World world;
  world.tokens.network->say(Error(Errc::Connect, "POST http://login.test/token: refused"));
  Client client = world.client_of_script();
  const auto outcome = client.get("http://api.test/");
  CHECK(outcome.error().message == "no bearer token: POST http://login.test/token: refused");
}

TEST_CASE("after a failure the next call fetches again") {
  World world;
  world.tokens.network->say(Response(400, R"({"error": "invalid_client"})"));
  Client client = world.client();
  CHECK_FALSE(client.get("http://api.test/"));
  CHECK(client.get("http://api.test/")->status == 200);
}

TEST_CASE("the token and the secret go to their own origins only") {
  World world;
  world.api.network = std::make_shared<ScriptedTransport>();
  world.api.network->say(redirect_to(307, "http://other.test/")).say(Response(200));
  world.tokens.network->say(redirect_to(307, "http://other.test/token"));
  auto its = credentials();
  its.authentication = OAuth2ClientCredentials::Authentication::Body;
  Client refused = world.client_of_script(its);
  CHECK_FALSE(refused.get("http://api.test/"));
  CHECK(world.tokens.sends() == 1);

  World other;
  other.api.network = world.api.network;
  Client client = other.client();
  CHECK(client.get("http://api.test/")->status == 200);
  CHECK(other.api.sent(0).headers().contains("Authorization"));
  CHECK_FALSE(other.api.sent(1).headers().contains("Authorization"));
}

TEST_CASE("only the listed origins receive a token") {
  World world;
  auto its = credentials();
  its.origins = {"https://api.test", "HTTP://API.test:80/"};
  Client client = world.client(its);
  CHECK(client.get("http://other.test/")->status == 401);
  CHECK(client.get("http://api.test:8080/")->status == 401);
  CHECK(world.issued == 0);
  CHECK(client.get("http://api.test/items")->status == 200);
  CHECK(client.get("https://api.test/items")->status == 200);
  CHECK(world.issued == 1);
}

TEST_CASE("a request with its own Authorization needs no token") {
  World world;
  Client client = world.client();
  const auto request = Request::get("http://api.test/").header("Authorization", "Bearer t9");
  CHECK(client.send(request)->status == 200);
  CHECK(world.issued == 0);
}

TEST_CASE("with real servers, no log, trace or archive has the secret or the token") {
  std::mutex mutex;
  std::string said;
  const auto record = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    said.append(line).append("\n");
  };
  Har har;
  TracesOptions traces_options;
  traces_options.sink = [&](const std::shared_ptr<const Span>& span) {
    for (const auto& attribute : span->attributes()) {
      if (const auto* text = std::get_if<std::string>(&attribute.value)) record(*text);
    }
  };
  const auto heard = std::make_shared<RecordingObserver>();
  Scenario scenario;
  scenario.paths["/token"] = Script({{503}, {200, token_json("t0k3n", R"(, "expires_in": 60)")}});
  scenario.paths["/items"] = Script({{503}, {200, "items"}});
  FaultServer server(scenario);
  LogOptions log_options;
  log_options.headers = true;
  log_options.to = [&](LogLevel, std::string_view line) { record(line); };
  ClientOptions token_client;
  token_client.observers = {traces(traces_options), har.observer(), heard,
                            json_log([&](std::string_view line) { record(line); })};
  token_client.attempt_middlewares = {log(log_options)};
  auto options = token_client;
  options.call_middlewares = {
      oauth2_client_credentials({server.url("/token"), "app", "s3cr3t"}, token_client)};
  Client client(options);
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto request = Request::get(server.url("/items"));
      const auto outcome = i % 2 == 0 ? client.send(request) : client.send_async(request).get();
      if (outcome && outcome->status == 200) ++good;
      record(report_json(request, outcome));
      record(describe(outcome));
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(good == 8);
  int token_requests = 0;
  for (const auto& seen : server.seen()) {
    if (seen.path == "/token") ++token_requests;
    CHECK(seen.headers.get("Authorization") ==
          (seen.path == "/token" ? "Basic YXBwOnMzY3IzdA==" : "Bearer t0k3n"));
  }
  CHECK(token_requests == 2);
  for (const auto& line : heard->lines()) record(line);
  record(har.text());
  for (const auto* hidden : {"s3cr3t", "t0k3n", "YXBwOnMzY3IzdA"}) {
    CAPTURE(hidden);
    CHECK(said.find(hidden) == std::string::npos);
  }
  CHECK(said.find("/token") != std::string::npos);
}

TEST_CASE("credentials that cannot be used are refused at once") {
  const auto message = [](const OAuth2ClientCredentials& its) -> std::string {
    try {
      static_cast<void>(oauth2_client_credentials(its));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(message(credentials()) == "accepted");
  CHECK(message({}).starts_with("OAuth2ClientCredentials::token_url is not a usable URL"));
  CHECK(message({"http://me:s3cr3t@login.test/", "id", "x"}) ==
        "OAuth2ClientCredentials::token_url has a name or a password; use \"id\" and \"secret\"");
  CHECK(message({kTokenUrl, "", "x"}) == "OAuth2ClientCredentials::id is empty");
  CHECK(message({kTokenUrl, "id", ""}) == "OAuth2ClientCredentials::secret is empty");
  for (const auto* origin : {"api.test", "https://api.test/v1", "https://a@api.test/", "*"}) {
    CAPTURE(origin);
    auto its = credentials();
    its.origins = {origin};
    CHECK(message(its) ==
          "OAuth2ClientCredentials::origins has an entry that is not like https://api.example.com");
  }
}

TEST_CASE("credentials are read from JSON") {
  const auto read = parse_oauth2_client_credentials(
      R"({"token_url": "http://login.test/token", "id": "app", "secret": "s", "scope": "a b",
          "authentication": "body", "parameters": {"audience": "x"}, "origins": ["http://h"]})",
      "f");
  REQUIRE(read);
  CHECK(read->token_url == kTokenUrl);
  CHECK(read->id == "app");
  CHECK(read->secret == "s");
  CHECK(read->scope == "a b");
  CHECK(read->authentication == OAuth2ClientCredentials::Authentication::Body);
  CHECK(read->parameters == decltype(read->parameters){{"audience", "x"}});
  CHECK(read->origins == std::vector<std::string>{"http://h"});
}

TEST_CASE("mistakes in the JSON are shown with their position, and without the secret") {
  const std::array<std::pair<const char*, const char*>, 14> cases{{
      {"", "f:1:1: this is not valid JSON"},
      {"[]", "f:1:1: expected an object, found an array"},
      {R"({"secret": s3cr3t})", "f:1:12: this is not valid JSON"},
      {R"({"secret": 5 s3cr3t})", "f:1:14: this is not valid JSON"},
      {R"({"token_url": "http://h/", "id": "app"})", "f:1:1: missing key \"secret\""},
      {R"({"token_url": "http://h/", "id": "app", "secret": 5431})",
       "f:1:51: /secret: expected a string"},
      {R"({"token_url": "http://h/", "id": "app", "secret": ["s3cr3t"]})",
       "f:1:51: /secret: expected a string"},
      {R"({"token_url": "http://h/", "id": "app", "secret": ""})", "f:1:51: /secret: it is empty"},
      {R"({"token_url": "http://h/", "id": "app", "secret": "s3cr3t", "scopes": "a"})",
       "f:1:61: /scopes: unknown key; did you mean \"scope\"?"},
      {R"({"token_url": "http://h/", "id": "app", "secret": "x", "authentication": "head"})",
       "f:1:74: /authentication: \"head\" is not one of basic, body"},
      {R"({"token_url": "http://h/", "id": "app", "secret": "x", "parameters": {"a": 5431}})",
       "f:1:76: /parameters/a: expected a string"},
      {R"({"token_url": "http://h/", "id": "app", "secret": "x", "origins": ["h"]})",
       "f:1:67: /origins: it has an entry that is not like https://api.example.com"},
      {R"({"token_url": "http://h/", "id": "app", "secret": "x", "origins": []})",
       "f:1:67: /origins: it is empty; leave it out to allow every origin"},
      {R"({"token_url": "login", "id": "app", "secret": "s3cr3t"})",
       "f:1:15: /token_url: it is not a usable URL: it must begin with http:// or "
       "https://"},
  }};
  for (const auto& each : cases) {
    CAPTURE(each.first);
    const auto read = parse_oauth2_client_credentials(each.first, "f");
    REQUIRE_FALSE(read);
    CHECK(read.error().message == each.second);
  }
}
