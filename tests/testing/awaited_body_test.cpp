// Bodies that are awaited, in virtual time: the script reads them as the real transport does.
#include <httpretry/body/awaited_body.hpp>
#include <httpretry/client/client.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Gives the pieces, with a second before each.
NextPiece slowly(std::vector<std::string> pieces) {
  return [pieces, at = std::size_t{0}](Call& call) mutable -> Task<Result<std::string>> {
    co_await call.scheduler().sleep_until(later(call.scheduler().now(), 1s), call.stop());
    if (call.stop().stop_requested()) co_return Error(Errc::Canceled, "nobody reads this");
    co_return at < pieces.size() ? pieces[at++] : std::string();
  };
}

struct Network {
  std::shared_ptr<ScriptedTransport> script = std::make_shared<ScriptedTransport>();
  std::shared_ptr<ManualScheduler> clock = std::make_shared<ManualScheduler>();

  [[nodiscard]] Client client(std::vector<MiddlewarePtr> chain) const {
    ClientOptions options;
    options.middlewares = std::move(chain);
    options.scheduler = clock;
    options.transport = script;
    options.random = fixed_random(0.5);
    return Client(options);
  }
  [[nodiscard]] std::string body(std::size_t index) const {
    const auto requests = script->requests();
    const auto* bytes = requests.at(index).request.body().bytes();
    return bytes == nullptr ? "none" : *bytes;
  }
};

}  // namespace

TEST_CASE("the script awaits a body, and then responds") {
  const Network network;
  network.script->say(Response(200), 1s);
  const auto body = awaited_body_once(slowly({"abc", std::string(40'000, 'd')}));
  REQUIRE(network.client({}).put("http://x/", body));
  CHECK(network.body(0) == "abc" + std::string(40'000, 'd'));
  CHECK(network.clock->now() == Time(4s));
}

TEST_CASE("an awaited body begins again for a retry, and one that can be read once does not") {
  const Network network;
  network.script->say(Response(503)).say(Response(200));
  int starts = 0;
  const auto body = awaited_body([&] {
    ++starts;
    return slowly({"abc"});
  });
  CHECK(network.client({retry()}).put("http://x/", body)->status == 200);
  CHECK(starts == 2);
  CHECK(network.body(0) == "abc");
  CHECK(network.body(1) == "abc");

  const Network other;
  other.script->say(Error(Errc::Connect, "refused")).say(Response(503)).say(Response(200));
  const auto once = awaited_body_once(slowly({"abc"}));
  const auto outcome = other.client({retry()}).put("http://x/", once);
  CHECK(outcome->status == 503);
  CHECK(outcome->history.stop_reason == Reason::NotReplayable);
  CHECK(other.body(0) == "none");
  CHECK(other.body(1) == "abc");
}

TEST_CASE("a timeout and a stop end the wait for a body") {
  const Network network;
  network.script->say(Response(200));
  const auto late =
      network.client({timeout(1500ms)}).put("http://x/", awaited_body_once(slowly({"abc"})));
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Errc::Timeout);
  CHECK(late.error().exchange.sent == Sent::Maybe);
  CHECK(network.body(0) == "abc");
  CHECK(network.clock->now() == Time(1500ms));

  std::stop_source stop;
  CallOptions call;
  call.stop = stop.get_token();
  std::optional<Outcome> outcome;
  auto client = network.client({});
  client.send_then(
      Request::put("http://x/", awaited_body_once(slowly({"abc"}))),
      [&](Outcome value) { outcome.emplace(std::move(value)); }, call);
  network.clock->advance(500ms);
  CHECK_FALSE(outcome);
  stop.request_stop();
  network.clock->run();
  REQUIRE(outcome.has_value());
  CHECK(outcome->error().code == Errc::Canceled);
  CHECK(network.clock->now() == Time(2s));
}

TEST_CASE("a wait for a body is no wait for the response") {
  const Network network;
  network.script->say(Response(200), 1s).say(Response(200), 2s);
  auto request = Request::put("http://x/", awaited_body([] { return slowly({"abc", "d"}); }));
  request.edit_options().response_timeout = 1500ms;
  CHECK(network.client({}).send(request));
  CHECK(network.clock->now() == Time(4s));
  const auto late = network.client({}).send(request);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Errc::Timeout);
  CHECK(network.clock->now() == Time(8500ms));
}

TEST_CASE("an awaited body that fails ends the call") {
  const auto ends_with = [](NextPiece next, std::optional<std::uint64_t> size, const char* text) {
    const Network network;
    network.script->say(Response(200));
    const auto body = awaited_body_once(std::move(next), size);
    const auto outcome = network.client({retry()}).put("http://x/", body);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
    CHECK(outcome.error().message.find(text) != std::string::npos);
    CHECK(network.script->requests().size() == 1);
  };
  ends_with([](Call&) -> Task<Result<std::string>> { co_return Error(Errc::Internal, "no row"); },
            std::nullopt, "no row");
  ends_with(
      [](Call&) -> Task<Result<std::string>> {
        throw std::runtime_error("no disk");
        co_return "";
      },
      std::nullopt, "reading the body threw: no disk");
  ends_with(slowly({"abc"}), 2, "longer than its announced size");
  ends_with(slowly({"abc"}), 4, "1 bytes before its announced size");
}
