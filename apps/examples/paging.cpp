// A client for one API: the address and the key are set once, and a list is read page by page.
#include <httpretry/httpretry.hpp>
#include <httpretry/json/nlohmann.hpp>
#include <httpretry/paging/paging.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <string>
#include <vector>

using namespace httpretry;

namespace {

// Prints the names of all items, and returns their number. Throws Failure.
std::size_t print_items(Client& api) {
  std::size_t items = 0;
  const auto print = [&](const Response& page) {
    const auto body = json_of(page).value();
    for (const auto& item : body["items"]) {
      std::printf("%s\n", item["name"].get<std::string>().c_str());
    }
    items += body["items"].size();
  };
  for_each_page(api, Request::get("items"), Paging::urls("/next"), print).value();
  return items;
}

Client client_of(const std::string& address, const std::string& key) {
  ClientOptions options;
  options.base_url = address;
  options.base_query = {{"per_page", "2"}};
  options.attempt_middlewares = {default_headers({{"X-Api-Key", key}})};
  return Client(options);
}

// Returns how other APIs name the next page: with a Link header, with a cursor, with the last item,
// or not at all.
std::vector<Paging> other_ways() {
  return {Paging::links(), Paging::cursors("/response_metadata/next_cursor", "cursor"),
          Paging::cursors("/data/-/id", "starting_after", "/has_more"),
          Paging::numbers("page", "/items")};
}

// Returns the response of the API to a request.
Step page_for(const SeenRequest& request) {
  if (request.headers.get("X-Api-Key") != "secret") return Step(401);
  if (request.path == "/v1/count") return Step(200, R"({"items": 3})");
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
    const auto items = print_items(api);
    const auto count = get_json(api, "count").value()["items"].get<int>();
    return items == 3 && count == 3 && other_ways().size() == 4 ? 0 : 1;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
