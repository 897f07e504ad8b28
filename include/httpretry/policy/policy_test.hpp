#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/http/time.hpp>
#include <httpretry/json/problem.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

// PolicyTest is a test in a policy file, under "tests". The library reads and validates it.
// `httpretry policy check` runs it in virtual time.
struct HTTPRETRY_API PolicyTest {
  PolicyTest() = default;

  // The request that the policy is tested with.
  struct HTTPRETRY_API Request {
    Request() = default;

    std::string method = "GET";
    std::string url;
    Headers headers;
  };

  // The outcomes of one request, or of several.
  struct HTTPRETRY_API Outcomes {
    Outcomes() = default;

    std::string text;      // in the syntax of `httpretry plan --outcomes`; JSON if is_step is set
    bool is_step = false;  // true for a step of a scenario (lib/extras/testing)
    Problem place;         // its position in the file; without a message
  };

  // The expected wait, as a value or a range.
  struct Wait {
    bool range = false;  // if false, `least` and `most` are equal
    Duration least{};
    Duration most{};
  };
  // The expected result. Members that are not set are not compared.
  struct HTTPRETRY_API Expected {
    Expected() = default;

    std::optional<std::string> endpoint;  // an empty string if no entry is expected to match
    std::optional<int> attempts;
    std::optional<std::vector<Wait>> waits;  // after each attempt except the last
    std::optional<Reason> reason;
    std::optional<int> status;  // of the final response
    std::optional<bool> success;
  };

  Request request;
  std::vector<Outcomes> outcomes;
  Expected expected;
  // The position of each key of `expect`, as problems without a message.
  std::map<std::string, Problem, std::less<>> places;
};

}  // namespace httpretry
