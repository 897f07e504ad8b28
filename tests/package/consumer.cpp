// Uses something of each library layer that a user links; what is right is tested elsewhere.
#include <httpretry/client/client.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/http/request.hpp>
#include <httpretry/http/url.hpp>
#include <httpretry/json/nlohmann.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

int main() {
  const auto request =
      httpretry::Request::get("https://Example.com/a/../b").set_header("Accept", "text/plain");
  const auto& url = request.parsed_url();
  if (!url || url->to_string() != "https://example.com/b") {
    std::puts("the URL is wrong");
    return 1;
  }
  if (request.headers().get("accept") != "text/plain") {
    std::puts("the header is wrong");
    return 1;
  }
  // Through the whole client, and to no network.
  httpretry::Client client;
  const auto outcome = client.get("no URL");
  if (outcome || outcome.error().code != httpretry::Errc::InvalidRequest) {
    std::puts("the client took a bad URL");
    return 1;
  }
  // An exception must find its handler across the border of a shared library.
  try {
    httpretry::Headers{}.add("not a name", "");
  } catch (const std::invalid_argument&) {
    std::puts("consumer: ok");
    return 0;
  }
  std::puts("a bad header name was taken");
  return 1;
}
