// PolicyTest: a test that stands in a policy file, under "tests". The library reads and checks it;
// `httpretry policy check` runs it, in virtual time.
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

struct HTTPRETRY_API PolicyTest {
  PolicyTest() = default;

  struct HTTPRETRY_API Request {
    Request() = default;

    std::string method = "GET";
    std::string url;
    Headers headers;
  };

  // What happens to one request, or to several.
  struct HTTPRETRY_API Outcomes {
    Outcomes() = default;

    std::string text;      // as `httpretry plan --outcomes` takes it; or, as JSON,
    bool is_step = false;  // a step of a scenario (lib/extras/testing)
    Problem place;         // where it stands; without a message
  };

  struct Wait {
    bool range = false;  // else `least` and `most` are the same
    Duration least{};
    Duration most{};
  };
  // What is left out is not compared.
  struct HTTPRETRY_API Expected {
    Expected() = default;

    std::optional<std::string> endpoint;  // empty where no entry is expected to match
    std::optional<int> attempts;
    std::optional<std::vector<Wait>> waits;  // after each attempt but the last
    std::optional<Reason> reason;
    std::optional<int> status;  // of the response that the call ends with
    std::optional<bool> success;
  };

  Request request;
  std::vector<Outcomes> outcomes;
  Expected expected;
  // Where each key of `expect` stands: problems without a message.
  std::map<std::string, Problem, std::less<>> places;
};

}  // namespace httpretry
