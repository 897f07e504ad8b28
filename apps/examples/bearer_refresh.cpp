// Bearer tokens that are fetched once for all calls that wait, and again when a server answers 401.
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <future>
#include <string>
#include <vector>

using namespace httpretry;

namespace {

// Asks the token server, by a client of its own, with retries of its own.
Task<Result<BearerToken>> fetch_token(Client& issuer, std::string url, Call& call) {
  auto request = Request::post(url, "grant_type=client_credentials");
  request.edit_options().repeatable = true;  // a POST, but two tokens do no harm
  CallOptions options;
  options.stop = call.stop();
  options.deadline = call.deadline();
  Outcome answer = co_await issuer.co_send(request, options);
  if (!answer) co_return answer.error();
  const auto token = answer->json_at("/access_token");
  const auto seconds = answer->json_at("/expires_in");
  if (!token) co_return token.error();
  if (!seconds) co_return seconds.error();
  co_return BearerToken(std::get<std::string>(*token),
                        std::chrono::seconds(std::get<std::int64_t>(*seconds)));
}

// The token server fails once; the API stops taking the first token after three requests.
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
  // Above `retry`: a fetch that retries, inside of a call that retries, would multiply attempts.
  Client api({redirect(),
              bearer([&](Call& call) { return fetch_token(issuer, server.url("/token"), call); }),
              retry()});

  std::vector<std::future<Outcome>> calls(3);
  for (auto& call : calls) call = api.send_async(Request::get(server.url("/items")));
  bool good = true;
  for (auto& call : calls) good = call.get()->ok() && good;
  const auto later = api.get(server.url("/items"));
  good = good && later && later->body == "another item";

  std::string tokens;
  for (const auto& seen : server.seen()) {
    const std::string token(seen.headers.get("Authorization").value_or("-"));
    std::printf("%s %s  %s\n", seen.method.c_str(), seen.path.c_str(), token.c_str());
    tokens += seen.method == "POST" ? "T" : token.substr(token.size() - 1);
  }
  // Two requests for the first token, three with it, one that finds it expired, and so on.
  return good && tokens == "TTttttTd" ? 0 : 1;
}
