// Every limit of time: which outcome it gives, and that `timed_out` knows it. The clock begins at
// 0.
#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/client/report.hpp>

#include <doctest/doctest.h>

#include <functional>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Response wait_for(const char* seconds) {
  Response response(429);
  response.headers.add("Retry-After", seconds);
  return response;
}

}  // namespace

TEST_CASE("a call that a limit of time ended is known as such, whatever its outcome") {
  struct Row {
    const char* limit;
    Outcome comes;
    Duration after;
    std::function<void(RetryPolicy&, Request&, CallOptions&)> set;
    const char* ends;  // the status or the error
    std::size_t sends;
    bool timed_out;
  };
  const auto no_limit = [](RetryPolicy&, Request&, CallOptions&) {};
  const Row rows[] = {
      {"none", Response(503), 1s, no_limit, "503", 4, false},
      {"none, permanent", Response(404), 1s, no_limit, "404", 1, false},
      {"timeout within an attempt", Response(200), 3s,
       [](auto&, auto&, auto& options) { options.timeout = 2s; }, "timeout", 1, true},
      {"timeout within a wait", Response(503), 0s,
       [](auto&, auto&, auto& options) { options.timeout = 2s; }, "503", 2, true},
      {"timeout within a wait after an error", error_of(Errc::Connect), 0s,
       [](auto&, auto&, auto& options) { options.timeout = 2s; }, "connect", 2, true},
      {"deadline", Response(503), 0s,
       [](auto&, auto&, auto& options) { options.deadline = Time(2s); }, "503", 2, true},
      {"max_elapsed_time within a wait", Response(503), 0s,
       [](auto& policy, auto&, auto&) { policy.max_elapsed_time = 2s; }, "503", 2, true},
      {"max_elapsed_time within an attempt", Response(200), 3s,
       [](auto& policy, auto&, auto&) { policy.max_elapsed_time = 2s; }, "timeout", 1, true},
      {"attempt_timeout, each time", Response(200), 3s,
       [](auto& policy, auto&, auto&) { policy.attempt_timeout = 2s; }, "timeout", 4, true},
      {"response_timeout of the policy", Response(200), 3s,
       [](auto& policy, auto&, auto&) { policy.response_timeout = 2s; }, "timeout", 4, true},
      {"response_timeout of the request", Response(200), 3s,
       [](auto&, auto& request, auto&) { request.edit_options().response_timeout = 2s; }, "timeout",
       4, true},
      {"the shorter of both", Response(200), 3s,
       [](auto& policy, auto& request, auto&) {
         policy.response_timeout = 2s;
         request.edit_options().response_timeout = 1min;
       },
       "timeout", 4, true},
      {"respond_by within an attempt, which is not retried", Response(200), 3s,
       [](auto&, auto& request, auto&) { request.edit_options().respond_by = Time(2s); }, "timeout",
       1, true},
      {"respond_by within a wait", Response(503), 0s,
       [](auto&, auto& request, auto&) { request.edit_options().respond_by = Time(2s); }, "503", 2,
       true},
      {"the server asks for too long a wait", wait_for("9"), 0s,
       [](auto&, auto&, auto& options) { options.timeout = 2s; }, "429", 1, false},
  };
  for (const auto& row : rows) {
    CAPTURE(row.limit);
    Conversation talk;
    talk.network->say(row.comes, row.after);
    auto policy = steady_policy();
    auto request = Request::get("http://x/");
    CallOptions options;
    row.set(policy, request, options);
    auto client = talk.client({retry(policy)});
    const auto outcome = client.send(request, options);
    CHECK(attempt_text(history_of(outcome).attempts.back()) == row.ends);
    CHECK(talk.sends() == row.sends);
    CHECK(timed_out(outcome) == row.timed_out);
    if (!outcome) CHECK(outcome.error().is_timeout() == row.timed_out);
  }
}

TEST_CASE("the end of a call says what used its time up") {
  struct Row {
    std::vector<Duration> attempts;
    Duration timeout;
    const char* detail;
  };
  const Row rows[] = {
      {{2960ms}, 3s, "a wait of 1.00 s would pass the deadline by 960 ms; the attempt took 2.96 s"},
      {{1s, 500ms},
       3s,
       "a wait of 2.00 s would pass the deadline by 1.50 s; the attempts took 1.50 s, the waits "
       "1.00 s"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.detail);
    Conversation talk;
    for (const auto took : row.attempts) talk.network->say(Response(503), took);
    auto client = talk.client({retry(steady_policy())});
    CallOptions options;
    options.timeout = row.timeout;
    CHECK(history_of(client.send(Request::get("http://x/"), options)).detail == row.detail);
  }
}

TEST_CASE("only the hops that a limit is for have used its time up") {
  Conversation talk;
  talk.network->say(redirect_to(307, "http://y/"), 1900ms).say(Response(503), 1500ms);
  auto policy = steady_policy();
  policy.max_elapsed_time = 2s;
  auto client = talk.client({redirect(), retry(policy)});
  CHECK(client.get("http://x/")->history.detail ==
        "a wait of 1.00 s would pass max_elapsed_time 2.00 s by 500 ms; the attempt took 1.50 s");
}
