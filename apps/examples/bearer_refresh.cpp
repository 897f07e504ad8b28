// Bearer tokens: fetched once for all calls that need one, and fetched again after a 401 response.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <future>
#include <string>
#include <vector>

using namespace httpretry;

namespace {

// Fetches a token from the token server with a separate client, which retries on its own.
Task<Result<BearerToken>> fetch_token(Client& issuer, std::string url, Call& call) {
  auto request = Request::post(url, "grant_type=client_credentials");
  request.edit_options().repeatable =
      true;  // allows retries of this POST: a second token does no harm
  CallOptions options;
  options.stop = call.stop();
  options.deadline = call.deadline();
  Outcome response = co_await issuer.co_send(request, options);
  if (!response) co_return response.error();
  const auto token = response->json_at("/access_token");
  const auto seconds = response->json_at("/expires_in");
  if (!token) co_return token.error();
  if (!seconds) co_return seconds.error();
  co_return BearerToken(std::get<std::string>(*token),
                        std::chrono::seconds(std::get<std::int64_t>(*seconds)));
}

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

}  // namespace

int main() {
  FaultServer server(servers());
  Client issuer({retry()});
  // `bearer` comes before `retry`: a fetch with retries inside an attempt would multiply attempts.
  Client api({redirect(),
              bearer([&](Call& call) { return fetch_token(issuer, server.url("/token"), call); }),
              retry()});

  std::vector<std::future<Outcome>> calls(3);
  for (auto& call : calls) call = api.send_async(Request::get(server.url("/items")));
  bool good = true;
  for (auto& call : calls) {
    const auto outcome = call.get();
    good = good && succeeded(outcome);
  }
  const auto later = api.get(server.url("/items"));
  good = good && later && later->body == "another item";

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
