// Requests with a sink, whose response a middleware or a transport of the user makes in memory.
#include "conversation.hpp"
#include "policies.hpp"

#include "tests/flow/awaiters.hpp"
#include "tests/policy/temporary.hpp"

#include <httpretry/body/sink.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <thread>

using namespace httpretry;

namespace {

// A stage that responds by itself.
MiddlewarePtr responds(Response response) {
  return middleware("cache",
                    [response](Request, Call&, Next) -> Task<Outcome> { co_return response; });
}

// A transport that knows nothing of sinks.
class Memory final : public Transport {
 public:
  explicit Memory(std::vector<Response> responses) : responses_(std::move(responses)) {}
  Task<Outcome> send(Request, Call&) override {
    Outcome outcome = responses_.at(next_++);
    co_return outcome;
  }

 private:
  std::vector<Response> responses_;
  std::size_t next_ = 0;
};

// Keeps what a response brought.
struct Received {
  std::string text;
  int opened = 0;
  bool finished = false;
};

class Buffered final : public BodyWriter {
 public:
  explicit Buffered(Received& received) : received_(received) {}
  Result<Wish> write(std::string_view bytes) override {
    waiting_.append(bytes);
    return Wish::More;
  }
  Task<Result<Wish>> drain(Call& /*call*/) override {
    received_.text += std::exchange(waiting_, {});
    co_return Wish::More;
  }
  Result<void> finish() override {
    received_.finished = true;
    return {};
  }

 private:
  Received& received_;
  std::string waiting_;
};

class BufferedSink final : public Sink {
 public:
  explicit BufferedSink(Received& received) : received_(received) {}
  Result<std::unique_ptr<BodyWriter>> open(const Request& /*request*/) override {
    ++received_.opened;
    return std::unique_ptr<BodyWriter>(std::make_unique<Buffered>(received_));
  }

 private:
  Received& received_;
};

SinkPtr into(Received& received) { return std::make_shared<BufferedSink>(received); }

Request get_into(SinkPtr sink) {
  auto request = Request::get("http://x/");
  request.edit_options().sink = std::move(sink);
  return request;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the body of a stage that responds by itself goes to the sink") {
  Conversation talk;
  Received received;
  for (const auto& chain : {std::vector{responds(Response(200, "cached"))},
                            std::vector{retry(), responds(Response(200, "cached"))},
                            std::vector{responds(Response(200, "cached")), retry()}}) {
    received = {};
    const auto outcome = talk.client(chain).send(get_into(into(received)));
    REQUIRE(outcome);
    CHECK(received.text == "cached");
    CHECK(received.finished);
    CHECK(outcome->delivered == 6);
    CHECK(outcome->body.empty());
    CHECK(succeeded(outcome));
  }
  CHECK(talk.sends() == 0);
}

TEST_CASE("an empty body of such a stage makes an empty file") {
  const TemporaryFile file("old");
  Conversation talk;
  auto client = talk.client({responds(Response(200))});
  REQUIRE(client.send(get_into(save_to(file.path()))));
  CHECK(read(file.path()).empty());
}

TEST_CASE(
    "the body of a transport that knows no sinks goes to the sink, and not one of a failure") {
  ClientOptions options;
  options.middlewares = {retry(steady_policy())};
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = std::make_shared<Memory>(
      std::vector{Response(503, "failed"), Response(200, "good"), Response(404, "gone")});
  Client client(options);
  Received received;
  REQUIRE(client.send(get_into(into(received))));
  CHECK(received.text == "good");

  const auto gone = client.send(get_into(into(received)));
  REQUIRE(gone);
  CHECK(gone->body == "gone");
  CHECK(gone->delivered == 0);
  CHECK(received.text == "good");
}

TEST_CASE("a 200 that the policy calls a failure stays in memory") {
  auto policy = steady_policy();
  policy.max_attempts = 2;
  PendingRule pending;
  pending.statuses = StatusSet{200};
  pending.json = "/state";
  pending.in = {"running"};
  pending.max = 2;
  policy.retry_on.pending = pending;
  const std::string running = R"({"state": "running"})";
  ClientOptions options;
  options.middlewares = {retry(policy)};
  options.scheduler = std::make_shared<ManualScheduler>();
  options.transport = std::make_shared<Memory>(std::vector(3, Response(200, running)));
  Received received;
  const auto outcome = Client(options).send(get_into(into(received)));
  REQUIRE(outcome);
  CHECK_FALSE(succeeded(outcome));
  CHECK(outcome->body == running);
  CHECK(received.text.empty());
  CHECK_FALSE(received.finished);
}

TEST_CASE("what a stage puts in the place of a failure goes to the sink") {
  const auto fallback =
      middleware("fallback", [](Request request, Call& call, Next next) -> Task<Outcome> {
        Outcome outcome = co_await next(std::move(request), call);
        if (outcome && outcome->status == 503) co_return Response(200, "fallback");
        co_return outcome;
      });
  auto policy = steady_policy();
  policy.max_attempts = 2;
  Conversation talk;
  talk.network->say(Response(503, "a")).say(Response(503, "b"));
  Received received;
  const auto outcome = talk.client({fallback, retry(policy)}).send(get_into(into(received)));
  REQUIRE(outcome);
  CHECK(received.text == "fallback");
  CHECK(received.finished);
}

TEST_CASE("a stage that reads the body in memory leaves it to the sink") {
  std::string seen;
  const auto reads =
      middleware("reads", [&](Request request, Call& call, Next next) -> Task<Outcome> {
        request.edit_options().sink = nullptr;
        Outcome outcome = co_await next(std::move(request), call);
        seen = outcome->body;
        co_return outcome;
      });
  Conversation talk;
  talk.network->say(Response(200, "all"));
  Received received;
  REQUIRE(talk.client({reads, retry()}).send(get_into(into(received))));
  CHECK(seen == "all");
  CHECK(received.text == "all");
  CHECK(received.opened == 1);
}

TEST_CASE("a stage that replaces the sink has seen to the body") {
  Received own;
  Received received;
  const auto tees =
      on_request("tees", [&](Request& request, Call&) { request.edit_options().sink = into(own); });
  Conversation talk;
  talk.network->say(Response(200, "all"));
  const auto outcome = talk.client({tees, retry()}).send(get_into(into(received)));
  REQUIRE(outcome);
  CHECK(own.text == "all");
  CHECK(received.opened == 0);
}

TEST_CASE("a response whose body went to the sink of another call is an error") {
  std::optional<Response> kept;
  const auto cache =
      middleware("cache", [&](Request request, Call& call, Next next) -> Task<Outcome> {
        if (kept) co_return *kept;
        Outcome outcome = co_await next(std::move(request), call);
        kept = *outcome;
        co_return outcome;
      });
  Conversation talk;
  talk.network->say(Response(200, "all"));
  auto client = talk.client({cache, retry()});
  Received received;
  REQUIRE(client.send(get_into(into(received))));

  const auto outcome = client.send(get_into(into(received)));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Internal);
  CHECK(outcome.error().message ==
        "GET http://x/: the response of a middleware has no body: it went to the sink of another "
        "call");
}

TEST_CASE("a body beside the one that the sink has is an error") {
  const auto adds =
      on_outcome("adds", [](const Request&, Outcome& outcome, Call&) { outcome->body = "more"; });
  Conversation talk;
  talk.network->say(Response(200, "all"));
  Received received;
  const auto outcome = talk.client({adds, retry()}).send(get_into(into(received)));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Internal);
  CHECK(outcome.error().message ==
        "GET http://x/: a middleware returned a response with a body after the sink had received "
        "the body of another response");
}

TEST_CASE("a sink that fails makes the outcome an error, whoever responded") {
  Conversation talk;
  auto client = talk.client({responds(Response(200, "cached"))});
  const auto outcome = client.send(get_into(pass_to([](std::string_view) { return false; })));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Canceled);
  const auto unopened = client.send(get_into(save_to("/nonexistent/file")));
  REQUIRE_FALSE(unopened);
  CHECK(unopened.error().code == Errc::InvalidRequest);
}

namespace {

// Notes on which thread it is called. Its `drain` ends on another thread, or throws.
struct Wandering {
  std::vector<std::thread> threads;
  std::thread::id begun_on;
  std::thread::id finished_on;
  bool throws = false;
};

class WanderingWriter final : public BodyWriter {
 public:
  explicit WanderingWriter(Wandering& seen) : seen_(seen) {}
  Result<void> begin(const Response& /*head*/, std::uint64_t /*offset*/) override {
    seen_.begun_on = std::this_thread::get_id();
    return {};
  }
  Result<Wish> write(std::string_view /*bytes*/) override { return Wish::Pause; }
  Task<Result<Wish>> drain(Call& /*call*/) override {
    const OnAnotherThread another{&seen_.threads};
    co_await another;
    if (seen_.throws) throw std::runtime_error("boom");
    co_return Wish::More;
  }
  Result<void> finish() override {
    seen_.finished_on = std::this_thread::get_id();
    return {};
  }

 private:
  Wandering& seen_;
};

struct WanderingSink final : Sink {
  Wandering seen;
  Result<std::unique_ptr<BodyWriter>> open(const Request& /*request*/) override {
    return std::unique_ptr<BodyWriter>(std::make_unique<WanderingWriter>(seen));
  }
};

}  // namespace

TEST_CASE("after a drain that ends on another thread, a call continues on its own") {
  for (const bool real : {false, true}) {
    for (const bool throws : {false, true}) {
      CAPTURE(real);
      CAPTURE(throws);
      FaultServer server({Step(200, std::string(1000, 'x'))});
      ClientOptions options;
      if (!real) {
        options.transport = std::make_shared<Memory>(std::vector{Response(200, "x")});
      }
      Client client(options);
      const auto sink = std::make_shared<WanderingSink>();
      sink->seen.throws = throws;
      const auto outcome = client.send(Request::get(server.url()).sink(sink));
      for (auto& thread : sink->seen.threads) thread.join();
      CHECK(sink->seen.begun_on == std::this_thread::get_id());
      CHECK(outcome.has_value() == !throws);
      if (throws) {
        CHECK(outcome.error().code == Errc::Internal);
        CHECK(outcome.error().message.ends_with("middleware \"sink\" threw: boom"));
      } else {
        CHECK(sink->seen.finished_on == std::this_thread::get_id());
      }
    }
  }
}

TEST_CASE("a sink that a middleware sets and that cannot be opened is tried again") {
  struct Broken final : Sink {
    int opened = 0;
    Result<std::unique_ptr<BodyWriter>> open(const Request& /*request*/) override {
      ++opened;
      return Error(Errc::Connect, "cannot open");
    }
  };
  const auto broken = std::make_shared<Broken>();
  const auto set_sink = [broken](Request& request, Call&) { request.sink(broken); };
  FaultServer server({Step(200, "x")});
  auto policy = RetryPolicy::standard({.max_attempts = 3});
  policy.backoff = Backoff::constant(std::chrono::milliseconds(1));
  Client client({retry(policy), on_request("other sink", set_sink)});
  Received received;
  const auto outcome = client.send(Request::get(server.url()).sink(into(received)));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message.ends_with("cannot open"));
  CHECK(broken->opened == 3);
}

TEST_CASE("a sink that returns no writer ends the call with an error") {
  struct Empty final : Sink {
    Result<std::unique_ptr<BodyWriter>> open(const Request& /*request*/) override {
      return std::unique_ptr<BodyWriter>();
    }
  };
  FaultServer server({Step(200, "x")});
  Client client;
  const auto outcome = client.send(Request::get(server.url()).sink(std::make_shared<Empty>()));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Internal);
  CHECK(outcome.error().message.ends_with("the sink returned no writer"));
  CHECK(server.requests() == 0);
}

TEST_CASE("HEAD has no body for a sink") {
  Conversation talk;
  Received received;
  auto request = Request::head("http://x/");
  request.edit_options().sink = into(received);
  REQUIRE(talk.client({responds(Response(200))}).send(request));
  CHECK(received.opened == 0);
}

TEST_CASE("a classify of the user's gets the body before the sink does") {
  std::vector<std::string> seen;
  RetryOptions options;
  options.classify = [&](const RetryPolicy& policy, const Request&, const Observed& observed) {
    seen.emplace_back(observed.body);
    auto found = classify(policy, observed);
    if (observed.body != "good") found.cls = Class::Transient;
    return found;
  };
  Conversation talk;
  talk.network->say(Response(200, "bad")).say(Response(200, "good"));
  Received received;
  const auto outcome = talk.client({retry(options)}).send(get_into(into(received)));
  REQUIRE(outcome);
  CHECK(succeeded(outcome));
  CHECK(received.text == "good");
  CHECK(seen == std::vector<std::string>{"bad", "good"});
}

TEST_CASE("json_at of a response that went to a sink says so") {
  Conversation talk;
  talk.network->say(Response(200, R"({"a": 1})"));
  Received received;
  const auto outcome = talk.client({}).send(get_into(into(received)));
  REQUIRE(outcome);
  const auto value = outcome->json_at("/a");
  REQUIRE_FALSE(value);
  CHECK(value.error().code == Errc::InvalidRequest);
  CHECK(value.error().message ==
        "the response has no value at \"/a\": the body went to the sink of the request");
}
