// A client for one API: the address and the key are set once, and a list is read page by page.
#include <httpretry/httpretry.hpp>
#include <httpretry/json/nlohmann.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <string>

using namespace httpretry;

namespace {

// Prints the names of all items, and returns the number of items. Throws Failure.
std::size_t print_items(Client& api) {
  std::size_t items = 0;
  for (std::string url = "items"; !url.empty();) {
    const auto page = get_json(api, url).value();
    for (const auto& item : page["items"]) {
      std::printf("%s\n", item["name"].get<std::string>().c_str());
    }
    items += page["items"].size();
    url = page.value("next", "");
  }
  return items;
}

Client client_of(const std::string& address, const std::string& key) {
  ClientOptions options;
  options.base_url = address;
  options.base_query = {{"per_page", "2"}};
  options.attempt_middlewares = {default_headers({{"X-Api-Key", key}})};
  return Client(options);
}

// Returns the response of the API to a request.
Step page_for(const SeenRequest& request) {
  if (request.headers.get("X-Api-Key") != "secret") return Step(401);
  if (request.target == "/v1/items?per_page=2") {
    return Step(200, R"({"items": [{"name": "one"}, {"name": "two"}], "next": "items?page=2"})");
  }
  return Step(200, R"({"items": [{"name": "three"}]})");
}

}  // namespace

int main() {
  Step pages;
  pages.respond = page_for;
  FaultServer server({pages, 503, pages});
  try {
    auto api = client_of(server.url("/v1/"), "secret");
    return print_items(api) == 3 ? 0 : 1;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
