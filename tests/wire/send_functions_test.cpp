// One suite, for every send function.
#include "send_functions.hpp"

#include <atomic>
#include <functional>
#include <latch>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

template <class SendFunction>
Client client_of(std::vector<MiddlewarePtr> chain) {
  ClientOptions options;
  options.middlewares = std::move(chain);
  options.blocking = SendFunction::kBlocking;
  return Client(options);
}

template <class SendFunction>
Outcome ask(Client& client, Request request, CallOptions options = CallOptions()) {
  return SendFunction::send(client, std::move(request), std::move(options));
}

// Requests a stop as soon as the server has seen so many requests.
std::jthread stop_after(const FaultServer& server, std::size_t requests, std::stop_source stop) {
  return std::jthread([&server, requests, stop]() mutable {
    CHECK(server.wait_for_requests(requests, 30s));
    stop.request_stop();
  });
}

}  // namespace

TEST_CASE_TEMPLATE("a call goes through the chain, and its outcome tells all about it",
                   SendFunction, ALL_SEND_FUNCTIONS) {
  FaultServer server({503, Fault::Reset, {200, "third"}});
  std::atomic<int> attempts = 0;
  auto client = client_of<SendFunction>(
      {redirect(), retry(hasty()), on_request("count", [&](auto&, auto&) { ++attempts; })});
  const auto outcome = ask<SendFunction>(client, Request::get(server.url("/")));
  REQUIRE(outcome);
  CHECK(outcome->body == "third");
  CHECK(attempts == 3);
  CHECK(server.requests() == 3);
  const auto& history = outcome->history;
  REQUIRE(history.attempts.size() == 3);
  CHECK(history.attempts[0].status == 503);
  CHECK(history.attempts[1].error == Errc::Receive);
  CHECK(history.attempts[2].number == 3);
  CHECK(history.stop_reason == Reason::Success);
}

TEST_CASE_TEMPLATE("a body is sent, and an error comes back", SendFunction, ALL_SEND_FUNCTIONS) {
  FaultServer server({{201, "made"}, Fault::Close});
  auto client = client_of<SendFunction>({retry(hasty())});
  CHECK(ask<SendFunction>(client, Request::post(server.url("/"), "data"))->body == "made");
  const auto lost = ask<SendFunction>(client, Request::post(server.url("/"), "data"));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == Errc::Receive);
  CHECK(lost.error().history.stop_reason == Reason::UnsafeToRepeat);
  CHECK(server.seen()[0].body == "data");
  CHECK(ask<SendFunction>(client, Request::get("nonsense")).error().code == Errc::InvalidRequest);
}

TEST_CASE_TEMPLATE("a middleware that throws is an error", SendFunction, ALL_SEND_FUNCTIONS) {
  auto client = client_of<SendFunction>(
      {on_request("grumpy", [](auto&, auto&) { throw std::runtime_error("no"); })});
  const auto outcome = ask<SendFunction>(client, Request::get("http://127.0.0.1/"));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message == "middleware \"grumpy\" threw: no");
}

TEST_CASE_TEMPLATE("a stop ends the call wherever it waits, and it sends nothing more",
                   SendFunction, ALL_SEND_FUNCTIONS) {
  FaultServer answering(Scenario({503}));
  FaultServer silent(Scenario({Fault::Hang}));
  for (const auto* server : {&answering, &silent}) {
    auto client = client_of<SendFunction>({retry(patient())});
    CallOptions options;
    std::stop_source stop;
    options.stop = stop.get_token();
    const auto stopping = stop_after(*server, 1, stop);
    const auto outcome = ask<SendFunction>(client, Request::get(server->url("/")), options);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Canceled);
    CHECK(outcome.error().history.stop_reason == Reason::Canceled);
    CHECK(server->requests() == 1);
  }
}

TEST_CASE_TEMPLATE("with a stop that was requested before, nothing is sent", SendFunction,
                   ALL_SEND_FUNCTIONS) {
  FaultServer server;
  auto client = client_of<SendFunction>({retry(hasty())});
  CallOptions options;
  std::stop_source stop;
  stop.request_stop();
  options.stop = stop.get_token();
  CHECK(ask<SendFunction>(client, Request::get(server.url("/")), options).error().code ==
        Errc::Canceled);
  CHECK(server.requests() == 0);
}

TEST_CASE_TEMPLATE("a call ends by its timeout or its deadline, whichever is earlier", SendFunction,
                   ALL_SEND_FUNCTIONS) {
  FaultServer server(Scenario({Fault::Hang}));
  auto client = client_of<SendFunction>({retry(patient())});
  CallOptions by_timeout;
  by_timeout.timeout = 30ms;
  by_timeout.deadline = std::chrono::steady_clock::now() + 1h;
  CallOptions by_deadline;
  by_deadline.timeout = 1h;
  by_deadline.deadline = std::chrono::steady_clock::now() + 30ms;
  for (const auto& options : {by_timeout, by_deadline}) {
    const auto outcome = ask<SendFunction>(client, Request::get(server.url("/")), options);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Timeout);
  }
}

TEST_CASE_TEMPLATE("a call may bring a policy of its own", SendFunction, ALL_SEND_FUNCTIONS) {
  FaultServer server(Scenario({503}));
  auto client = client_of<SendFunction>({retry(hasty())});
  auto twice = hasty();
  twice.max_attempts = 2;
  CallOptions options;
  options.policy = std::make_shared<const RetryPolicy>(twice);
  CHECK(ask<SendFunction>(client, Request::get(server.url("/")), options)->status == 503);
  CHECK(server.requests() == 2);
}

TEST_CASE_TEMPLATE("a blocking send inside a call is an error, whichever function began the call",
                   SendFunction, ALL_SEND_FUNCTIONS) {
  FaultServer server;
  auto other = Client::bare();
  Outcome refused = Response();
  auto client = client_of<SendFunction>({on_outcome(
      "curious", [&](const Request&, Outcome&, Call&) { refused = other.get("http://x/"); })});
  CHECK(ask<SendFunction>(client, Request::get(server.url("/")))->status == 200);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::Internal);
  CHECK(refused.error().message.find("it would deadlock") != std::string::npos);
}

TEST_CASE_TEMPLATE("the end of the client ends its calls", SendFunction, ALL_SEND_FUNCTIONS) {
  FaultServer server(Scenario({503}));
  auto client = std::make_unique<Client>(client_of<SendFunction>({retry(patient())}));
  std::optional<Outcome> outcome;
  std::thread calling([&, &alive = *client] {
    outcome.emplace(ask<SendFunction>(alive, Request::get(server.url("/"))));
  });
  CHECK(server.wait_for_requests(1, 30s));
  client.reset();
  calling.join();
  REQUIRE_FALSE(*outcome);
  CHECK(outcome->error().code == Errc::Canceled);
  CHECK(server.requests() == 1);
}

TEST_CASE("a callback may be a type that can only be moved, and make further calls") {
  FaultServer server;
  auto client = Client::bare();
  std::promise<int> told;
  auto status = told.get_future();
  auto again = [&client, url = server.url("/"),
                told = std::move(told)](const Outcome& first) mutable {
    REQUIRE(first);
    CHECK(client.get(url).error().code == Errc::Internal);  // the loop's thread
    client.send_then(Request::get(url), [told = std::move(told)](const Outcome& second) mutable {
      told.set_value(second ? second->status : 0);
    });
  };
  client.send_then(Request::get(server.url("/")), std::move(again));
  CHECK(status.get() == 200);
  CHECK(server.requests() == 2);
}

TEST_CASE("calls that run together are spread over as many threads as the client was given") {
  FaultServer server;
  ClientOptions options;
  options.threads = 3;
  std::latch together(3);
  options.middlewares = {on_request("wait for the others", [&](auto&, auto&) {
    together.arrive_and_wait();  // blocks the thread of its loop
  })};
  Client client(options);
  std::vector<OutcomeFuture> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(client.send_async(Request::get(server.url("/"))));
  for (auto& call : calls) CHECK(call.get());
}

TEST_CASE("calls that begin as others end use their connections") {
  FaultServer server;
  ClientOptions options;
  options.threads = 3;
  Client client(options);
  for (int i = 0; i < 9; ++i) CHECK(client.send_async(Request::get(server.url("/"))).get());
  CHECK(server.connections() == 1);

  constexpr int kTogether = 3;
  std::atomic<int> left = 600;
  std::latch ended(kTogether);
  std::function<void(const Outcome&)> next = [&](const Outcome& outcome) {
    CHECK(outcome);
    if (--left < 0) return ended.count_down();
    client.send_then(Request::get(server.url("/")), next);
  };
  for (int i = 0; i < kTogether; ++i) client.send_then(Request::get(server.url("/")), next);
  ended.wait();
  CHECK(server.connections() == kTogether);
}

TEST_CASE("a future that is dropped leaves its call alone") {
  FaultServer server;
  auto client = Client::bare();
  (void)client.send_async(Request::get(server.url("/")));
  CHECK(server.wait_for_requests(1, 30s));
}
