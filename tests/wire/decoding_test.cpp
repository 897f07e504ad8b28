// Bodies that decode to far more than was sent, and what else their loop does meanwhile.
#include "raw_server.hpp"
#include "sinks.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kWhole = std::size_t{64} << 20;
// What a loop decodes in one turn, and once more what is read behind it.
constexpr std::size_t kOneTurn = std::size_t{512} << 10;

Step gzip(std::string text) {
  Step step(200, std::move(text));
  step.gzip = true;
  return step;
}

// 64 KiB on the wire, made once: the server would take longer than these tests.
class LargeBody {
 public:
  [[nodiscard]] std::string url() const { return server_.url(); }

 private:
  static std::string response() {
    FaultServer server(Scenario{gzip(std::string(kWhole, 'z'))});
    const auto encoded = Client::bare().get(server.url());
    REQUIRE(encoded);
    return "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " +
           std::to_string(encoded->body.size()) + "\r\n\r\n" + encoded->body;
  }
  void serve(int listener) const {
    for (int fd = 0; (fd = ::accept(listener, nullptr, nullptr)) >= 0; ::close(fd)) {
      read_until(fd, "\r\n\r\n");
      write_all(fd, response_);
    }
  }

  const std::string response_ = response();
  RawServer server_{[this](int listener) { serve(listener); }};
};

Request get_large(std::function<bool(std::string_view)> take) {
  static const LargeBody server;
  auto request = Request::get(server.url());
  request.edit_options().compressed = true;
  request.edit_options().sink = pass_to(std::move(take));
  return request;
}

// Runs a call in both ways that a loop has: for one blocking call, and in the background.
template <class Check>
void in_both_ways(const Check& check) {
  for (const bool blocking : {true, false}) {
    CAPTURE(blocking);
    auto client = Client::bare();
    check([&](Request request, CallOptions options) {
      return blocking ? client.send(std::move(request), std::move(options))
                      : client.send_async(std::move(request), std::move(options)).get();
    });
  }
}

}  // namespace

TEST_CASE("a stop is noticed while a small body decodes to a huge one") {
  in_both_ways([](const auto& send) {
    std::stop_source stop;
    std::size_t after_stop = 0;
    CallOptions options;
    options.stop = stop.get_token();
    const auto outcome = send(get_large([&](std::string_view bytes) {
                                if (stop.stop_requested()) after_stop += bytes.size();
                                stop.request_stop();
                                return true;
                              }),
                              std::move(options));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Canceled);
    CHECK(after_stop <= kOneTurn);
  });
}

TEST_CASE("a deadline is noticed while a small body decodes to a huge one") {
  in_both_ways([](const auto& send) {
    std::size_t after_deadline = 0;
    CallOptions options;
    options.deadline = std::chrono::steady_clock::now() + 50ms;
    const auto deadline = options.deadline;
    const auto outcome = send(get_large([&](std::string_view bytes) {
                                if (std::chrono::steady_clock::now() > deadline) {
                                  after_deadline += bytes.size();
                                }
                                while (std::chrono::steady_clock::now() <= deadline) {
                                }
                                return true;
                              }),
                              options);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Timeout);
    CHECK(after_deadline <= kOneTurn);
  });
}

namespace {

// For a request to "/turns": counts what is decoded in each turn of the loop, until the end.
class CountTurns final : public Middleware {
 public:
  std::promise<void> begun;
  std::atomic<bool> ended = false;
  std::size_t decoded = 0;
  std::size_t most_in_a_turn = 0;

  [[nodiscard]] std::string_view name() const override { return "turns"; }
  Task<Outcome> handle(Request request, Call& call, Next next) override {
    if (!request.url().ends_with("/turns")) {
      Outcome outcome = co_await next(std::move(request), call);
      co_return outcome;
    }
    begun.set_value();
    while (!ended) {
      const std::size_t before = decoded;
      const auto now = call.scheduler().now();
      const bool waited = co_await call.scheduler().sleep_until(now, call.stop());
      if (!waited) break;
      most_in_a_turn = std::max(most_in_a_turn, decoded - before);
    }
    co_return Response(200);
  }
};

}  // namespace

TEST_CASE("other calls of a loop go on while a small body decodes to a huge one") {
  const auto turns = std::make_shared<CountTurns>();
  ClientOptions options;
  options.middlewares = {turns};
  Client client(options);
  auto other = client.send_async(Request::get("http://127.0.0.1/turns"));
  turns->begun.get_future().wait();
  auto large = client.send_async(get_large([&](std::string_view bytes) {
    turns->decoded += bytes.size();
    return true;
  }));
  CHECK(large.get());
  turns->ended = true;
  CHECK(other.get());
  CHECK(turns->decoded == kWhole);
  CHECK(turns->most_in_a_turn <= kOneTurn);
}

TEST_CASE("a body that decodes in many turns is whole, though libcurl was done long before") {
  const std::string whole(3 << 20, 'z');  // 3 KiB on the wire: they come at once
  Step bad = gzip(whole);
  bad.fault = Fault::GzipCutShort;
  in_both_ways([&](const auto& send) {
    FaultServer server(Scenario{gzip(whole), bad, gzip(whole)});
    auto request = Request::get(server.url());
    request.edit_options().compressed = true;
    const auto in_memory = send(request, {});
    REQUIRE(in_memory);
    CHECK(in_memory->body == whole);

    const auto cut_short = send(request, {});
    REQUIRE_FALSE(cut_short);
    CHECK(cut_short.error().code == Errc::Receive);
    CHECK(cut_short.error().partial);

    std::string pieces;
    request.edit_options().sink = pass_to([&](std::string bytes, Call& call) -> Task<bool> {
      pieces += bytes;
      const bool waited =
          co_await call.scheduler().sleep_until(call.scheduler().now(), call.stop());
      co_return waited;
    });
    REQUIRE(send(request, {}));
    CHECK(pieces == whole);
  });
}

TEST_CASE("a sink that wants no more ends a body that is still being decoded") {
  in_both_ways([](const auto& send) {
    std::size_t taken = 0;
    const auto outcome = send(get_large([&](std::string_view bytes) {
                                taken += bytes.size();
                                return taken < (std::size_t{1} << 20);
                              }),
                              {});
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Canceled);
    CHECK(taken < (std::size_t{2} << 20));
  });
}
