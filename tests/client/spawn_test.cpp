// Work that many calls share: the renewal of a token, above all.
#include "conversation.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

Task<Result<std::string>> fetch_token(Client& auth) {
  Outcome answer = co_await auth.co_send(Request::get("http://auth/token"));
  if (!answer) co_return answer.error();
  co_return answer->body;
}

// A token that is fetched once for all calls that need it, and again when a server refuses it.
class Tokens {
 public:
  explicit Tokens(Client& auth) : auth_(auth) {}

  Shared<std::string> current() {
    const std::lock_guard lock(mutex_);
    if (!token_) token_ = auth_.spawn([&auth = auth_](Scheduler&) { return fetch_token(auth); });
    return *token_;
  }
  void refused(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (text != refused_) token_.reset();  // else another call has seen to it
    refused_ = text;
  }

 private:
  Client& auth_;
  std::mutex mutex_;
  std::optional<Shared<std::string>> token_;
  std::string refused_;
};

MiddlewarePtr authorised(Tokens& tokens) {
  return middleware("token", [&tokens](Request request, Call& call, Next next) -> Task<Outcome> {
    for (int round = 1;; ++round) {
      const auto token = tokens.current();
      const Result<std::string> text = co_await token.wait(call);
      if (!text) co_return text.error();
      request.set_header("Authorization", "Bearer " + *text);
      Outcome outcome = co_await next(request, call);
      if (round == 2 || !outcome || outcome->status != 401) co_return outcome;
      tokens.refused(*text);
    }
  });
}

// Takes the token that was given out last.
class Guarded final : public Transport {
 public:
  Task<Outcome> send(Request request, Call& call) override {
    auto& clock = call.scheduler();
    const bool slept = co_await clock.sleep_until(clock.now() + 1ms, call.stop());
    if (!slept) co_return Error(Errc::Canceled, "canceled");
    if (request.url() == "http://auth/token") {
      co_return Response(200, std::to_string(++given));
    }
    const bool good =
        request.headers().get("Authorization") == "Bearer " + std::to_string(valid.load());
    co_return Response(good ? 200 : 401);
  }
  std::atomic<int> given = 0;
  std::atomic<int> valid = 1;
};

}  // namespace

TEST_CASE("many calls on many loops wait for one renewal of the token, each on its own loop") {
  const auto network = std::make_shared<Guarded>();
  ClientOptions options;
  options.middlewares = {};
  options.transport = network;
  Client auth(options);
  Tokens tokens(auth);
  options.middlewares = {authorised(tokens)};
  options.threads = 2;
  Client client(options);
  std::atomic<int> good = 0;
  std::atomic<int> ended = 0;
  const auto count = [&](const Outcome& outcome) {
    if (outcome && outcome->status == 200) ++good;
    ++ended;
    ended.notify_one();
  };
  for (int round = 1; round <= 3; ++round) {
    network->valid = round;
    good = ended = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 25; ++i) client.send_then(Request::get("http://x/"), count);
        for (int i = 0; i < 5; ++i) count(client.get("http://x/"));
      });
    }
    for (auto& thread : threads) thread.join();
    for (auto seen = ended.load(); seen < 120; seen = ended.load()) ended.wait(seen);
    CHECK(good == 120);
    CHECK(network->given == round);
  }
}

TEST_CASE("the call that began the shared work may be canceled, and the others get their token") {
  Conversation talk;
  talk.network->say(Response(200, "t"), 1s);
  auto auth = talk.client({});
  auto client = talk.client({});
  const auto token = auth.spawn([&auth](Scheduler&) { return fetch_token(auth); });
  std::vector<Result<std::string>> heard;
  std::stop_source stop;
  const auto chain = std::vector<MiddlewarePtr>{
      middleware("wait", [&](Request, Call& call, Next) -> Task<Outcome> {
        Result<std::string> text = co_await token.wait(call);
        heard.push_back(text);
        co_return Response(200);
      })};
  auto waiting = talk.client(chain);
  CallOptions stopped;
  stopped.stop = stop.get_token();
  CallOptions hurried;
  hurried.timeout = 500ms;
  for (const auto& options : {stopped, hurried, CallOptions()}) {
    waiting.send_then(
        Request::get("http://x/"), [](const Outcome&) {}, options);
  }
  talk.clock->run();
  stop.request_stop();
  talk.clock->run();
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].error().code == Errc::Canceled);
  talk.clock->advance(500ms);
  REQUIRE(heard.size() == 2);
  CHECK(heard[1].error().code == Errc::Timeout);
  CHECK_FALSE(token.ready());
  talk.clock->advance(500ms);
  REQUIRE(heard.size() == 3);
  CHECK(*heard[2] == "t");
  CHECK(token.ready());
  waiting.send_then(Request::get("http://x/"), [](const Outcome&) {});  // it is there already
  talk.clock->run();
  CHECK(*heard[3] == "t");
}

TEST_CASE("work that throws is an error for all who wait") {
  ClientOptions options;
  options.middlewares = {};
  options.transport = std::make_shared<Guarded>();
  Client client(options);
  const auto early = client.spawn(
      [](Scheduler&) -> Task<Result<int>> { throw std::runtime_error("out of tokens"); });
  const auto late = client.spawn([](Scheduler& loop) -> Task<Result<int>> {
    const bool slept = co_await loop.sleep_until(loop.now() + 1ms, std::stop_token());
    if (slept) throw 7;
    co_return 1;
  });
  std::vector<std::string> texts;
  options.middlewares = {middleware("wait", [&](Request, Call& call, Next) -> Task<Outcome> {
    const Result<int> first = co_await early.wait(call);
    const Result<int> second = co_await late.wait(call);
    texts = {first.error().message, second.error().message};
    co_return Response(200);
  })};
  CHECK(Client(options).get("http://x/"));
  CHECK(texts == std::vector<std::string>{
                     "the work of spawn threw: out of tokens",
                     "the work of spawn threw: something that is not a std::exception"});
}

TEST_CASE(
    "the end of a client calls off what its work waits for, and tells those who wait for it") {
  ClientOptions options;
  options.middlewares = {};
  options.transport = std::make_shared<Guarded>();
  auto auth = std::make_unique<Client>(options);
  bool slept = true;
  const auto work = auth->spawn([&](Scheduler& loop) -> Task<Result<int>> {
    slept = co_await loop.sleep_until(loop.now() + 1h, std::stop_token());
    co_return Error(Errc::Canceled, "the work was called off");
  });
  std::string heard;
  options.middlewares = {middleware("wait", [&](Request, Call& call, Next) -> Task<Outcome> {
    const Result<int> result = co_await work.wait(call);
    heard = result.error().message;
    co_return Response(200);
  })};
  Client client(options);
  auto outcome = client.send_async(Request::get("http://x/"));
  auth.reset();
  CHECK(outcome.get());
  CHECK(heard == "the work was called off");
  CHECK_FALSE(slept);
}

TEST_CASE("a client that is gone takes no work and no calls") {
  ClientOptions options;
  options.middlewares = {};
  options.transport = std::make_shared<Guarded>();
  std::optional<Client> client(options);
  auto late = client->co_send(Request::get("http://x/"));
  client.reset();
  const auto outcome = sync_wait(std::move(late));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Canceled);
  CHECK(outcome.error().message == "canceled: the client was destroyed before the call began");
}
