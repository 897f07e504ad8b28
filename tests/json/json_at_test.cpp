#include <httpretry/http/response.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <variant>

using namespace httpretry;

TEST_CASE("json_at gives the scalar at a pointer in a standard type") {
  const Response response(200,
                          R"({"name": "n", "count": 3, "big": 18446744073709551615, "half": 0.5,
                                   "on": true, "none": null, "list": [10, {"a/b~c": "deep"}]})");
  CHECK(std::get<std::string>(*response.json_at("/name")) == "n");
  CHECK(std::get<std::int64_t>(*response.json_at("/count")) == 3);
  CHECK(std::get<std::uint64_t>(*response.json_at("/big")) == 18446744073709551615U);
  CHECK(std::get<double>(*response.json_at("/half")) == 0.5);
  CHECK(std::get<bool>(*response.json_at("/on")));
  CHECK(std::holds_alternative<std::nullptr_t>(*response.json_at("/none")));
  CHECK(std::get<std::int64_t>(*response.json_at("/list/0")) == 10);
  CHECK(std::get<std::string>(*response.json_at("/list/1/a~1b~0c")) == "deep");
  CHECK(std::get<std::string>(*Response(200, "\"all\"").json_at("")) == "all");
  CHECK(std::get<std::int64_t>(*Response(200, "-1").json_at("")) == -1);
  CHECK(std::get<std::int64_t>(*Response(200, "9223372036854775807").json_at("")) == INT64_MAX);
  CHECK(std::get<std::uint64_t>(*Response(200, "9223372036854775808").json_at("")) ==
        9223372036854775808U);
}

TEST_CASE("json_at says why there is no value") {
  const Response response(200, R"({"list": [1], "object": {}})");
  CHECK(response.json_at("/nothing").error().code == Errc::Protocol);
  CHECK(response.json_at("/list/99999999999999999999999").error().code == Errc::Protocol);
  CHECK(response.json_at("/list/7").error().code == Errc::Protocol);
  CHECK(response.json_at("/list/x").error().code != Errc::Internal);
  CHECK(response.json_at("/list").error().message ==
        "the response has no value at \"/list\": it is an array");
  CHECK(response.json_at("/object").error().message ==
        "the response has no value at \"/object\": it is an object");
  CHECK(response.json_at("no-slash").error().code == Errc::InvalidRequest);
  CHECK(Response(200, "<html>").json_at("/a").error().message ==
        "the response has no value at \"/a\": the body is not JSON");
}

TEST_CASE("json_text gives a string, or an empty one if there is none") {
  const Response response(400, R"({"error": {"message": "no such model", "code": 7}})");
  CHECK(response.json_text("/error/message") == "no such model");
  CHECK(response.json_text("/error/code").empty());
  CHECK(response.json_text("/error").empty());
  CHECK(response.json_text("/nothing").empty());
  CHECK(response.json_text("no-slash").empty());
  CHECK(Response(502, "<html>").json_text("/error/message").empty());
}

TEST_CASE("a body that is nothing but depth is refused, not a crash") {
  CHECK_FALSE(Response(200, std::string(1'000'000, '[')).json_at("/0"));
  CHECK_FALSE(Response(200, std::string(600, '[') + std::string(600, ']')).json_at("/0"));
}
