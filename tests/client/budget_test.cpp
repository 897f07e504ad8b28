#include "conversation.hpp"
#include "policies.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Left = std::vector<std::optional<std::int64_t>>;

Left left_after(const History& history) {
  Left left;
  for (const auto& attempt : history.attempts) left.push_back(attempt.budget_left);
  return left;
}

// What the next call finds: it fails, asks for no retry, and so neither takes nor gives.
std::int64_t left_at(Client& client, const std::string& url = "http://x/") {
  auto probe = Request::get(url);
  probe.edit_options().retry = false;
  const auto outcome = client.send(probe);
  const auto& history = outcome ? outcome->history : outcome.error().history;
  return history.attempts.back().budget_left.value_or(-1);
}

// Says 503 until told otherwise.
struct Server {
  Outcome answer = Response(503);
  void serve(Conversation& talk) {
    talk.network->say([this](const Request&, int) { return answer; });
  }
};

}  // namespace

TEST_CASE("the budget is taken from at the decision, and a success gives the last cost back") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(503)).say(Response(200)).say(Response(200));
  auto client = talk.client({retry(thrifty_policy(100))});
  CHECK(left_after(client.get("http://x/")->history) == Left{90, 80, 90});
  CHECK(left_after(client.get("http://x/")->history) == Left{91});
}

TEST_CASE("a failed call gives nothing back") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(404));
  auto client = talk.client({retry(thrifty_policy(100))});
  CHECK(left_after(client.get("http://x/")->history) == Left{90, 90});
}

TEST_CASE("without enough in the budget a failure is handed out as it came, with its hint") {
  Conversation talk;
  Response busy(503, "busy");
  busy.headers.add("Retry-After", "7");
  talk.network->say(busy);
  auto client = talk.client({retry(thrifty_policy(9))});
  const auto outcome = client.get("http://x/");
  REQUIRE(outcome);
  CHECK(outcome->body == "busy");
  CHECK(outcome->history.stop_reason == Reason::BudgetExhausted);
  CHECK(outcome->history.detail == "the budget is too low for a retry");
  CHECK(outcome->history.retry_at == talk.clock->wall_now() + 7s);
  CHECK_FALSE(outcome->history.attempts[0].retried);
  CHECK(left_after(outcome->history) == Left{9});
}

TEST_CASE("a policy without a budget has none to report") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200));
  auto policy = steady_policy();
  policy.adaptive = true;
  const auto outcome = talk.client({retry(policy)}).get("http://x/");
  CHECK(left_after(outcome->history) == Left{std::nullopt, std::nullopt});
}

TEST_CASE("a retry that is canceled in its wait costs nothing") {
  Conversation talk;
  Server server;
  server.serve(talk);
  auto client = talk.client({retry(thrifty_policy(100))});
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  client.send_then(
      Request::get("http://x/"), [](const Outcome&) {}, options);
  talk.clock->advance(1500ms);  // two decisions, one retry sent
  CHECK(left_at(client) == 80);

  stop.request_stop();
  talk.clock->run();

  CHECK(left_at(client) == 90);
}

TEST_CASE("what was paid for a retry that was sent is not given back for a poll that is canceled") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(202)).say(Response(503));
  auto policy = thrifty_policy(100);
  policy.retry_on.pending.emplace().statuses = {202};
  auto client = talk.client({retry(policy)});
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  client.send_then(
      Request::get("http://x/"), [](const Outcome&) {}, options);
  talk.clock->advance(1500ms);
  CHECK(talk.clock->sleeping() == 1);

  stop.request_stop();
  talk.clock->run();

  CHECK(left_at(client) == 90);
}

TEST_CASE("a task destroyed in its wait gives back what it took") {
  Conversation talk;
  Server server;
  server.serve(talk);
  auto client = talk.client({retry(thrifty_policy(100))});
  {
    auto task = client.co_send(Request::get("http://x/"));
    CHECK(task.operator co_await().await_suspend(std::noop_coroutine()));
    talk.clock->run();
    CHECK(left_at(client) == 90);
  }
  talk.clock->run();
  CHECK(left_at(client) == 100);
}

TEST_CASE("a middleware below that throws settles its call as a failure, once") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(200)).say(Response(503));
  int asked = 0;
  auto throwing = on_outcome("grumpy", [&](const Request&, Outcome&, Call&) {
    if (++asked == 2) throw std::runtime_error("no");
  });
  auto client = talk.client({retry(thrifty_policy(100)), throwing});
  const auto outcome = client.get("http://x/");
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Internal);
  CHECK(left_after(outcome.error().history) == Left{90, 90});
  CHECK(left_at(client) == 90);
}

TEST_CASE("hosts have budgets of their own, by name and port") {
  Conversation talk;
  Server server;
  server.serve(talk);
  auto client = talk.client({retry(thrifty_policy(30))});
  (void)client.get("http://x/");
  CHECK(left_at(client, "http://x/other") == 0);
  CHECK(left_at(client, "http://x:8080/") == 30);
  CHECK(left_at(client, "http://y/") == 30);
}

TEST_CASE("a policy's budget is one for all hosts, and not that of another policy") {
  Conversation talk;
  Server server;
  server.serve(talk);
  const auto policy = thrifty_policy(30, BudgetPolicy::Scope::Policy);
  auto client = talk.client({retry(policy)});
  (void)client.get("http://x/");
  CHECK(left_at(client, "http://y/") == 0);

  auto own = Request::get("http://y/");
  own.edit_options().retry = false;
  own.edit_options().policy = std::make_shared<const RetryPolicy>(policy);
  CHECK(client.send(own)->history.attempts[0].budget_left == 30);
}

TEST_CASE("an endpoint's budget is one for its hosts; what matches none goes by host") {
  Conversation talk;
  Server server;
  server.serve(talk);
  ResolvedPolicy resolved;
  resolved.policy =
      std::make_shared<const RetryPolicy>(thrifty_policy(30, BudgetPolicy::Scope::Endpoint));
  for (const auto* endpoint : {"items", ""}) {
    resolved.endpoint = endpoint;
    auto client = talk.client({retry(PolicySet(resolved))});
    (void)client.get("http://x/");
    CHECK(left_at(client, "http://x/") == 0);
    CHECK(left_at(client, "http://y/") == (resolved.endpoint.empty() ? 30 : 0));
  }
}

TEST_CASE("of a thousand calls that fail together, as many retry as the budget pays for") {
  Conversation talk;
  Server server;
  server.serve(talk);
  auto client = talk.client({retry(thrifty_policy(500))});
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    client.send_then(Request::get("http://x/"), [&](const Outcome& outcome) {
      if (outcome->history.stop_reason == Reason::BudgetExhausted) ++refused;
    });
  }
  talk.clock->run();
  CHECK(talk.sends() == 1000);
  CHECK(talk.clock->sleeping() == 50);
  CHECK(refused == 950);

  talk.clock->advance(1h);
  CHECK(talk.sends() == 1050);
  CHECK(refused == 1000);
}

TEST_CASE("successes fill the budget again, up to its capacity") {
  Conversation talk;
  Server server;
  server.serve(talk);
  auto client = talk.client({retry(thrifty_policy(30))});
  (void)client.get("http://x/");
  server.answer = Response(200);
  for (int i = 0; i < 100; ++i) (void)client.get("http://x/");
  CHECK(left_at(client) == 30);
}

TEST_CASE("polls and resends on a fresh connection cost nothing") {
  Conversation talk;
  Error stale(Errc::Receive);
  stale.exchange.sent = Sent::Maybe;
  stale.exchange.stale_connection = true;
  talk.network->say(stale).say(Response(202)).say(Response(202)).say(Response(503));
  auto policy = thrifty_policy(100);
  policy.max_attempts = 1;
  policy.retry_on.pending.emplace().statuses = {202};
  const auto outcome = talk.client({retry(policy)}).get("http://x/");
  CHECK(left_after(outcome->history) == Left{100, 100, 100, 100});
}
