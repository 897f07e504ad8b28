// Who gets to see what is secret: certificates, credentials, tokens.
#include "files.hpp"
#include "tls_server.hpp"
#include "wire.hpp"

using namespace httpretry;

namespace {

ClientOptions trusting(const TlsServer& server, std::vector<MiddlewarePtr> chain = {}) {
  ClientOptions options;
  options.connection.ca_file = server.ca_file();
  options.middlewares = std::move(chain);
  return options;
}

// The file's entry is for every server on this machine.
std::string netrc_in(const TemporaryDirectory& directory) {
  write_file(directory.file("netrc"), "machine 127.0.0.1 login ann password secret\n");
  return directory.file("netrc");
}

constexpr const char* kAnn = "Basic YW5uOnNlY3JldA==";

FaultServer redirecting(const std::string& to) {
  return FaultServer(Scenario{{307, {{"Location", to}}, ""}});
}

}  // namespace

TEST_CASE("a client certificate is shown to a server that asks, from PEM files and from PKCS #12") {
  const TemporaryDirectory directory;
  make_client_certificate(directory.file(""), "ann", "opensesame");
  const TlsServer server;
  auto options = trusting(server);
  CHECK(Client(options).get(server.url())->body == "nobody");

  auto& certificate = options.connection.client_certificate;
  certificate.file = directory.file("cert.pem");
  certificate.key_file = directory.file("key.pem");
  certificate.key_password = "opensesame";
  CHECK(Client(options).get(server.url())->body == "ann");

  certificate.file = directory.file("client.p12");
  certificate.key_file.clear();
  CHECK(Client(options).get(server.url())->body == "ann");

  certificate.key_password = "wrong";
  const auto outcome = Client(options).get(server.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Tls);
  CHECK(outcome.error().permanent);
  CHECK(outcome.error().curl_code == 58);
}

TEST_CASE("a client certificate is not shown where a redirect leads elsewhere") {
  const TemporaryDirectory directory;
  make_client_certificate(directory.file(""), "ann", "p");
  const TlsServer stranger;
  const TlsServer server(TLS1_3_VERSION, stranger.url());
  auto options = trusting(server, {redirect()});
  options.connection.verify_tls = false;  // two authorities of one name
  options.connection.client_certificate.file = directory.file("client.p12");
  options.connection.client_certificate.key_password = "p";
  Client client(options);

  for (int i = 0; i < 3; ++i) {
    CHECK(client.get(server.url())->body == "nobody");
    CHECK(client.get(stranger.url())->body == "ann");  // and where it is asked for by name
  }
}

TEST_CASE("a server with another key than the pinned one is refused") {
  const TlsServer server;
  auto options = trusting(server);
  options.connection.pinned_keys = server.pin();
  CHECK(Client(options).get(server.url()));

  options.connection.pinned_keys = TlsServer().pin();
  const auto outcome = Client(options).get(server.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Tls);
  CHECK(outcome.error().curl_code == 90);
  CHECK(outcome.error().permanent);
  CHECK(outcome.error().exchange.sent == Sent::Never);

  options.connection.pinned_keys += ";" + server.pin();
  CHECK(Client(options).get(server.url()));
}

TEST_CASE("an older TLS than allowed is refused") {
  const TlsServer old(TLS1_2_VERSION);
  auto options = trusting(old);
  CHECK(Client(options).get(old.url()));
  options.connection.min_tls = TlsVersion::Tls13;
  const auto outcome = Client(options).get(old.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Tls);
  CHECK(outcome.error().permanent);
  CHECK(history_of(outcome).attempts.size() == 1);
}

TEST_CASE("who asks hears what TLS negotiated with the server") {
  for (const auto most : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const auto version : {HttpVersion::Any, HttpVersion::Http1}) {
      const TlsServer server(most);
      std::string heard;
      auto request = Request::get(server.url());
      request.edit_options().http_version = version;
      request.edit_options().on_connection = [&](const ConnectionInfo& connection) {
        heard = connection.tls;
      };
      REQUIRE(Client(trusting(server)).send(request));
      CAPTURE(heard);
      CHECK(heard.starts_with(most == TLS1_2_VERSION ? "TLSv1.2 / ECDHE-" : "TLSv1.3 / TLS_"));
      CHECK(heard.find_first_of("\r\n") == std::string::npos);
    }
  }
}

TEST_CASE("a netrc is read on request, for the first origin only, and not over credentials") {
  const TemporaryDirectory directory;
  FaultServer stranger;
  FaultServer server(Scenario{{200}, {307, {{"Location", stranger.url()}}, ""}});
  ClientOptions options;
  options.middlewares = {redirect()};
  CHECK(Client(options).get(server.url()));
  CHECK_FALSE(server.seen()[0].headers.contains("Authorization"));

  options.connection.netrc = netrc_in(directory);
  Client client(options);
  CHECK(client.get(server.url()));
  CHECK(server.seen()[1].headers.get("Authorization") == kAnn);
  CHECK_FALSE(stranger.seen()[0].headers.contains("Authorization"));

  auto request = Request::get(stranger.url());
  request.edit_options().credentials.emplace(Credentials::Scheme::Basic, "bob", "b");
  CHECK(client.send(request));
  CHECK(stranger.seen()[1].headers.get("Authorization") == "Basic Ym9iOmI=");
  // And nothing of it stays on the handle.
  auto plain = Client::bare().get(stranger.url());
  CHECK_FALSE(stranger.seen()[2].headers.contains("Authorization"));
}

TEST_CASE("the URL of a response has no password") {
  FaultServer server;
  const auto host = "127.0.0.1:" + std::to_string(server.port());
  const auto outcome = Client::bare().get("http://bob:secret@" + host + "/a?b=c");
  REQUIRE(outcome);
  CHECK(server.seen()[0].headers.contains("Authorization"));
  CHECK(outcome->url == server.url("/a?b=c"));
}

TEST_CASE("a netrc that cannot be read is said, not passed over") {
  FaultServer server;
  ClientOptions options;
  options.middlewares = {};
  options.connection.netrc = "/nowhere/netrc";
  const auto outcome = Client(options).get(server.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidRequest);
  CHECK(outcome.error().message.find("/nowhere/netrc: No such file") != std::string::npos);
  CHECK(server.requests() == 0);
}

TEST_CASE("credentials that would break a header are refused") {
  FaultServer server;
  for (const auto& credentials :
       {Credentials(Credentials::Scheme::Digest, "a\r\nX-Evil: 1", "p"),
        Credentials(Credentials::Scheme::Basic, "a", std::string("p\0q", 3)),
        Credentials(Credentials::Scheme::Basic, "a:b", "p")}) {
    auto request = Request::get(server.url());
    request.edit_options().credentials = credentials;
    const auto outcome = Client::bare().send(request);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
    CHECK(outcome.error().message.find("X-Evil") == std::string::npos);
  }
  CHECK(server.requests() == 0);
}

TEST_CASE("a token is fetched from its own server, and anew when it is no longer good") {
  FaultServer tokens(Scenario{{200, "old"}, {200, "new"}});
  FaultServer server(Scenario{{200, "first"}, {401, "expired"}, {200, "third"}});
  Client authority{ClientOptions()};
  const auto fetch = [&](Call&) -> Task<Result<BearerToken>> {
    Outcome answer = co_await authority.co_send(Request::get(tokens.url()));
    if (!answer) co_return answer.error();
    co_return BearerToken(answer->body);
  };
  Client client({retry(hasty()), bearer(fetch)});

  CHECK(client.get(server.url())->body == "first");
  const auto renewed = client.post(server.url(), "order");
  REQUIRE(renewed);
  CHECK(renewed->body == "third");

  const auto seen = server.seen();
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].headers.get("Authorization") == "Bearer old");
  CHECK(seen[1].headers.get("Authorization") == "Bearer old");
  CHECK(seen[2].headers.get("Authorization") == "Bearer new");
  CHECK(seen[2].body == "order");
  CHECK(tokens.requests() == 2);
}

TEST_CASE("no credential follows a redirect to another origin, whatever kind it is") {
  FaultServer stranger;
  for (const auto scheme : {Credentials::Scheme::Basic, Credentials::Scheme::Digest}) {
    auto server = redirecting(stranger.url());
    auto request = Request::get(server.url())
                       .set_header("X-Api-Key", "secret")
                       .set_header("Cookie", "session=secret");
    request.edit_options().credentials.emplace(scheme, "ann", "secret");
    REQUIRE(Client({redirect(), bearer("secret-token")}).send(request));
  }
  auto server = redirecting(stranger.url());
  REQUIRE(Client({redirect(), bearer("secret-token")}).get(server.url()));
  CHECK(server.seen()[0].headers.get("Authorization") == "Bearer secret-token");
  for (const auto& seen : stranger.seen()) {
    for (const auto field : seen.headers) CHECK(field.value.find("ecret") == std::string::npos);
    CHECK_FALSE(seen.headers.contains("Authorization"));
  }
  CHECK(stranger.requests() == 3);
}
