// OAuth 2.0: a token for all calls, which is renewed after a 401 response.
#include <httpretry/httpretry.hpp>
#include <httpretry/oauth2/oauth2.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <future>
#include <string>
#include <vector>

using namespace httpretry;

namespace {

// The token server fails once. The API rejects the first token after three requests.
Scenario servers() {
  Step good(200, "an item");
  good.times = 3;
  Scenario scenario;
  scenario.paths["/token"] = Script({{503},
                                     {200, R"({"access_token": "first", "expires_in": 3600})"},
                                     {200, R"({"access_token": "second", "expires_in": 3600})"}});
  scenario.paths["/items"] = Script({good, {401, "expired"}, {200, "another item"}});
  return scenario;
}

// Sends three calls at once, and one after them. Returns whether all succeed.
bool use(const std::string& token_url, const std::string& secret, const std::string& url) {
  OAuth2ClientCredentials credentials(token_url, "my-app", secret, "items.read");
  ClientOptions options;
  options.call_middlewares = {oauth2_client_credentials(credentials)};
  Client api(options);

  std::vector<std::future<Outcome>> calls(3);
  for (auto& call : calls) call = api.send_async(Request::get(url));
  bool good = true;
  for (auto& call : calls) good = succeeded(call.get()) && good;
  const auto later = api.get(url);
  return good && later && later->body == "another item";
}

}  // namespace

int main() {
  FaultServer server(servers());
  const bool good = use(server.url("/token"), "secret", server.url("/items"));
  std::string tokens;
  for (const auto& seen : server.seen()) {
    const std::string token(seen.headers.get("Authorization").value_or("-"));
    std::printf("%s %s  %s\n", seen.method.c_str(), seen.path.c_str(), token.c_str());
    tokens += seen.method == "POST" ? "T" : token.substr(token.size() - 1);
  }
  // T is a request to the token server; t and d are requests to the API with the token "first" or
  // "second". Two requests fetch the first token, three use it, and one with it is rejected. Then
  // the second token is fetched and used.
  return good && tokens == "TTttttTd" ? 0 : 1;
}
