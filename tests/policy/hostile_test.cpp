// Texts that mean harm: bounded time and memory, and an error.
#include "tests/policy/policy_cases.hpp"

#include <doctest/doctest.h>

#include <malloc.h>

#include <ctime>
#include <string>

using namespace httpretry;
using cases::said_of;

namespace {

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("64 levels are read and the 65th is refused, however many follow") {
  const auto nested = [](std::size_t depth) {
    return "{\"version\": 1, \"x\": " + repeated("[", depth) + repeated("]", depth) + "}";
  };
  CHECK(said_of(nested(63)) ==
        "p.json:1:16: /x: unknown key; the keys are: $schema, version, default, policies, "
        "endpoints, tests\n");
  CHECK(said_of(nested(64)).find("nested deeper than 64") != std::string::npos);
  CHECK(said_of(repeated("[", 1'000'000)).find("nested deeper than 64") != std::string::npos);
  CHECK(said_of(repeated("{\"a\":", 1'000'000)).find("deeper than 64") != std::string::npos);
}

TEST_CASE("megabytes of mistakes are told by the first thousand" * doctest::test_suite("large")) {
  const auto said = said_of("{\"version\": 1" + repeated(", \"max_attemps\": 1", 100'000) + "}");
  CHECK(said.find("duplicate key") != std::string::npos);
  CHECK(said.find("there are more problems than these") != std::string::npos);
  CHECK(said.size() < 500'000);
  CHECK_FALSE(said_of("{\"version\": 1, \"policies\": {\"a\": {\"max_attempts\": " +
                      repeated("9", 10'000'000) + "}}}")
                  .empty());
  CHECK_FALSE(said_of("{\"" + repeated("a", 10'000'000) + "\": 1}").empty());
  CHECK_FALSE(said_of(repeated("/**/", 2'000'000)).empty());
  CHECK_FALSE(said_of("[" + repeated("[],", 3'000'000) + "[]]").empty());
  CHECK_FALSE(said_of(std::string(10'000'000, '\xff')).empty());
  CHECK_FALSE(said_of(std::string(1'000, '\0')).empty());
}

TEST_CASE("no text makes its problems cost more than itself" * doctest::test_suite("large")) {
  // Of the processor's: what else the machine does is no matter here.
  const auto seconds = [](const std::string& text) {
    const auto begin = std::clock();
    CHECK_FALSE(said_of(text).empty());
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  std::string names;
  std::string references;
  const std::string word(40, 'a');
  for (auto i = 0; i < 10'000; ++i) {
    names += ", \"" + word + std::to_string(i) + "\": {}";
    references += ", {\"match\": {\"port\": " + std::to_string(i + 1) + "}, \"policy\": \"b" +
                  word + std::to_string(i) + "\"}";
  }
  // Milliseconds to a few seconds each; generous, as quadratic times would be hours.
  CHECK(seconds("{\"version\": 1, \"policies\": {" + names.substr(2) + "}, \"endpoints\": [" +
                references.substr(2) + "]}") < 200);
  CHECK(seconds("{\"version\": 1, \"policies\": {\"" + std::string(5'000'000, 'a') +
                "\": {\"x\": 1" + repeated(", \"x\": 1", 100'000) + "}}}") < 200);
  CHECK(seconds("{\"version\": 1, \"" + std::string(5'000'000, 'a') + "\": [1" +
                repeated("/**/, 1", 100'000) + "]}") < 200);
  CHECK(seconds("{\"version\": 1, \"default\": {\"retry_on\": {\"statuses\": [1" +
                repeated(", 1", 200'000) + "]}}}") < 200);
  CHECK(seconds("{\"version\": 1, \"default\": {\"max_attemps\": 1" +
                repeated(", \"" + word + "\": 1", 50'000) + "}}") < 200);
}

TEST_CASE("a hundred thousand entries are read, and their ties are found" *
          doctest::test_suite("large")) {
  std::string entries;
  for (auto i = 0; i < 100'000; ++i) {
    entries += ", {\"match\": {\"host\": \"h" + std::to_string(i) +
               ".example\"}, \"policy\": \"standard\"}";
  }
  const auto file = [&] { return "{\"version\": 1, \"endpoints\": [" + entries.substr(2) + "]}"; };
  CHECK(said_of(file()).empty());
  entries += ", {\"match\": {\"host\": \"H7.example.\"}, \"policy\": \"standard\"}";
  CHECK(said_of(file()).find("/endpoints/100000: matches the same requests as /endpoints/7 ") !=
        std::string::npos);
}

TEST_CASE("a policy in each of very many entries takes little more than its numbers" *
          doctest::test_suite("large")) {
  constexpr auto kEntries = 20'000;
  std::string entries;
  for (auto i = 0; i < kEntries; ++i) {
    entries += ", {\"match\": {\"host\": \"h" + std::to_string(i) +
               ".example\"}, \"policy\": {\"max_attempts\": " + std::to_string(i + 1) +
               ", \"max_elapsed_time\": \"none\"}}";
  }
  const auto file = "{\"version\": 1, \"endpoints\": [" + entries.substr(2) + "]}";
  const auto heap = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const auto before = heap();
  const auto set = parse_policies(file, "p.json").value();
  CHECK(heap() - before < std::size_t{6'000} * kEntries);  // always true in builds with a sanitizer
  const auto& found = set.find("GET", Url::parse("http://h7.example/").value());
  CHECK(found.policy->max_attempts == 8);
  CHECK(found.values.find("max_attempts")->source.substr(0, 9) == "p.json:1:");
}

TEST_CASE("a chain of extends may be long, and may be a circle" * doctest::test_suite("large")) {
  std::string policies = R"("p0": {"max_attempts": 9})";
  for (auto i = 1; i < 20'000; ++i) {
    policies +=
        ", \"p" + std::to_string(i) + "\": {\"extends\": \"p" + std::to_string(i - 1) + "\"}";
  }
  const auto file = [&] {
    return "{\"version\": 1, \"default\": \"p19999\", \"policies\": {" + policies + "}}";
  };
  CHECK(said_of(file()).empty());
  policies.replace(policies.find("\"max_attempts\": 9"), 17, "\"extends\": \"p19999\"");
  CHECK(said_of(file()).find("extends forms a cycle") != std::string::npos);
}
