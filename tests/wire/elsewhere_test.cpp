// Middlewares and works that await another client's calls, which resume them on that client's
// threads.
#include "wire.hpp"

#include <atomic>
#include <future>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Where observers hear of the call's end.
class Ends final : public Observer {
 public:
  void call_started(const Call& /*call*/, const Request& /*request*/) noexcept override {
    began = std::this_thread::get_id();
  }
  void call_ended(const Call& /*call*/, const Outcome& /*outcome*/) noexcept override {
    at_home = std::this_thread::get_id() == began;
  }
  std::thread::id began;
  std::atomic<bool> at_home = false;
};

// Asks another client before and after the rest of the chain, and waits in between.
MiddlewarePtr asking(Client& other, std::string url) {
  return middleware(
      "asking", [&other, url](Request request, Call& call, Next next) -> Task<Outcome> {
        Outcome before = co_await other.co_send(Request::get(url));
        if (!before) co_return before;
        Outcome outcome = co_await next(request, call);
        Outcome after = co_await other.co_send(Request::get(url));
        if (!after) co_return after;
        const bool slept =
            co_await call.scheduler().sleep_until(call.scheduler().now(), call.stop());
        if (!slept) co_return after;
        Outcome again = co_await other.co_send(Request::get(url));
        co_return again ? std::move(outcome) : std::move(again);
      });
}

}  // namespace

TEST_CASE(
    "a middleware may await another client's call, wherever it stands and however it is sent") {
  FaultServer server(Scenario{503, 200, 200});
  FaultServer others;
  auto other = Client::bare();
  for (const bool above : {true, false}) {
    CAPTURE(above);
    const auto ends = std::make_shared<Ends>();
    ClientOptions options;
    options.middlewares = {retry(hasty())};
    options.middlewares.insert(above ? options.middlewares.begin() : options.middlewares.end(),
                               asking(other, others.url()));
    options.observers = {ends};
    Client client(options);
    for (int i = 0; i < 20; ++i) {
      REQUIRE(client.send(Request::get(server.url())));
      CHECK(ends->at_home);
      REQUIRE(client.send_async(Request::get(server.url())).get());
      CHECK(ends->at_home);
      REQUIRE(sync_wait(client.co_send(Request::get(server.url()))));
    }
  }
}

TEST_CASE("a work that awaits another client's call ends with its client") {
  Step slow(200);
  slow.delay = 50ms;
  FaultServer server(Scenario{slow});
  auto other = Client::bare();
  std::atomic<bool> done = false;
  {
    auto client = Client::bare();
    auto shared = client.spawn([&](Scheduler& scheduler) -> Task<Result<int>> {
      Outcome outcome = co_await other.co_send(Request::get(server.url()));
      const bool slept = co_await scheduler.sleep_until(scheduler.now(), std::stop_token());
      done = outcome.has_value() || slept;
      co_return 1;
    });
    REQUIRE(server.wait_for_requests(1, 10s));
  }
  CHECK(done);
}
