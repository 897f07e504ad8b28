// What can be asked of an attempt: its exchange, and the policy that judged it.
#include "conversation.hpp"
#include "policies.hpp"

#include <httpretry/client/report.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <doctest/doctest.h>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr auto kPolicies = R"({
  "version": 1,
  "default": "careful",
  "policies": {"careful": {"max_attempts": 3, "backoff": {"initial": "1s"}}},
  "endpoints": [{"name": "orders", "match": {"host": "x", "path": "/orders"}, "policy": "careful"},
                {"name": "once", "match": {"host": "y"}, "policy": {"max_attempts": 1}}]})";

// "503 by careful of orders, 5 bytes out, 4 in, after 0.25 s"
class Asking final : public Observer {
 public:
  explicit Asking(std::vector<std::string>& lines) : lines_(lines) {}
  void attempt_ended(const Call& call, const Request&, const Attempt& attempt) noexcept override {
    const auto exchange = attempt.exchange();
    const auto names = attempt.policy ? attempt.policy->name + " of " + attempt.policy->endpoint
                                      : std::string("its own");
    lines_.push_back(
        attempt_text(attempt) + " by " + names + ", " + std::to_string(exchange.body_sent) +
        " bytes out, " + std::to_string(exchange.body_received) + " in, " +
        to_text(exchange.timings.first_byte) + (exchange.reused_connection ? ", reused" : ""));
    CHECK(&attempt == &call.history().attempts.back());  // a middleware finds the same there
  }

 private:
  std::vector<std::string>& lines_;
};

Response timed(int status, std::string body, Duration first_byte) {
  Response response(status, std::move(body));
  response.exchange.sent = Sent::Answered;
  response.exchange.wire_sends = 1;
  response.exchange.timings.first_byte = first_byte;
  return response;
}

Client client_for(const Conversation& talk, std::vector<std::string>& lines) {
  ClientOptions options;
  options.middlewares = {redirect(), retry(parse_policies(kPolicies, "policy.json"))};
  options.scheduler = talk.clock;
  options.transport = talk.network;
  options.observers = {std::make_shared<Asking>(lines)};
  options.random = fixed_random(0.5);
  return Client(options);
}

}  // namespace

TEST_CASE("an observer and the history tell the exchange and the policy of each attempt") {
  Conversation talk;
  auto redirected = redirect_to(303, "http://y/");
  redirected.exchange.reused_connection = true;
  talk.network->say(timed(503, "busy", 250ms)).say(redirected).say(timed(404, "", 1h));
  std::vector<std::string> lines;
  auto client = client_for(talk, lines);
  auto request = Request::post("http://x/orders", Body("order"));
  request.edit_options().repeatable = true;
  const auto outcome = client.send(request);
  CHECK(lines == std::vector<std::string>{
                     "503 by careful of orders, 5 bytes out, 4 in, 250ms",
                     "303 by careful of orders, 5 bytes out, 0 in, 0s, reused",
                     "404 by  of once, 0 bytes out, 0 in, 1h",
                 });
  const auto& attempts = outcome->history.attempts;
  REQUIRE(attempts.size() == 3);
  CHECK(attempts[1].exchange().reused_connection);
  CHECK(attempts[2].policy->endpoint == "once");
  CHECK(report_json(request, outcome).find(R"("policy": {
    "endpoint": "orders",
    "name": "careful",
    "preset": "standard",
    "source": "policy.json:4:)") != std::string::npos);
}

TEST_CASE("an attempt that follows a policy of the request names none") {
  Conversation talk;
  talk.network->say(Response(200, "four"));
  std::vector<std::string> lines;
  auto client = client_for(talk, lines);
  CallOptions options;
  options.policy = std::make_shared<const RetryPolicy>();
  const auto request = Request::get("http://x/orders");
  const auto outcome = client.send(request, options);
  CHECK(lines == std::vector<std::string>{"200 by its own, 0 bytes out, 4 in, 0s"});
  CHECK(report_json(request, outcome).find(R"("endpoint": null)") != std::string::npos);
}

TEST_CASE("without the middleware retry the only attempt tells its exchange, too") {
  Conversation talk;
  talk.network->say(timed(200, "four", 3ms));
  const auto outcome = talk.client({}).get("http://x/");
  const auto& attempt = outcome->history.attempts.at(0);
  CHECK(attempt.exchange().timings.first_byte == 3ms);
  CHECK(attempt.exchange().body_received == 4);
  CHECK(attempt.policy == nullptr);
}

TEST_CASE("a call that is canceled in a wait tells the exchange of its last attempt") {
  Conversation talk;
  auto lost = error_of(Errc::Receive);
  lost.exchange.sent = Sent::Maybe;
  lost.exchange.wire_sends = 1;
  lost.exchange.reused_connection = true;
  lost.exchange.timings.total = 7ms;
  talk.network->say(std::move(lost));
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  auto client = talk.client({retry(steady_policy())});
  auto future = client.send_async(Request::get("http://x/"), options);
  talk.clock->run();
  stop.request_stop();
  talk.clock->run();
  const auto outcome = future.get();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Canceled);
  const auto& exchange = outcome.error().exchange;
  CHECK(exchange.sent == Sent::Maybe);
  CHECK(exchange.reused_connection);
  CHECK(exchange.timings.total == 7ms);
}

TEST_CASE("libcurl tells the bytes on the wire, and whether the connection was new") {
  FaultServer server({{503, "busy"}, {200, "1234567"}});
  Client client({retry(steady_policy())});
  auto request = Request::put(server.url(), Body("payload"));
  auto policy = steady_policy();
  policy.backoff = doubling(1ms);
  request.edit_options().policy = std::make_shared<const RetryPolicy>(policy);
  const auto outcome = client.send(request);
  REQUIRE(outcome);
  const auto& attempts = outcome->history.attempts;
  REQUIRE(attempts.size() == 2);
  const auto first = attempts[0].exchange();
  const auto second = attempts[1].exchange();
  CHECK_FALSE(first.reused_connection);
  CHECK(second.reused_connection);
  CHECK(first.body_sent == 7);
  CHECK(second.body_sent == 7);
  CHECK(first.body_received == 4);
  CHECK(second.body_received == 7);
  CHECK(first.timings.connected > Duration::zero());
  CHECK(second.timings.connected == Duration::zero());
  CHECK(second.timings.first_byte > Duration::zero());
  CHECK(second.body_received == outcome->exchange.body_received);
}
