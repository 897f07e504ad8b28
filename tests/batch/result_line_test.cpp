// Lines of results and dead letters that are read back.
#include "lib/extras/batch/line_jobs.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace httpretry::batch;

TEST_CASE("a line of the results says which job has ended, and how") {
  const std::string dead = R"({"id":"a","line":17,"run":"t","state":"dead","status":404,)"
                           R"("stop_reason":"not_retryable","attempts":[{},{}]})";
  const auto result = read_result_line(dead);
  REQUIRE(result.has_value());
  CHECK(result->token == "t");
  CHECK(result->id == "a");
  CHECK(result->input_line == 17);
  CHECK(result->end.state == State::Dead);
  CHECK(result->end.status == 404);
  CHECK(result->end.reason == "not_retryable");
  CHECK(result->end.attempts == 2);
  CHECK(result->end.result == dead + "\n");
  const auto shortest = read_result_line(R"({"line":1,"run":"t","state":"done"})");
  REQUIRE(shortest.has_value());
  CHECK(shortest->id.empty());
  CHECK(shortest->input_line == 1);
  CHECK(shortest->end.state == State::Done);
  CHECK(shortest->end.status == 0);
  CHECK(shortest->end.reason.empty());
  CHECK(shortest->end.attempts == 0);
}

TEST_CASE("a line that no run has written is no result") {
  for (const auto* const line :
       {"", "{", "1", "[]", "{}", R"({"line":1,"state":"done"})", R"({"run":"t","state":"done"})",
        R"({"line":1,"run":"t"})", R"({"line":1,"run":"","state":"done"})",
        R"({"line":0,"run":"t","state":"done"})", R"({"line":-1,"run":"t","state":"done"})",
        R"({"line":"1","run":"t","state":"done"})", R"({"line":1,"run":2,"state":"done"})",
        R"({"line":1,"run":"t","state":"queued"})", R"({"line":1,"run":"t","state":"unknown"})",
        R"({"line":1,"run":"t","state":3})", R"({"line":1,"run":"t","state":"done"} x)"}) {
    CAPTURE(line);
    CHECK_FALSE(read_result_line(line).has_value());
  }
}

TEST_CASE("a dead letter has its result as its last member") {
  CHECK(result_in_dead_letter(R"({"url":"http://a/","last":{"id":"a}"}})") == R"({"id":"a}"})");
  for (const auto* const line : {"", "1", "[1]", "{}", R"({"url":"http://a/"})",
                                 R"({"last":{"id":"a"},"url":"http://a/"})"}) {
    CAPTURE(line);
    CHECK(result_in_dead_letter(line).empty());
  }
}
