#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/middleware/retry_call.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

RetryOptions with_policy(RetryPolicy policy) {
  ResolvedPolicy resolved;
  resolved.policy = std::make_shared<const RetryPolicy>(std::move(policy));
  RetryOptions options;
  options.policies = PolicySet(std::move(resolved));
  return options;
}

// Writes down what it is asked.
class NotingBudget final : public RetryBudget {
 public:
  explicit NotingBudget(int tokens) : tokens_(tokens) {}
  bool take(const Request& request, const Classified& classified, Time) override {
    notes.push_back("take " + request.method() + " " + to_string(classified.rule));
    return tokens_-- > 0;
  }
  void give_back(const Request&, Time) override { notes.emplace_back("give back"); }
  void settle(const Request&, bool success, Time) override {
    notes.emplace_back(success ? "success" : "failure");
  }
  std::vector<std::string> notes;

 private:
  int tokens_;
};

using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("a policy of a call that no middleware would follow is refused, and nothing is sent") {
  Conversation told;
  told.network->say(Response(200));
  auto client = told.client({});
  CallOptions options;
  options.policy = std::make_shared<const RetryPolicy>();
  const auto blocking = client.send(Request::get("http://x/"), options);
  auto future = client.send_async(Request::get("http://x/"), options);
  for (const auto& outcome : {blocking, future.get()}) {
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
    CHECK(outcome.error().message ==
          "the call has a policy, but the client has no retry middleware: add retry() to its "
          "middlewares");
    CHECK(outcome.error().history.stop_reason == Reason::NotRetryable);
  }
  CHECK(told.sends() == 0);
}

TEST_CASE("a policy in code that makes no sense is refused where the middleware is made") {
  RetryPolicy policy;
  policy.max_attempts = 0;
  CHECK_THROWS_AS(static_cast<void>(retry(policy)), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(retry_call(policy, [] { return AttemptResult<>::success(); })),
                  std::invalid_argument);
}

TEST_CASE("the scripted network takes no URL that the real one would not") {
  Conversation told;
  told.network->say(Response(200));
  auto client = told.client({});
  const auto outcome = client.get("nonsense");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::InvalidRequest);
  CHECK(told.sends() == 0);
}

TEST_CASE("a classifier of one's own decides what a response means, and the policy the rest") {
  Conversation talk;
  talk.network->say(Response(200, "not yet")).say(Response(200, "done"));
  auto options = with_policy(steady_policy());
  options.classify = [](const RetryPolicy& policy, const Request&, const Observed& observed) {
    auto classified = classify(policy, observed);
    if (observed.body == "not yet") classified.cls = Class::Transient;
    return classified;
  };
  const auto outcome = talk.client({retry(options)}).get("http://x/");
  CHECK(outcome->body == "done");
  CHECK(outcome->history.attempts[0].cls == Class::Transient);
  CHECK(talk.network->requests()[1].when == Time(1s));
}

TEST_CASE("a backoff of one's own is asked after failures only, and the server is still heard") {
  Conversation talk;
  Response busy(503);
  busy.headers.add("Retry-After", "9");
  talk.network->say(Response(503)).say(busy).say(Response(503)).say(Response(200));
  auto options = with_policy(steady_policy());
  std::vector<int> asked;
  options.backoff = [&](const RetryPolicy&, const Classified&, const RetryState& facts, double u) {
    CHECK(u == 0.5);
    asked.push_back(facts.failures);
    return facts.failures == 3 ? Duration(-1s) : Duration(facts.failures * 5s);
  };
  const auto outcome = talk.client({retry(options)}).get("http://x/");
  CHECK(outcome->status == 200);
  CHECK(asked == std::vector<int>{1, 2, 3});
  const auto& attempts = outcome->history.attempts;
  CHECK(attempts[0].wait == 5s);
  CHECK(attempts[1].backoff == 10s);
  CHECK(attempts[1].wait == 10s);
  CHECK(attempts[2].wait == 0s);
}

TEST_CASE("a budget of one's own is asked for each retry and told of the end") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(429)).say(Response(200)).say(Response(200));
  auto options = with_policy(thrifty_policy(1));
  const auto budget = std::make_shared<NotingBudget>(10);
  options.budget = budget;
  auto client = talk.client({retry(options)});
  const auto outcome = client.get("http://x/");
  CHECK(outcome->status == 200);
  CHECK(budget->notes == Notes{"take GET status 503", "take GET status 429", "success"});
  CHECK(outcome->history.attempts[0].budget_left == std::nullopt);
}

TEST_CASE("a budget of one's own that says no ends the call as a failure") {
  Conversation talk;
  talk.network->say(Response(503));
  auto options = with_policy(steady_policy());
  const auto budget = std::make_shared<NotingBudget>(0);
  options.budget = budget;
  const auto outcome = talk.client({retry(options)}).get("http://x/");
  CHECK(outcome->history.stop_reason == Reason::BudgetExhausted);
  CHECK(budget->notes == Notes{"take GET status 503", "failure"});
}

TEST_CASE("a retry canceled in its wait is given back to a budget of one's own, once") {
  Conversation talk;
  talk.network->say(Response(503));
  auto options = with_policy(steady_policy());
  const auto budget = std::make_shared<NotingBudget>(10);
  options.budget = budget;
  {
    auto client = talk.client({retry(options)});
    client.send_then(Request::get("http://x/"), [](const Outcome&) {});
    talk.clock->run();
  }
  talk.clock->run();
  CHECK(budget->notes == Notes{"take GET status 503", "give back", "failure"});
}

TEST_CASE(
    "a hook that throws ends the call with the middleware's name, and the budget is settled") {
  Conversation talk;
  talk.network->say(Response(503));
  auto options = with_policy(steady_policy());
  const auto budget = std::make_shared<NotingBudget>(10);
  options.budget = budget;
  int looked = 0;
  options.classify = [&](const RetryPolicy& policy, const Request&, const Observed& observed) {
    if (++looked == 2) throw std::runtime_error("no idea");
    return classify(policy, observed);
  };
  const auto outcome = talk.client({retry(options)}).get("http://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message == "middleware \"retry\" threw: no idea");
  CHECK(budget->notes == Notes{"take GET status 503", "failure"});
}

TEST_CASE("an exception while a body is opened ends the call, and nothing was sent") {
  const auto throws = [](const auto& exception) {
    return Body::reopened(
        [exception]() -> Result<std::unique_ptr<BodyReader>> { throw exception; });
  };
  for (const auto& body : {throws(std::runtime_error("boom")), throws(std::logic_error("boom"))}) {
    for (const bool real : {false, true}) {
      CAPTURE(real);
      FaultServer server({200});
      ClientOptions options;
      const auto network = std::make_shared<ScriptedTransport>();
      network->say(Response(200));
      if (!real) options.transport = network;
      Client client(options);
      const auto outcome = client.send(Request::put(server.url(), body));
      REQUIRE_FALSE(outcome);
      const auto& error = outcome.error();
      CHECK(error.code == Errc::InvalidRequest);
      CHECK(error.message == "opening the body threw: boom");
      CHECK(error.permanent);
      CHECK(error.exchange.sent == Sent::Never);
      CHECK(server.requests() == 0);
    }
  }
}
