// The bridge to nlohmann_json.
#include "tests/client/conversation.hpp"

#include <httpretry/json/nlohmann.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace httpretry;
using Json = nlohmann::json;

namespace {

struct User {
  std::string name;
};

void from_json(const Json& document, User& user) { document.at("name").get_to(user.name); }

Response from(std::string body, int status = 200) {
  Response response(status, std::move(body));
  response.url = "https://api.example.com/users/7?key=secret";
  return response;
}

}  // namespace

TEST_CASE("a JSON value is the body of a request, with its content type") {
  const Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({});
  CHECK(client.post("http://x/", Json{{"name", "Ann"}}));
  CHECK(client.put("http://x/", Json::array({1, 2})));
  CHECK(client.send(Request::patch("http://x/", nlohmann::ordered_json{{"b", 1}, {"a", 2}})));
  CHECK(*talk.sent(0).body().bytes() == R"({"name":"Ann"})");
  CHECK(*talk.sent(1).body().bytes() == "[1,2]");
  CHECK(*talk.sent(2).body().bytes() == R"({"b":1,"a":2})");
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(talk.sent(i).headers().get_all("Content-Type") ==
          std::vector<std::string_view>{"application/json"});
  }
}

TEST_CASE("the JSON of a response, or an error with its URL and position") {
  CHECK((*json_of(from(R"({"a": 1})")))["a"] == 1);
  CHECK((*json_of(from(R"({"a": 1})", 404)))["a"] == 1);
  CHECK(json_of(error_of(Errc::Connect)).error().code == Errc::Connect);

  struct Row {
    std::string body;
    std::string message;
  };
  const std::string at = "https://api.example.com/users/7: ";
  for (const auto& row : std::vector<Row>{
           {"", at + "line 1, column 1: the JSON ends too early"},
           {"<html>", at + "line 1, column 1: not JSON"},
           {"{\n  \"a\": x}", at + "line 2, column 8: not JSON"},
           {"{\"a\": [1, 2", at + "line 1, column 12: the JSON ends too early"},
           {"{} {}", at + "line 1, column 4: not JSON"},
           {"\"\xff\"", at + "line 1, column 2: not JSON"},
           {std::string(600, '['), at + "the JSON is nested too deeply"},
       }) {
    const auto document = json_of(from(row.body));
    REQUIRE_FALSE(document);
    CHECK(document.error().code == Errc::Protocol);
    CHECK(document.error().message == row.message);
    CHECK(document.error().status == 200);
  }

  auto part = from("{}");
  part.incomplete = true;
  CHECK(json_of(part).error().code == Errc::InvalidRequest);
  auto in_sink = from("");
  in_sink.delivered = 2;
  CHECK(json_of(in_sink).error().code == Errc::InvalidRequest);
}

TEST_CASE("get_json reads a type of the program") {
  const Conversation talk;
  talk.network->say(from(R"({"name": "Ann"})"))
      .say(from(R"({"name": 7})"))
      .say(from(R"({"name": "Ann"})", 404))
      .say(error_of(Errc::Tls));
  auto client = talk.client({retry(RetryPolicy::standard({.max_attempts = 1}))});

  CHECK(get_json<User>(client, "http://x/")->name == "Ann");
  CHECK(talk.sent(0).headers().get("Accept") == "application/json");
  const auto other_form = get_json<User>(client, "http://x/").error();
  CHECK(other_form.code == Errc::Protocol);
  CHECK(other_form.message.find(
            "https://api.example.com/users/7: the JSON has an unexpected form") == 0);
  const auto missing = get_json<User>(client, "http://x/").error();
  CHECK(missing.code == Errc::Status);
  CHECK(missing.message == "https://api.example.com/users/7: the status is 404");
  CHECK(get_json(client, "http://x/").error().code == Errc::Tls);
}
