#include "tests/client/conversation.hpp"
#include "tests/client/policies.hpp"

#include <httpretry/body/sink.hpp>
#include <httpretry/paging/paging.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr auto* kFirst = "http://x/items?per_page=2";

// An API whose pages are the bodies at these URLs. Any other URL gets a 404.
struct Api {
  Conversation talk;
  std::map<std::string, Response> pages;
  std::vector<std::string> bodies;  // what the function got

  void add(const std::string& url, std::string body, std::string link = "") {
    Response page(200, std::move(body));
    if (!link.empty()) page.headers.add("Link", link);
    pages[url] = page;
  }
  Client client() {
    talk.network->say([this](const Request& request, int) -> Outcome {
      const auto url = request.parsed_url()->to_string();
      auto response = pages.contains(url) ? pages[url] : Response(404);
      response.url = url;
      return response;
    });
    return talk.client({redirect(), retry(steady_policy())});
  }
  Result<std::size_t> walk(Paging how, std::string first = kFirst) {
    auto all = client();
    return for_each_page(all, Request::get(std::move(first)), std::move(how),
                         [this](const Response& page) { bodies.push_back(page.body); });
  }
};

using Bodies = std::vector<std::string>;

std::string message_of(const Result<std::size_t>& result) {
  REQUIRE_FALSE(result);
  return result.error().message;
}

detail::Detached keep(Task<Result<std::size_t>> task, std::optional<Result<std::size_t>>& result) {
  auto running = std::move(task);
  result = co_await running;
}

}  // namespace

TEST_CASE("paging by Link headers, relative ones too") {
  Api api;
  api.add(kFirst, "one", R"(</items?page=2>; rel="next", </items?page=9>; rel="last")");
  api.add("http://x/items?page=2", "two", R"(<http://x/items?page=3>; rel=next)");
  api.add("http://x/items?page=3", "three", R"(</items>; rel="first")");
  CHECK(api.walk(Paging::links()).value() == 3);
  CHECK(api.bodies == Bodies{"one", "two", "three"});
}

TEST_CASE("paging by a URL in the body") {
  for (const auto* last : {"{}", R"({"links": {"next": null}})", R"({"links": {"next": ""}})",
                           R"({"links": {"next": false}})"}) {
    CAPTURE(last);
    Api api;
    api.add(kFirst, R"({"links": {"next": "/items?page=2"}})");
    api.add("http://x/items?page=2", last);
    CHECK(api.walk(Paging::urls("/links/next")).value() == 2);
    CHECK(api.bodies.back() == last);
  }
}

TEST_CASE("paging by a cursor: it replaces the parameter of the first URL") {
  Api api;
  api.add("http://x/items?cursor=start&a=b", R"({"meta": [{"next/~": "a b&c"}]})");
  api.add("http://x/items?a=b&cursor=a%20b%26c", R"({"meta": [{"next/~": 17}]})");
  api.add("http://x/items?a=b&cursor=17", R"({"meta": []})");
  const auto pages = api.walk(Paging::cursors("/meta/0/next~1~0", "cursor"),
                              "http://x/items?cursor=start&a=b#part");
  CHECK(pages.value() == 3);
}

TEST_CASE("paging by the last item, while the page says that there are more") {
  Api api;
  api.add(kFirst, R"({"data": [{"id": "a"}, {"id": "b"}], "has_more": true})");
  api.add("http://x/items?per_page=2&starting_after=b",
          R"({"data": [{"id": "c"}], "has_more": false})");
  CHECK(api.walk(Paging::cursors("/data/-/id", "starting_after", "/has_more")).value() == 2);

  Api empty;
  empty.add(kFirst, R"({"data": [], "has_more": false})");
  CHECK(empty.walk(Paging::cursors("/data/-/id", "starting_after", "/has_more")).value() == 1);
}

TEST_CASE("paging by numbers ends at the first page without items, which is no page") {
  for (const auto* last : {R"({"items": []})", R"({"items": null})", "{}"}) {
    CAPTURE(last);
    Api api;
    api.add("http://x/items?p=0", R"({"items": [1, 2]})");
    api.add("http://x/items?p=1", R"({"items": [3]})");
    api.add("http://x/items?p=2", last);
    CHECK(api.walk(Paging::numbers("p", "/items", 0), "http://x/items").value() == 2);
    CHECK(api.bodies == Bodies{R"({"items": [1, 2]})", R"({"items": [3]})"});
  }
  Api api;
  api.add("http://x/?p=1", "[1]");
  api.add("http://x/?p=2", "[]");
  CHECK(api.walk(Paging::numbers("p"), "http://x/").value() == 1);
}

TEST_CASE("a parameter replaces the one of the first URL, in any spelling of its escapes") {
  for (const auto* first : {"p[n]", "p%5bn%5d", "p%5Bn%5d"}) {
    CAPTURE(first);
    Api api;
    api.add("http://x/?P%5Bn%5D=7&p%5BN%5D=8&p%5Bn%5D=1", "[1]");
    api.add("http://x/?P%5Bn%5D=7&p%5BN%5D=8&p%5Bn%5D=2", "[]");
    const auto url = "http://x/?" + std::string(first) + "=5&P%5Bn%5D=7&p%5BN%5D=8";
    CHECK(api.walk(Paging::numbers("p[n]"), url).value() == 1);
  }
  for (const auto* first : {"%C3%A9", "%c3%A9", "%C3%a9", "%c3%a9"}) {
    CAPTURE(first);
    Api api;
    api.add("http://x/?%C3%A8=7&%C3%A9=1", "[1]");
    api.add("http://x/?%C3%A8=7&%C3%A9=2", "[]");
    const auto url = "http://x/?%C3%A8=7&" + std::string(first) + "=5";
    CHECK(api.walk(Paging::numbers("\xC3\xA9"), url).value() == 1);
  }
  for (const auto* first : {"[", "%5B", "%5b"}) {
    CAPTURE(first);
    Api api;
    api.add("http://x/?%5B=1", "[1]");
    api.add("http://x/?%5B=2", "[]");
    CHECK(api.walk(Paging::numbers("["), "http://x/?" + std::string(first) + "=5").value() == 1);
  }
}

TEST_CASE("each page is retried, and a failed page ends the list with an error that names it") {
  Api api;
  api.add(kFirst, "one", "</busy>; rel=next");
  int failures = 2;
  api.talk.network->say([&](const Request& request, int) -> Outcome {
    const auto url = request.parsed_url()->to_string();
    if (url == kFirst) return api.pages[url];
    Response response(failures-- > 0 ? 503 : 200, "two");
    if (failures < 0) response.headers.add("Link", "</gone?key=secret>; rel=next");
    response.url = url;
    if (url.find("gone") != std::string::npos) response = Response(404);
    response.url = url;
    return response;
  });
  api.pages[kFirst].url = kFirst;
  auto client = api.talk.client({retry(steady_policy())});
  Bodies seen;
  const auto pages = for_each_page(client, Request::get(kFirst), Paging::links(),
                                   [&](const Response& page) { seen.push_back(page.body); });
  CHECK(seen == Bodies{"one", "two"});
  CHECK(message_of(pages).starts_with("page 3: http://x/gone: failed after 1 attempt"));
  CHECK(pages.error().code == Errc::Status);
  CHECK(pages.error().status == 404);
  CHECK(pages.error().history.attempts.size() == 1);
  CHECK(api.talk.sends() == 5);
}

TEST_CASE("a redirect that is not followed, or a 304, is no page") {
  for (const int status : {300, 302, 304}) {
    CAPTURE(status);
    Api api;
    api.add(kFirst, "one", "</2?key=secret>; rel=next");
    api.pages["http://x/2?key=secret"] = Response(status);
    const auto pages = api.walk(Paging::links());
    CHECK(message_of(pages) == "page 2: http://x/2: status " + std::to_string(status) +
                                   ", which is not a page of the list");
    CHECK(pages.error().code == Errc::Status);
    CHECK(pages.error().status == status);
    CHECK(api.bodies == Bodies{"one"});

    Api first;
    first.pages[kFirst] = Response(status);
    CHECK(message_of(first.walk(Paging::links())).starts_with("page 1: http://x/items: status "));
    CHECK(first.bodies.empty());
  }
}

TEST_CASE("a next link that is not a URL is an error, unless another one is") {
  for (const auto* link :
       {R"(<http://[bad>; rel="next")", R"(<file:///x>; rel="next")", R"(</2; rel="next")",
        R"(</2; rel="next", </9>; rel="last")", R"(/2; rel="next")",
        R"(</1>; rel="prev", </2,3; rel="next")", R"(</2> x; rel="next")", "<; rel=next"}) {
    CAPTURE(link);
    Api api;
    api.add(kFirst, "one", link);
    const auto pages = api.walk(Paging::links());
    CHECK(message_of(pages).starts_with("page 2: not a usable URL: "));
    CHECK(pages.error().code == Errc::Protocol);
    CHECK(api.bodies == Bodies{"one"});
  }
  Api api;
  api.add(kFirst, "one", "<file:///x>; rel=next, </2>; rel=next");
  api.add("http://x/2", "two", "<http://[bad>; rel=last, /9, <");
  CHECK(api.walk(Paging::links()).value() == 2);
}

TEST_CASE("an error of the network says at which page") {
  Api api;
  api.talk.network->say([](const Request&, int) -> Outcome { return error_of(Errc::Resolve); });
  auto client = api.talk.client({});
  const auto pages = for_each_page(client, Request::get(kFirst), Paging::links(), [](auto&) {});
  CHECK(message_of(pages) == "page 1: scripted");
  CHECK(pages.error().code == Errc::Resolve);
}

TEST_CASE("a function that returns false ends the list") {
  Api api;
  api.add(kFirst, "one", "</2>; rel=next");
  api.add("http://x/2", "two", "</3>; rel=next");
  auto client = api.client();
  const auto pages = for_each_page(client, Request::get(kFirst), Paging::links(),
                                   [](const Response& page) { return page.body != "two"; });
  CHECK(pages.value() == 2);
  CHECK(api.talk.sends() == 2);
}

TEST_CASE("an error that the function returns ends the list") {
  Api api;
  api.add(kFirst, "one", "</2>; rel=next");
  api.add("http://x/2", "two", "</3>; rel=next");
  auto client = api.client();
  const auto request = Request::get(kFirst);
  const auto check = [](const Response& page) -> Result<void> {
    if (page.body == "two") return Error(Errc::InvalidRequest, "no item in two");
    return {};
  };
  CHECK(message_of(for_each_page(client, request, Paging::links(), check)) == "no item in two");
  CHECK(api.talk.sends() == 2);

  const auto stop_at_two = [&](const Response& page) -> Result<bool> {
    if (const auto checked = check(page); !checked) return checked.error();
    return page.body != "one";
  };
  CHECK(for_each_page(client, request, Paging::links(), stop_at_two).value() == 1);
  std::optional<Result<std::size_t>> pages;
  keep(co_for_each_page(client, request, Paging::links(), check), pages);
  api.talk.clock->run();
  REQUIRE(pages);
  CHECK(message_of(*pages) == "no item in two");
}

TEST_CASE("lists that cannot be continued") {
  struct Case {
    std::string name;
    std::string body;
    Paging how;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"not JSON", "<html>", Paging::urls("/next"), "page 1: the response:1:1"},
      {"an empty body", "", Paging::urls("/next"), "page 1: the response:1:1"},
      {"an object as URL", R"({"next": {}})", Paging::urls("/next"),
       R"(page 1: expected a text at "/next", found an object)"},
      {"true as cursor", R"({"next": true})", Paging::cursors("/next", "c"),
       R"(page 1: expected a text at "/next", found true)"},
      {"a URL that is none", R"({"next": "http://"})", Paging::urls("/next"), "page 2: "},
      {"more pages, but no cursor", R"({"data": [], "has_more": true})",
       Paging::cursors("/data/-/id", "c", "/has_more"),
       R"(page 1: expected a text at "/data/-/id", found nothing)"},
      {"false as cursor, but more pages", R"({"id": false, "more": true})",
       Paging::cursors("/id", "c", "/more"), R"(page 1: expected a text at "/id", found false)"},
      {"a page that does not say whether there are more", R"({"data": [{"id": "a"}]})",
       Paging::cursors("/data/-/id", "c", "/has_more"),
       R"(page 1: expected true or false at "/has_more", found nothing)"},
      {"a number that says whether there are more", R"({"data": [{"id": "a"}], "has_more": 1})",
       Paging::cursors("/data/-/id", "c", "/has_more"),
       R"(page 1: expected true or false at "/has_more", found 1)"},
      {"items that are no array", R"({"items": 7})", Paging::numbers("page", "/items"),
       R"(page 1: expected an array at "/items", found 7)"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.name);
    Api api;
    api.add(kFirst, one.body);
    api.add("http://x/items?per_page=2&page=1", one.body);
    const auto message = message_of(api.walk(one.how));
    CAPTURE(message);
    CHECK(message.starts_with(one.message));
  }
}

TEST_CASE("a body that went to a sink cannot be read for the next page") {
  Api api;
  api.add(kFirst, "7");
  std::string received;
  auto client = api.client();
  auto first = Request::get(kFirst);
  first.edit_options().sink = pass_to([&](std::string_view bytes) {
    received += bytes;
    return true;
  });
  const auto pages = for_each_page(client, first, Paging::urls("/next"), [](auto&) {});
  CHECK(received == "7");
  CHECK(message_of(pages) == "page 1: its body went to the sink of the request");
  CHECK(pages.error().code == Errc::InvalidRequest);
}

TEST_CASE("a list that leads back, or that does not end, ends with an error") {
  Api circle;
  circle.add(kFirst, "one", "</2>; rel=next");
  circle.add("http://x/2", "two", "</items?per_page=2>; rel=next");
  CHECK(message_of(circle.walk(Paging::links())) ==
        "page 3: the server named a page that was already requested");
  CHECK(circle.bodies.size() == 2);

  Api endless;
  for (int i = 1; i < 9; ++i) endless.add("http://x/?page=" + std::to_string(i), "[1]");
  auto how = Paging::numbers("page");
  how.max_pages = 3;
  CHECK(message_of(endless.walk(how, "http://x/")) ==
        "page 4: there are more than 3 pages, which is the limit");
  CHECK(endless.bodies.size() == 3);
}

TEST_CASE("the page without items that ends a numbered list does not count") {
  Api api;
  for (int i = 1; i < 4; ++i) api.add("http://x/?page=" + std::to_string(i), "[1]");
  api.add("http://x/?page=4", "[]");
  auto how = Paging::numbers("page");
  how.max_pages = 3;
  CHECK(api.walk(how, "http://x/").value() == 3);
}

TEST_CASE("another origin gets nothing, unless it is allowed") {
  Api api;
  api.add(kFirst, "one", "<http://y/items?page=2>; rel=next");
  api.add("http://y/items?page=2", "two");
  const auto refused = api.walk(Paging::links());
  CHECK(message_of(refused) ==
        "page 2: it is at http://y, another origin than the first page, and must not get the "
        "credentials of that page");
  CHECK(refused.error().code == Errc::Protocol);
  CHECK(api.talk.sends() == 1);
  auto how = Paging::links();
  how.origins = {"http://y/items", "y", "http://z"};
  Api with_others;
  with_others.pages = api.pages;
  CHECK(message_of(with_others.walk(how)) == refused.error().message);
  how.origins = {"HTTP://Y:80/"};
  Api allowed;
  allowed.pages = api.pages;
  CHECK(allowed.walk(how).value() == 2);
}

TEST_CASE("all pages get the headers and the name and password of the first request") {
  Api api;
  api.add("http://x/1", "one", "<http://x/2>; rel=next");
  api.add("http://x/2", "two");
  auto client = api.client();
  const auto first = Request::get("http://ann:secret@x/1").header("X-Api-Key", "key");
  CHECK(for_each_page(client, first, Paging::links(), [](auto&) {}).value() == 2);
  CHECK(api.talk.sent(1).url() == "http://ann:secret@x/2");
  CHECK(api.talk.sent(1).headers()["X-Api-Key"] == "key");

  Api at_signs;
  at_signs.add("http://x/1@a", "one", "<http://x/2@b>; rel=next");
  at_signs.add("http://x/2@b", "two");
  CHECK(at_signs.walk(Paging::links(), "http://ann:secret@x/1@a").value() == 2);
  CHECK(at_signs.talk.sent(1).url() == "http://ann:secret@x/2@b");
}

TEST_CASE("a relative URL has the origin of the first page, unless that was redirected") {
  Api api;
  api.add("http://x/items", "one", "</items?page=2>; rel=next");
  api.add("http://x/items?page=2", "two", "</items?page=3>; rel=next");
  api.add("http://x/items?page=3", "three");
  ClientOptions options;
  options.base_url = "http://x/";
  options.transport = api.talk.network;
  options.scheduler = api.talk.clock;
  (void)api.client();
  Client client(options);
  CHECK(for_each_page(client, Request::get("items"), Paging::links(), [](auto&) {}).value() == 3);

  api.pages["http://x/moved"] = redirect_to(302, "http://y/items");
  api.add("http://y/items", "one", "</items?page=2>; rel=next");
  const auto moved = for_each_page(client, Request::get("moved"), Paging::links(), [](auto&) {});
  CHECK(message_of(moved).starts_with("page 2: it is at http://y, another origin"));

  auto how = Paging::links();
  how.origins = {"http://y"};
  api.add("http://y/items?page=2", "two", "</items?page=3>; rel=next");
  api.add("http://y/items?page=3", "three at y");
  std::string last;
  const auto allowed = for_each_page(client, Request::get("moved"), how,
                                     [&](const Response& page) { last = page.body; });
  CHECK(allowed.value() == 3);
  CHECK(last == "three at y");
}

TEST_CASE("after a relative URL, further pages are on the same host") {
  Api api;
  api.add("http://x/items", "one", "<http://x//y/items>; rel=next");
  api.add("http://x//y/items", "two");
  api.add("http://z/items", "one", "</items?page=2>; rel=next");
  api.add("http://z/items?page=2", "two");
  ClientOptions options;
  options.base_url = "http://x/";
  options.transport = api.talk.network;
  options.scheduler = api.talk.clock;
  (void)api.client();
  Client client(options);
  CHECK(for_each_page(client, Request::get("items"), Paging::links(), [](auto&) {}));
  CHECK(api.talk.sent(1).url() == "http://x//y/items");
  CHECK(for_each_page(client, Request::get("//z/items"), Paging::links(), [](auto&) {}));
  CHECK(api.talk.sent(3).url() == "http://z/items?page=2");
}

TEST_CASE("a relative URL gets the base query once, and the name and password of the base URL") {
  Api api;
  api.add("http://x/v1/items?key=k&per_page=2", "one", "</v1/items?page=2&per_page=2>; rel=next");
  api.add("http://x/v1/items?page=2&per_page=2&key=k", "two");
  ClientOptions options;
  options.base_url = "http://ann:pw@x/v1/";
  options.base_query = {{"key", "k"}, {"per_page", "2"}};
  options.transport = api.talk.network;
  options.scheduler = api.talk.clock;
  (void)api.client();
  Client client(options);
  CHECK(for_each_page(client, Request::get("items"), Paging::links(), [](auto&) {}).value() == 2);
  CHECK(api.talk.sent(1).url() == "http://ann:pw@x/v1/items?page=2&per_page=2&key=k");
}

TEST_CASE("paging that cannot work is refused at once") {
  Api api;
  auto client = api.client();
  for (const auto& how :
       {Paging::urls("next"), Paging::urls(""), Paging::urls("/a~2"), Paging::cursors("/next", ""),
        Paging::cursors("/next", "c", "more"), Paging::numbers("")}) {
    CHECK_THROWS_AS((void)for_each_page(client, Request::get(kFirst), how, [](auto&) {}),
                    std::invalid_argument);
  }
  CHECK(api.talk.sends() == 0);
}

TEST_CASE("paging as a coroutine") {
  Api api;
  api.add(kFirst, "one", "</2>; rel=next");
  api.add("http://x/2", "two");
  auto client = api.client();
  std::optional<Result<std::size_t>> pages;
  const auto note = [&](const Response& page) { api.bodies.push_back(page.body); };
  keep(co_for_each_page(client, Request::get(kFirst), Paging::links(), note), pages);
  api.talk.clock->run();
  REQUIRE(pages);
  CHECK(pages->value() == 2);
  CHECK(api.bodies == Bodies{"one", "two"});
}
