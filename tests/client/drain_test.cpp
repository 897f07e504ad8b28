// The orderly end of a client, in virtual time.
#include "conversation.hpp"
#include "policies.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr auto kRefused =
    "canceled: the client was drained before the call began; send it with another client";

using Counts = std::array<std::size_t, 3>;
Counts counts(const DrainResult& result) {
  return {result.succeeded, result.failed, result.canceled};
}

// A drain that runs while the test goes on.
struct Draining {
  Draining(Client& client, Time deadline) { detail::run_into(running, client.co_drain(deadline)); }
  [[nodiscard]] bool done() const { return running->done(); }
  std::shared_ptr<detail::Running<DrainResult>> running =
      std::make_shared<detail::Running<DrainResult>>();
};

Task<Outcome> sent(Client& client) { return client.co_send(Request::get("http://x/")); }

}  // namespace

TEST_CASE("while a client drains no call begins, and those under way go on with their retries") {
  Conversation talk;
  talk.network->say(Response(503)).say(Response(503)).say(Response(200));
  auto client = talk.client({retry(steady_policy())});
  auto first = client.send_async(Request::get("http://x/"));
  talk.clock->run();
  CHECK(talk.sends() == 1);

  const Draining drain(client, Time(1h));
  auto late = client.send_async(Request::get("http://x/"));
  std::optional<Outcome> called;
  client.send_then(Request::get("http://x/"),
                   [&](Outcome outcome) { called = std::move(outcome); });
  REQUIRE(called);
  for (const auto& outcome :
       {client.get("http://x/"), late.get(), *called, talk.clock->run(sent(client))}) {
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Canceled);
    CHECK(outcome.error().message == kRefused);
    CHECK(outcome.error().exchange.sent == Sent::Never);
  }
  CHECK(talk.sends() == 1);
  CHECK_FALSE(drain.done());
  talk.clock->advance(1h - 1ns);  // the deadline is not reached
  REQUIRE(drain.done());
  CHECK(counts(drain.running->take()) == Counts{1, 0, 0});
  CHECK(first.get()->history.attempts.size() == 3);
}

TEST_CASE("at the deadline of a drain the rest is canceled, and what ended how is counted") {
  Conversation talk;
  talk.network->say(
      [](const Request& request, int) -> Outcome {
        const auto path = request.parsed_url()->path();
        return Response(path == "/good" ? 200 : path == "/bad" ? 404 : 503);
      },
      1s);
  auto policy = steady_policy();
  policy.max_attempts = 1000;
  policy.max_elapsed_time = kForever;
  auto client = talk.client({retry(policy)});
  std::vector<std::future<Outcome>> calls;
  for (const auto* path : {"good", "bad", "again", "good", "again", "again"}) {
    calls.push_back(client.send_async(Request::get(std::string("http://x/") + path)));
  }
  CHECK(counts(client.drain(Time(20s))) == Counts{2, 1, 3});  // moves the clock, as `send` does
  CHECK(talk.clock->now() == Time(20s));
  CHECK(calls[2].get().error().history.stop_reason == Reason::Canceled);
  CHECK(counts(client.drain(Time(1h))) == Counts{2, 1, 3});  // nothing is left
  CHECK(talk.clock->now() == Time(20s));
}

TEST_CASE("a drain takes a time from now, too") {
  Conversation talk;
  talk.network->say(Response(200), 1h);
  auto client = talk.client({});
  const auto call = client.send_async(Request::get("http://x/"));
  CHECK(counts(client.drain(20s)) == Counts{0, 0, 1});
  CHECK(talk.clock->now() == Time(20s));
}

TEST_CASE("a client without calls is drained at once, and calls that ended before do not count") {
  Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({});
  CHECK(client.get("http://x/"));
  CHECK(counts(client.drain(kNever)) == Counts{0, 0, 0});
  CHECK(client.get("http://x/").error().message == kRefused);
}

TEST_CASE("a drain waits for spawned work, and a call under way may spawn more") {
  Conversation talk;
  talk.network->say(Response(200), 1s);
  std::optional<Client> client;
  bool early_done = false;
  const auto work = [](Scheduler& loop, Duration time, bool& done) -> Task<Result<int>> {
    done = co_await loop.sleep_until(loop.now() + time, std::stop_token());
    co_return 7;
  };
  int heard = 0;
  bool late_done = false;
  client.emplace(talk.client(
      {on_request("first", [](Request&, Call&) {}),
       middleware("spawns", [&](Request request, Call& call, Next next) -> Task<Outcome> {
         Outcome outcome = co_await next(request, call);
         const auto more =
             client->spawn([&](Scheduler& loop) { return work(loop, 2s, late_done); });
         const Result<int> value = co_await more.wait(call);
         heard = *value;
         co_return outcome;
       })}));
  const auto early = client->spawn([&](Scheduler& loop) { return work(loop, 10s, early_done); });
  client->send_then(Request::get("http://x/"), [](const Outcome&) {});
  talk.clock->run();
  CHECK(counts(client->drain(Time(1h))) == Counts{1, 0, 0});
  CHECK(heard == 7);
  CHECK(late_done);
  CHECK(early_done);
  CHECK(talk.clock->now() == Time(10s));
}
