// Which policy the line of an input has, and which header its key.
#include "lib/extras/batch/line_policies.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

TEST_CASE("a line has the policy that it names or that of its endpoint, with its own settings") {
  const auto policies = parse_policies(R"({"version": 1, "default": {"max_attempts": 2},
    "policies": {"few": {"max_attempts": 3}, "many": {"max_attempts": 9}},
    "endpoints": [{"match": {"host": "b.test"}, "policy": {"max_attempts": 4}}]})",
                                       "test");
  REQUIRE(policies.has_value());
  LinePolicies of_lines(*policies);
  struct Row {
    const char* text;
    int max_attempts;
    Duration max_elapsed_time = 60s;
  };
  const std::initializer_list<Row> rows = {
      {"http://a.test/", 2},
      {"http://b.test/", 4},
      {R"({"url":"http://a.test/","policy":"few"})", 3},
      {R"({"url":"http://a.test/","policy":"many"})", 9},
      {R"({"url":"http://b.test/","policy":"few"})", 3},
      {R"({"url":"http://a.test/","set":{"max_elapsed_time":"7s"}})", 2, 7s},
      {R"({"url":"http://b.test/","set":{"max_elapsed_time":"7s"}})", 4, 7s},
      {R"({"url":"http://b.test/","set":{"max_elapsed_time":"8s"}})", 4, 8s},
      {R"({"url":"http://a.test/","policy":"few","set":{"max_elapsed_time":"7s"}})", 3, 7s},
      {R"({"url":"http://a.test/","policy":"few","set":{"max_attempts":6}})", 6},
      {R"({"url":"http://a.test/","policy":"many","set":{"max_elapsed_time":"7s"}})", 9, 7s},
  };
  // The second time, they are found in the cache.
  for (int turn = 0; turn < 2; ++turn) {
    for (const auto& row : rows) {
      CAPTURE(row.text);
      const auto found = of_lines.find(stored_line(row.text, InputFormat::Auto));
      REQUIRE(found.has_value());
      CHECK((*found)->max_attempts == row.max_attempts);
      CHECK((*found)->max_elapsed_time == row.max_elapsed_time);
    }
    const auto missing = of_lines.find(
        stored_line(R"({"url":"http://a.test/","policy":"nope"})", InputFormat::Auto));
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().code == Errc::InvalidRequest);
    CHECK(missing.error().message == R"(no policy and no preset is named "nope")");
    const auto wrong = of_lines.find(
        stored_line(R"({"url":"http://a.test/","set":{"max_attempts":"x"}})", InputFormat::Auto));
    CHECK_FALSE(wrong.has_value());
  }
}

TEST_CASE("the header of a key is that of the policy for POST and PATCH, or that of the line") {
  const auto header_of = [](const std::string& members, const char* header_of_policy) {
    RetryPolicy policy;
    policy.idempotency_key = header_of_policy;
    return key_header(stored_line(R"({"url":"http://a/")" + members + "}", InputFormat::Auto),
                      policy);
  };
  CHECK(header_of(R"(,"method":"POST")", "X-Key") == "X-Key");
  CHECK(header_of(R"(,"method":"PATCH")", "X-Key") == "X-Key");
  CHECK(header_of(R"(,"method":"PUT")", "X-Key").empty());
  CHECK(header_of("", "X-Key").empty());
  CHECK(header_of(R"(,"key":true)", "X-Key") == "X-Key");
  CHECK(header_of(R"(,"key":"k")", "X-Key") == "X-Key");
  CHECK(header_of(R"(,"method":"POST")", "").empty());
  CHECK(header_of(R"(,"key":true)", "") == "Idempotency-Key");
  CHECK(header_of(R"(,"headers":{"idempotency-key":"k"})", "") == "Idempotency-Key");
  CHECK(header_of(R"(,"headers":{"X-Key":"k"})", "").empty());
}
