// Links what gets access tokens, which brings the library along.
#include <httpretry/client/client.hpp>
#include <httpretry/oauth2/oauth2.hpp>

#include <cstdio>

int main() {
  const auto credentials = httpretry::parse_oauth2_client_credentials(
      R"({"token_url": "http://127.0.0.1:1/token", "id": "app", "secret": "s3cr3t"})", "file");
  auto once = httpretry::ClientOptions();
  once.middlewares.clear();
  httpretry::Client client({httpretry::oauth2_client_credentials(credentials.value(), once)});
  const auto outcome = client.get("http://127.0.0.1:1/items");  // a closed port
  if (outcome || outcome.error().message.find("/token") == std::string::npos) {
    std::puts("consumer_of_oauth2: the error does not name the token server");
    return 1;
  }
  std::puts("consumer_of_oauth2: ok");
}
