// NTLM authenticates a connection. So no other request may use the connection of a request with it.
#include "lib/core/curl/easy.hpp"

#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace httpretry;

namespace {

constexpr char kChallenge[] =
    "NTLM TlRMTVNTUAACAAAAAAAAADAAAAABggAAAQIDBAUGBwgAAAAAAAAAAAAAAAAwAAAA";

std::string authorization(const SeenRequest& seen) {
  return std::string(seen.headers.get("Authorization").value_or(""));
}

// Responds as a server with NTLM: 401 with a challenge, and to the answer with what it received. A
// request without credentials gets `anonymous`.
Scenario ntlm_server(Step anonymous) {
  Step step;
  step.respond = [anonymous = std::move(anonymous)](const SeenRequest& seen) {
    const auto sent = authorization(seen);
    // The first and the third message of NTLM begin like this in base64.
    if (sent.starts_with("NTLM TlRMTVNTUAAB")) {
      return Step(401, Headers{{"WWW-Authenticate", kChallenge}}, "who?");
    }
    if (sent.starts_with("NTLM TlRMTVNTUAAD")) return Step(200, "known " + seen.body);
    return anonymous;
  };
  return Scenario({step});
}

// libcurl may be built without NTLM.
bool has_ntlm() { return (libcurl().features & CURL_VERSION_NTLM) != 0; }

Request with(Credentials::Scheme scheme, const char* user, Request request) {
  request.edit_options().credentials.emplace(scheme, user, "secret");
  return request;
}

}  // namespace

TEST_CASE("no request shares a connection with a request that NTLM has authenticated") {
  using enum Credentials::Scheme;
  if (!has_ntlm()) return;
  for (const auto scheme : {Ntlm, Any}) {
    CAPTURE(static_cast<int>(scheme));
    Step anonymous(200, "anonymous");
    if (scheme == Any) anonymous = Step(401, Headers{{"WWW-Authenticate", "NTLM"}}, "anonymous");
    FaultServer server(ntlm_server(anonymous));
    Client client;
    std::vector<std::string> bodies;
    for (const char* user : {"", "ann", "", "bob", "ann", ""}) {
      auto request = Request::put(server.url(), "body");
      if (*user != '\0') request = with(scheme, user, std::move(request));
      const auto outcome = client.send(request);
      REQUIRE(outcome);
      bodies.push_back(outcome->body);
    }
    CHECK(bodies == std::vector<std::string>{"anonymous", "known body", "anonymous", "known body",
                                             "known body", "anonymous"});
    // Each connection has either requests without credentials, or those of a single exchange.
    std::map<std::uint64_t, int> authenticated;
    std::set<std::uint64_t> others;
    for (const auto& seen : server.seen()) {
      const auto sent = authorization(seen);
      if (sent.starts_with("NTLM TlRMTVNTUAAD")) ++authenticated[seen.connection];
    }
    CHECK(authenticated.size() == 3);
    for (const auto& [connection, count] : authenticated) CHECK(count == 1);
    for (const auto& seen : server.seen()) {
      if (authorization(seen).empty()) CHECK_FALSE(authenticated.contains(seen.connection));
    }
  }
}

TEST_CASE("requests at the same time with NTLM of different users share no connection") {
  if (!has_ntlm()) return;
  FaultServer server(ntlm_server(Step(200, "anonymous")));
  Client client;
  std::vector<OutcomeFuture> outcomes;
  for (int i = 0; i < 30; ++i) {
    auto request = Request::get(server.url("/" + std::to_string(i % 3)));
    const char* const user = i % 3 == 1 ? "ann" : "bob";
    if (i % 3 != 0) request = with(Credentials::Scheme::Ntlm, user, std::move(request));
    outcomes.push_back(client.send_async(std::move(request)));
  }
  for (auto& outcome : outcomes) REQUIRE(outcome.get());
  std::map<std::uint64_t, std::set<std::string>> paths;  // by connection
  for (const auto& seen : server.seen()) paths[seen.connection].insert(seen.path);
  for (const auto& [connection, of_users] : paths) CHECK(of_users.size() == 1);
}

TEST_CASE("a proxy takes no NTLM") {
  ClientOptions options;
  options.connection.proxy.url = "http://127.0.0.1:1";
  options.connection.proxy.credentials.emplace(Credentials::Scheme::Ntlm, "ann", "secret");
  CHECK_THROWS_WITH(Client{options},
                    "TransportOptions::proxy.credentials: the scheme must be Basic or Digest");
}
