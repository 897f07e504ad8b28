// Answers and errors, and what they are classified as.
#pragma once

#include <httpretry/retry/classify.hpp>

#include <string>
#include <utility>

namespace httpretry_test {

using namespace std::chrono_literals;
using namespace httpretry;  // NOLINT: these tests speak of little else

inline constexpr WallTime kNow{};

inline Response answer(int status, Headers headers = {}, std::string body = {}) {
  Response response(status, std::move(body));
  response.headers = std::move(headers);
  return response;
}

inline Classified classified(const Response& response, const RetryPolicy& policy = RetryPolicy()) {
  const Outcome outcome(response);
  return classify(policy, Observed(outcome, kNow));
}

inline Classified classified(const Error& error, const RetryPolicy& policy = RetryPolicy()) {
  const Outcome outcome(error);
  return classify(policy, Observed(outcome, kNow));
}

}  // namespace httpretry_test
