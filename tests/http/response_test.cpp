// The links and cookies of a response.
#include <httpretry/http/body.hpp>
#include <httpretry/http/response.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

using namespace httpretry;

namespace {

Response response_with(std::string_view name, const std::vector<std::string>& values) {
  Response response(200);
  response.url = "https://api.example.com/v1/items?page=1";
  for (const auto& value : values) response.headers.add(name, value);
  return response;
}

}  // namespace

TEST_CASE("the next page of Link headers") {
  struct Row {
    std::vector<std::string> headers;
    std::optional<std::string> next;
  };
  const std::string at = "https://api.example.com/v1/";
  for (const auto& row : std::vector<Row>{
           {{}, std::nullopt},
           {{R"(<https://x.example/2>; rel="next")"}, "https://x.example/2"},
           {{R"(<items?page=2>; rel="next")"}, at + "items?page=2"},
           {{R"(<?page=2>;rel=next)"}, at + "items?page=2"},
           {{R"(<a>; rel="prev", <b>; rel="next", <c>; rel="next")"}, at + "b"},
           {{R"(<a>; rel="prev")", R"(<b>; rel="NEXT")"}, at + "b"},
           {{R"(<a>; rel="last next")"}, at + "a"},
           {{R"(<a>; rel="nextish")"}, std::nullopt},
           {{R"(<a,b;c>; rel="next")"}, at + "a,b;c"},
           {{R"(<a>; title="x, <z>; rel=\"next\"", <b>; rel="next")"}, at + "b"},
           {{R"(<a>; title="\"; rel=next; x=")"}, std::nullopt},
           {{R"(<a>; title="\\"; rel=next)"}, at + "a"},
           {{R"(<a>; rel="n\ext")"}, at + "a"},
           {{R"(<a>; rel="next\)"}, std::nullopt},
           {{R"(<a>; rel="prev"; rel="next")"}, std::nullopt},
           {{R"(<a>; REL = "next" ; type="text/html")"}, at + "a"},
           {{R"(<a>; rel="next"; anchor="#part")"}, std::nullopt},
           {{R"(<a>; rel)"}, std::nullopt},
           {{R"(, ,<a>; rel="next",)"}, at + "a"},
           {{R"(<a; rel="next")"}, std::nullopt},
           {{R"(a; rel="next")"}, std::nullopt},
           {{R"(<a>; rel="next)"}, at + "a"},
           {{R"(<http://[>; rel="next", <b>; rel="next")"}, at + "b"},
           {{R"(<a; rel="next", <b>; rel="last")"}, std::nullopt},
           {{R"(<a; rel="next", b, <<c>; rel=next, <d>; rel="next")"}, at + "d"},
       }) {
    CAPTURE(row.headers.empty() ? std::string("no header") : row.headers.front());
    const auto found = response_with("Link", row.headers).link("next");
    CHECK(found.value_or("none") == row.next.value_or("none"));
  }
}

TEST_CASE("a reference is resolved against the URL of the response") {
  const auto response = response_with("Link", {});
  CHECK(*response.resolve("other") == "https://api.example.com/v1/other");
  CHECK(*response.resolve("/top") == "https://api.example.com/top");
  CHECK(*response.resolve("//x.example/") == "https://x.example/");
  CHECK(response.resolve("http://[").error().code == Errc::InvalidRequest);
  CHECK(Response(200).resolve("a").error().code == Errc::InvalidRequest);  // it has no URL
}

TEST_CASE("the cookies that a response sets") {
  const auto cookies =
      response_with("Set-Cookie", {"id=a=b; Path=/; HttpOnly;secure", " n = v ", "=nameless",
                                   "empty=; Max-Age=0", "nothing; Path=/", "flag=;;x y=z"})
          .cookies();
  REQUIRE(cookies.size() == 4);
  CHECK(cookies[0].name == "id");
  CHECK(cookies[0].value == "a=b");
  CHECK(cookies[0].attributes.get("path") == "/");
  CHECK(cookies[0].attributes.contains("Secure"));
  CHECK(cookies[0].attributes.get("httponly") == "");
  CHECK(cookies[1].name == "n");
  CHECK(cookies[1].value == "v");
  CHECK(cookies[2].name == "empty");
  CHECK(cookies[2].attributes.get("Max-Age") == "0");
  CHECK(cookies[3].name == "flag");
  CHECK(cookies[3].attributes.empty());  // a malformed one is left out
}

TEST_CASE("an urlencoded form") {
  CHECK(UrlEncoded().text().empty());
  const auto form = UrlEncoded().add("name", "Ann Lee").add("a&b", "1=2%").add("", "\xc3\xa4");
  CHECK(form.text() == "name=Ann%20Lee&a%26b=1%3D2%25&=%C3%A4");
}
