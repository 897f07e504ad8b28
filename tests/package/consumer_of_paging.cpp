// Links what requests pages, which brings the library along.
#include <httpretry/paging/paging.hpp>

#include <cstdio>

int main() {
  auto client = httpretry::Client::bare();
  const auto first = httpretry::Request::get("http://127.0.0.1:1/items");  // a closed port
  const auto pages = httpretry::for_each_page(client, first, httpretry::Paging::links(),
                                              [](const httpretry::Response&) {});
  if (pages || !pages.error().message.starts_with("page 1: ")) {
    std::puts("consumer_of_paging: the error does not name the page");
    return 1;
  }
  std::puts("consumer_of_paging: ok");
}
