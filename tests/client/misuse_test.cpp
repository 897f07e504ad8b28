// What can never be right ends with a sentence, not with a crash or a wait without end.
#include "conversation.hpp"

#include "lib/core/curl/poller.hpp"

#include <httpretry/client/event_loop.hpp>
#include <httpretry/flow/start.hpp>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <stdexcept>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// What `misuse` writes to standard error in a child process, which must be aborted.
std::string last_words(const std::function<void()>& misuse) {
  int ends[2] = {};
  REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not the test program's
    ::dup2(ends[1], STDERR_FILENO);
    misuse();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 256> buffer{};
  for (;;) {
    const auto count = ::read(ends[0], buffer.data(), buffer.size());
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  return text;
}

Task<int> seven() { co_return 7; }

Task<int> await_twice() {
  const auto task = seven();
  const int first = co_await task;
  const int second = co_await task;
  co_return first + second;
}

Task<int> await_moved_from() {
  auto task = seven();
  const auto taken = std::move(task);
  const int value = co_await task;  // NOLINT(bugprone-use-after-move)
  co_return value;
}

}  // namespace

TEST_CASE("a Result read as what it is not aborts with its error") {
  const Outcome error = Error(Errc::Connect, "nobody listens");
  const Outcome response = Response(200);
  const Result<int> no_number = Error(Errc::Protocol, "no number");
  const Result<void> nothing;
  const auto* no_value =
      "httpretry: a Result without a value was read with * or ->; test it first, or use value(), "
      "which throws; its error is: ";
  const auto* no_error = "httpretry: error() was called on a Result that has no error\n";
  CHECK(last_words([&] { std::fputs(error->body.c_str(), stdout); }) ==
        std::string(no_value) + "nobody listens\n");
  CHECK(last_words([&] { std::fputs((*error).body.c_str(), stdout); }) ==
        std::string(no_value) + "nobody listens\n");
  CHECK(last_words([&] { std::printf("%d", *no_number); }) ==
        std::string(no_value) + "no number\n");
  CHECK(last_words([&] { std::fputs(response.error().message.c_str(), stdout); }) == no_error);
  CHECK(last_words([&] { std::fputs(nothing.error().message.c_str(), stdout); }) == no_error);
  CHECK(last_words([] {
          Outcome moved = Response(200);
          const Outcome taken = std::move(moved);
          std::fputs(moved->body.c_str(), stdout);  // NOLINT(bugprone-use-after-move)
        }) == "httpretry: a Result was used after it was moved from\n");
}

TEST_CASE("a Task that cannot be awaited any more, and a Client that was moved from") {
  const auto* twice = "httpretry: a Task was awaited twice, or after it was moved from\n";
  CHECK(last_words([] { static_cast<void>(sync_wait(await_twice())); }) == twice);
  CHECK(last_words([] { static_cast<void>(sync_wait(await_moved_from())); }) == twice);
  const auto* moved = "httpretry: a Client was used after it was moved from\n";
  for (const auto& use : {std::function<void(Client&)>(
                              [](Client& client) { static_cast<void>(client.get("http://x/")); }),
                          std::function<void(Client&)>([](Client& client) {
                            static_cast<void>(client.co_send(Request::get("http://x/")));
                          }),
                          std::function<void(Client&)>([](Client& client) {
                            static_cast<void>(client.send_async(Request::get("http://x/")));
                          }),
                          std::function<void(Client&)>([](Client& client) {
                            client.send_then(Request::get("http://x/"), [](const Outcome&) {});
                          })}) {
    CHECK(last_words([&] {
            auto client = Client::bare();
            const Client taken = std::move(client);
            use(client);  // NOLINT(bugprone-use-after-move)
          }) == moved);
  }
}

TEST_CASE("a Request that was moved from aborts with a sentence if it is used") {
  const auto* moved = "httpretry: a Request was used after it was moved from\n";
  for (const auto& use :
       {std::function<void(Request&)>(
            [](Request& request) { std::fputs(request.url().c_str(), stdout); }),
        std::function<void(Request&)>(
            [](Request& request) { static_cast<void>(request.options()); }),
        std::function<void(Request&)>(
            [](Request& request) { static_cast<void>(request.repeatable()); }),
        std::function<void(Request&)>(
            [](Request& request) { static_cast<void>(request.parsed_url()); }),
        std::function<void(Request&)>([](Request& request) { request.set_header("A", "b"); }),
        std::function<void(Request&)>(
            [](Request& request) { static_cast<void>(Client::bare().send(request)); })}) {
    CHECK(last_words([&] {
            auto request = Request::get("http://x/");
            const Request taken = std::move(request);
            use(request);  // NOLINT(bugprone-use-after-move)
          }) == moved);
  }
  auto request = Request::get("http://x/");
  const Request taken = std::move(request);
  auto copy = request;  // NOLINT(bugprone-use-after-move)
  copy = taken;
  CHECK(copy.url() == "http://x/");
}

TEST_CASE("what would wait for its own loop throws there") {
  Conversation talk;
  talk.network->say(Response(200));
  auto other = Client::bare();
  struct Row {
    std::string name;
    std::function<void()> wait;
  };
  const Row rows[] = {
      {"sync_wait()", [] { static_cast<void>(sync_wait(seven())); }},
      {"get() or wait() of a future",
       [&] { static_cast<void>(talk.client({}).send_async(Request::get("http://x/")).get()); }},
      {"get() or wait() of a future",
       [&] { talk.client({}).send_async(Request::get("http://x/")).wait(); }},
  };
  for (const auto& row : rows) {
    auto client = talk.client({on_request("waiting", [&](Request&, Call&) { row.wait(); })});
    const auto outcome = client.get("http://x/");
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Internal);
    CHECK(outcome.error().message ==
          "middleware \"waiting\" threw: " + row.name +
              " was called on a thread that drives a loop (in a callback or a middleware): it "
              "would deadlock; use co_await there");
  }
}

TEST_CASE("a future that is ready may be asked on any thread") {
  Conversation talk;
  talk.network->say(Response(200));
  auto client = talk.client({});
  auto ready = client.send_async(Request::get("nonsense"));
  talk.clock->run();
  int status = 0;
  auto asking =
      talk.client({on_request("asking", [&](Request&, Call&) { status = ready.get() ? 1 : 2; })});
  CHECK(asking.get("http://x/"));
  CHECK(status == 2);
}

TEST_CASE("a poller without a descriptor: what needs one is refused") {
  if constexpr (!Poller::kHasDescriptor) {
    CHECK_THROWS_WITH_AS(EventLoop(), doctest::Contains("built with HTTPRETRY_POLLER=poll"),
                         std::system_error);
  }
}

TEST_CASE("an EventLoop that is driven inside of its turn") {
  CHECK(last_words([] {
          EventLoop loop;
          start(loop, seven(), [&](const Result<int>&) { loop.turn(); });
          loop.turn();
        }) ==
        "httpretry: an EventLoop was driven from inside its own turn, or by two threads at the "
        "same time\n");
}
