// The coroutine door in virtual time: what a user's own tests of coroutines stand on.
#include "conversation.hpp"

#include <httpretry/flow/task.hpp>
#include <httpretry/middleware/retry.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Task<std::string> bodies_of_two(Client& client) {
  Outcome first = co_await client.co_send(Request::get("http://x/1"));
  Outcome second = co_await client.co_send(Request::get("http://x/2"));
  co_return first.value().body + second.value().body;
}

Task<bool> for_ever(Scheduler& clock) {
  const bool came = co_await clock.sleep_until(kNever, std::stop_token());
  co_return came;
}

}  // namespace

TEST_CASE("a clock by hand runs a coroutine that sends and waits to its end") {
  Conversation told;
  told.network->say(Response(503))
      .say(Response(200, "a"))
      .say(Response(503))
      .say(Response(200, "b"));
  auto client = told.client({retry()});
  const auto begin = told.clock->now();
  CHECK(told.clock->run(bodies_of_two(client)) == "ab");
  CHECK(told.clock->now() - begin == 450ms);  // two waits of three quarters of 0.3 s
  CHECK(told.sends() == 4);
}

TEST_CASE("a coroutine that nothing can end is an error, not a wait for ever") {
  ManualScheduler clock;
  CHECK_THROWS_AS(clock.run(for_ever(clock)), std::logic_error);
}

TEST_CASE("200 calls at once keep to the client's limit, and each has its own answer") {
  Conversation told;
  told.network->say(
      [](const Request& request, int) { return Response(200, request.url().substr(9)); }, 1s);
  ClientOptions options;
  options.middlewares = {};
  options.scheduler = told.clock;
  options.transport = told.network;
  options.max_in_flight = 20;
  Client client(options);
  std::vector<Task<Outcome>> calls;
  for (int i = 0; i < 200; ++i) {
    calls.push_back(client.co_send(Request::get("http://x/" + std::to_string(i))));
  }
  const auto begin = told.clock->now();
  const auto outcomes = told.clock->run(when_all(std::move(calls)));
  CHECK(told.clock->now() - begin == 10s);  // ten times twenty
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    REQUIRE(outcomes[i]);
    CHECK(outcomes[i]->body == std::to_string(i));
  }
}
