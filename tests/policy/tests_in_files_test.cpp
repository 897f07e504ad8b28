// `tests` of a policy file: what is read of them, and what is said of those that are wrong.
#include "tests/policy/policy_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

using namespace httpretry;
using namespace std::chrono_literals;

TEST_CASE("each rule for a test lets good ones pass and names what is bad, once") {
  for (const auto& one : cases::tests()) {
    CAPTURE(one.text);
    const auto file = cases::file_with_test(one.text);
    const auto said = cases::said_of(file);
    CAPTURE(said);
    CHECK(std::count(said.begin(), said.end(), '\n') == (one.problem.empty() ? 0 : 1));
    CHECK(said.find(one.problem) != std::string::npos);
    const auto checked = check_policies(file, "p.json");
    CHECK(checked.set.has_value() == one.problem.empty());
    CHECK(checked.tests.size() == (one.problem.empty() ? 1 : 0));
    // A program that loads the file is told, too.
    CHECK(parse_policies(file, "p.json").has_value() == one.problem.empty());
  }
}

TEST_CASE("a test is read with the places of what it expects") {
  const auto file = cases::file_with_test(
      R"({"request": {"method": "PUT", "url": "http://a/x", "headers": {"k": "v"}},
 "outcomes": ["503,timeout", {"status": 200, "body": "x"}],
 "expect": {"endpoint": "api", "attempts": 3, "waits": ["1s", {"max": "2s"}],
  "reason": "success", "status": 200, "success": true}})");
  const auto tests = check_policies(file, "p.json").tests;
  REQUIRE(tests.size() == 1);
  const auto& [request, outcomes, expected, places] = tests[0];
  CHECK(request.method == "PUT");
  CHECK(request.url == "http://a/x");
  CHECK(request.headers.get("K") == "v");
  REQUIRE(outcomes.size() == 2);
  CHECK_FALSE(outcomes[0].is_step);
  CHECK(outcomes[0].text == "503,timeout");
  CHECK(outcomes[1].is_step);
  CHECK(outcomes[1].text == R"({"status":200,"body":"x"})");
  CHECK(to_string(outcomes[1].place) == "p.json:2:30: /tests/0/outcomes/1: ");
  CHECK(expected.endpoint == "api");
  CHECK(expected.attempts == 3);
  REQUIRE(expected.waits);
  REQUIRE(expected.waits->size() == 2);
  CHECK_FALSE(expected.waits->at(0).range);
  CHECK(expected.waits->at(0).least == 1s);
  CHECK(expected.waits->at(0).most == 1s);
  CHECK(expected.waits->at(1).range);
  CHECK(expected.waits->at(1).least == 0s);
  CHECK(expected.waits->at(1).most == 2s);
  CHECK(expected.reason == Reason::Success);
  CHECK(expected.status == 200);
  CHECK(expected.success == true);
  CHECK(places.size() == 6);
  CHECK(to_string(places.find("attempts")->second) == "p.json:3:44: /tests/0/expect/attempts: ");
}

TEST_CASE("what is left out of a test is not expected") {
  const auto tests = check_policies(cases::file_with_test(R"({"request": {"url": "http://b/"},
      "expect": {"endpoint": null}})"),
                                    "p.json")
                         .tests;
  REQUIRE(tests.size() == 1);
  CHECK(tests[0].request.method == "GET");
  CHECK(tests[0].outcomes.empty());
  CHECK(tests[0].expected.endpoint == "");
  CHECK_FALSE(tests[0].expected.attempts);
  CHECK_FALSE(tests[0].expected.waits);
  CHECK_FALSE(tests[0].expected.reason);
  CHECK_FALSE(tests[0].expected.status);
  CHECK_FALSE(tests[0].expected.success);
}

TEST_CASE("tests are no part of a set: it equals the one without them, and does not print them") {
  const auto with = parse_policies(
      cases::file_with_test(R"({"request": {"url": "http://a/"}, "expect": {"endpoint": "api"}})"),
      "p.json");
  const auto without = parse_policies(cases::file_with_test(""), "p.json");
  CHECK(with.value() == without.value());
  CHECK(with.value().print() == without.value().print());
  CHECK(with.value().print().find("tests") == std::string::npos);
}

TEST_CASE("tests of a file with another mistake are not given") {
  const auto checked = check_policies(
      R"({"version": 2, "tests": [{"request": {"url": "http://a/"}, "expect": {"endpoint": null}}]})",
      "p.json");
  CHECK(checked.problems.size() == 1);
  CHECK(checked.tests.empty());
  CHECK(cases::said_of(R"({"version": 1, "tests": {}})") ==
        "p.json:1:25: /tests: expected an array, found an object\n");
}
