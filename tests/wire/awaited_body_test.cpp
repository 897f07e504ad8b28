// Bodies that are awaited, on their way out.
#include "http2_server.hpp"
#include "raw_server.hpp"
#include "wire.hpp"

#include "lib/core/base/either_stop.hpp"

#include <httpretry/body/awaited_body.hpp>
#include <httpretry/body/sink.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Where a coroutine waits until the test opens it, or the exchange is over.
class Gate {
 public:
  void open() { opened_.request_stop(); }
  // Until a coroutine waits.
  void wait_for_arrival() { arrived_.get_future().wait(); }
  [[nodiscard]] bool entered() const { return entered_; }
  [[nodiscard]] bool left() const { return left_; }

  Task<> pass(Call& call) {
    entered_ = true;
    arrived_.set_value();
    const EitherStop either(opened_.get_token(), call.stop());
    co_await call.scheduler().sleep_until(kNever, either.token());
    left_ = true;
  }

 private:
  std::stop_source opened_;
  std::promise<void> arrived_;
  std::atomic<bool> entered_ = false;
  std::atomic<bool> left_ = false;
};

// "first, ", and behind the gate "second".
NextPiece gated(Gate& gate) {
  return [&gate, at = 0](Call& call) mutable -> Task<Result<std::string>> {
    if (++at == 1) co_return "first, ";
    if (at == 3) co_return "";
    co_await gate.pass(call);
    co_return "second";
  };
}
constexpr std::string_view kGated = "first, second";

// Speaks HTTP/2, for the sake of a step that only another path has.
Scenario with_http2() {
  Scenario scenario({Step(200, "fine")});
  scenario.paths.emplace("/http2", Script({Fault::Http2NoEndStream}));
  return scenario;
}

// Resumes a coroutine on another thread.
struct OnThread {
  std::thread& thread;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  [[gnu::noinline]] void await_suspend(std::coroutine_handle<> handle) const {
    thread = std::thread([handle] { handle.resume(); });
  }
  void await_resume() const noexcept {}
};

}  // namespace

TEST_CASE("while a body is awaited, its loop carries other calls") {
  for (const auto version :
       {HttpVersion::Http1, HttpVersion::Http2PriorKnowledge, HttpVersion::Any}) {
    for (const bool sized : {false, true}) {
      CAPTURE(version);
      CAPTURE(sized);
      FaultServerOptions with_tls;
      if (version == HttpVersion::Any) with_tls.tls = Tls::Good;
      FaultServer server(with_http2(), with_tls);
      ClientOptions options;
      options.middlewares = {};
      options.connection.ca_file = server.ca_file();
      Client client(options);  // with one loop
      Gate gate;
      const auto size = sized ? std::optional<std::uint64_t>(kGated.size()) : std::nullopt;
      auto upload = Request::put(server.url("/up"), awaited_body_once(gated(gate), size));
      auto other = Request::get(server.url("/other"));
      for (auto* request : {&upload, &other}) request->edit_options().http_version = version;

      auto uploaded = client.send_async(upload);
      gate.wait_for_arrival();
      REQUIRE(client.send_async(other).get());
      CHECK(server.seen().back().path == "/other");
      gate.open();
      const auto outcome = uploaded.get();

      REQUIRE(outcome);
      CHECK(outcome->status == 200);
      const auto seen = server.seen().back();
      CHECK(seen.path == "/up");
      CHECK(seen.body == kGated);
      CHECK(seen.http_version == (version == HttpVersion::Http1 ? "1.1" : "2"));
      CHECK(seen.headers.contains("Content-Length") == sized);
    }
  }
}

TEST_CASE("a body of many pieces goes out whole, through each send function") {
  FaultServer server(with_http2());
  auto client = Client::bare();
  for (const auto version : {HttpVersion::Http1, HttpVersion::Http2PriorKnowledge}) {
    std::string whole;
    for (int i = 0; i < 300; ++i) whole += std::string(static_cast<std::size_t>(i * 10 + 1), 'a');
    auto request =
        Request::put(server.url(), awaited_body([] {
                       return [i = 0](Call& call) mutable -> Task<Result<std::string>> {
                         co_await call.scheduler().sleep_until(call.scheduler().now(), call.stop());
                         if (i == 300) co_return "";
                         co_return std::string(static_cast<std::size_t>(i++ * 10 + 1), 'a');
                       };
                     }));
    request.edit_options().http_version = version;
    REQUIRE(client.send(request));
    CHECK(server.seen().back().body == whole);
    REQUIRE(client.send_async(request).get());
    CHECK(server.seen().back().body == whole);
  }
}

TEST_CASE("an awaited body begins again for a retry, and one that can be read once does not") {
  const auto pieces = [] {
    return
        [at = 0](Call&) mutable -> Task<Result<std::string>> { co_return ++at == 1 ? "all" : ""; };
  };
  FaultServer server(Scenario{{503}, {200}});
  CHECK(Client({retry(hasty())}).put(server.url(), awaited_body(pieces))->status == 200);
  for (const auto& seen : server.seen()) CHECK(seen.body == "all");

  FaultServer other(Scenario{{503}, {200}});
  const auto once = Client({retry(hasty())}).put(other.url(), awaited_body_once(pieces()));
  CHECK(once->status == 503);
  CHECK(once->history.stop_reason == Reason::NotReplayable);
  CHECK(other.requests() == 1);
}

TEST_CASE("a timeout and a stop end the wait for a body") {
  FaultServer server(with_http2());
  for (const auto version : {HttpVersion::Http1, HttpVersion::Http2PriorKnowledge}) {
    auto request = Request::put(server.url(), Body());
    request.edit_options().http_version = version;
    // On a busy machine the time may be over before the body is awaited: then once more, with more
    // of it.
    for (auto limit = 20ms;; limit *= 4) {
      Gate shut;
      request.set_body(awaited_body_once(gated(shut)));
      const auto late = Client({timeout(limit)}).send(request);
      REQUIRE_FALSE(late);
      CHECK(late.error().code == Errc::Timeout);
      if (!shut.entered()) continue;
      CHECK(late.error().exchange.sent == Sent::Maybe);
      CHECK(shut.left());
      break;
    }

    Gate gate;
    std::stop_source stop;
    CallOptions call;
    call.stop = stop.get_token();
    request.set_body(awaited_body_once(gated(gate)));
    auto client = Client::bare();
    auto stopped = client.send_async(request, call);
    gate.wait_for_arrival();
    stop.request_stop();
    const auto outcome = stopped.get();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Canceled);
    CHECK(gate.left());
  }
}

TEST_CASE("a wait for a body is no wait for the response") {
  FaultServer server(Scenario{{200}, {Fault::Hang}});
  const auto slow = [at = 0](Call& call) mutable -> Task<Result<std::string>> {
    if (++at == 3) co_return "";
    const auto later = call.scheduler().now() + 300ms;
    co_await call.scheduler().sleep_until(later, call.stop());
    co_return "piece";
  };
  auto request = Request::put(server.url(), awaited_body([&] { return slow; }));
  request.edit_options().response_timeout = 250ms;
  REQUIRE(Client::bare().send(request));
  CHECK(server.seen().back().body == "piecepiece");
  const auto late = Client::bare().send(request);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Errc::Timeout);
  CHECK(server.seen().back().body == "piecepiece");
}

TEST_CASE("the end of its client ends the wait for a body") {
  FaultServer server;
  Gate gate;
  std::optional<Client> client(std::in_place);
  auto ended = client->send_async(Request::put(server.url(), awaited_body_once(gated(gate))));
  gate.wait_for_arrival();
  client.reset();
  CHECK(ended.get().error().code == Errc::Canceled);
}

TEST_CASE("a response that comes before the end of the body ends the wait for it") {
  for (const bool background : {false, true}) {
    Gate gate;
    const RawServer server([&](int listener) {
      const int fd = ::accept(listener, nullptr, nullptr);
      read_until(fd, "first, ");
      gate.wait_for_arrival();
      write_all(fd, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
      read_until(fd, "the end of the connection");
      ::close(fd);
    });
    const auto request = Request::put(server.url(), awaited_body_once(gated(gate)));
    auto client = Client::bare();
    const auto outcome = background ? client.send_async(request).get() : client.send(request);
    REQUIRE(outcome);
    CHECK(outcome->status == 413);
    CHECK(outcome->body == "no");
    CHECK(gate.left());
  }
}

TEST_CASE("an early response is decoded to its end, though more of the body is awaited") {
  const std::string text(3'000'000, 'n');  // more than is decoded in one turn
  Gate gate;
  Step refuse;
  refuse.respond_early = true;
  refuse.respond = [&](const SeenRequest&) {
    gate.wait_for_arrival();
    Step step(413, text);
    step.gzip = true;
    return step;
  };
  FaultServer server(Scenario{{refuse}});
  auto request = Request::put(server.url(), awaited_body_once(gated(gate)));
  request.edit_options().compressed = true;
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  CHECK(outcome->status == 413);
  CHECK(outcome->body == text);
}

TEST_CASE("an early response that is a success waits for the rest of the body") {
  Gate gate;
  const RawServer server([&](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "first, ");
    gate.wait_for_arrival();
    write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    gate.open();
    read_until(fd, "second");
    write_all(fd, "fine");
    read_until(fd, "the end of the connection");
    ::close(fd);
  });
  const auto outcome = Client::bare().put(server.url(), awaited_body_once(gated(gate)));
  REQUIRE(outcome);
  CHECK(outcome->body == "fine");
}

TEST_CASE("a connection that is reset ends the wait for a body") {
  Gate gate;
  const RawServer server([&](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "first, ");
    gate.wait_for_arrival();
    const linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ::close(fd);
  });
  const auto outcome = Client::bare().put(server.url(), awaited_body_once(gated(gate)));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().exchange.sent == Sent::Maybe);
  CHECK(gate.left());
}

TEST_CASE("a body may continue on another thread") {
  FaultServer server;
  std::vector<std::thread> threads(3);
  const auto next = [&threads, at = std::size_t{0}](Call&) mutable -> Task<Result<std::string>> {
    const OnThread other{threads[at++]};
    co_await other;
    co_return at == threads.size() ? "" : "piece";
  };
  REQUIRE(Client::bare().put(server.url(), awaited_body_once(next)));
  for (auto& thread : threads) thread.join();
  CHECK(server.seen().back().body == "piecepiece");
}

TEST_CASE("an awaited body that fails ends the call") {
  FaultServer server;
  const auto message_of = [&](NextPiece next, std::optional<std::uint64_t> size) {
    const auto outcome =
        Client({retry(hasty())}).put(server.url(), awaited_body_once(std::move(next), size));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::InvalidRequest);
    CHECK(history_of(outcome).attempts.size() == 1);
    return outcome.error().message;
  };
  const auto text = [](int pieces) {
    return [left = pieces](Call&) mutable -> Task<Result<std::string>> {
      co_return left-- > 0 ? "abc" : "";
    };
  };
  const auto failing = [](Call&) -> Task<Result<std::string>> {
    co_return Error(Errc::Internal, "no row");
  };
  const auto throwing = [](Call&) -> Task<Result<std::string>> {
    throw std::runtime_error("no disk");
    co_return "";
  };
  CHECK(message_of(failing, std::nullopt).find("no row") != std::string::npos);
  CHECK(message_of(throwing, std::nullopt).find("reading the body threw: no disk") !=
        std::string::npos);
  CHECK(message_of(text(1), 2).find("longer than its announced size") != std::string::npos);
  CHECK(message_of(text(1), 4).find("1 bytes before its announced size") != std::string::npos);
}

TEST_CASE("a part of a form may be awaited") {
  FaultServer server;
  Gate gate;
  gate.open();
  Form form;
  form.add("title", "x").add(FormPart("data", awaited_body_once(gated(gate)))).add("last", "y");
  REQUIRE(Client::bare().send(Request::post(server.url(), Body()).set_form(form)));
  CHECK(server.seen().back().body.find("\r\n\r\nfirst, second\r\n") != std::string::npos);
  CHECK_FALSE(form.body().replayable());
}

TEST_CASE("a reader that pauses, but cannot be awaited, is an error") {
  struct Lost final : BodyReader {
    Result<std::size_t> read(std::span<char>) override { return kPause; }
  };
  FaultServer server;
  const auto outcome = Client::bare().put(server.url(), Body::once(std::make_unique<Lost>()));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().message.find("is not a PausingReader") != std::string::npos);
}

TEST_CASE("the bodies of a request and of its response may both be awaited") {
  FaultServer server(Scenario{{200, std::string(300'000, 'r')}});
  Gate gate;
  gate.open();
  auto request = Request::put(server.url(), awaited_body_once(gated(gate)));
  std::size_t received = 0;
  request.edit_options().sink = pass_to([&](std::string bytes, Call& call) -> Task<bool> {
    co_await call.scheduler().sleep_until(call.scheduler().now(), call.stop());
    received += bytes.size();
    co_return true;
  });
  REQUIRE(Client::bare().send(request));
  CHECK(received == 300'000);
  CHECK(server.seen().back().body == kGated);
}

// libcurl then begins the body again, while a coroutine still waits for more of it.
TEST_CASE("a body that is awaited begins again for another round of authentication") {
  Gate gate;
  std::string third;
  const RawServer server([&](int listener) {
    const auto ask = [](int fd, const char* nonce) {
      write_all(
          fd,
          std::string(
              "HTTP/1.1 401 Who\r\nWWW-Authenticate: Digest realm=\"r\", stale=true, nonce=\"") +
              nonce + "\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      ::shutdown(fd, SHUT_WR);
    };
    int fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "\r\n\r\n");
    ask(fd, "one");
    ::close(fd);
    fd = ::accept(listener, nullptr, nullptr);
    read_until(fd, "first, ");
    gate.wait_for_arrival();
    ask(fd, "two");
    ::close(fd);
    fd = ::accept(listener, nullptr, nullptr);
    third = read_until(fd, "\r\n0\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    read_until(fd, "the end of the connection");
    ::close(fd);
  });
  int starts = 0;
  auto request = Request::put(server.url(), awaited_body([&]() -> NextPiece {
                                if (++starts == 1) return gated(gate);
                                return [at = 0](Call&) mutable -> Task<Result<std::string>> {
                                  co_return ++at == 1 ? "all of it" : "";
                                };
                              }));
  request.edit_options().credentials.emplace(Credentials::Scheme::Digest, "ann", "secret");
  const auto outcome = Client::bare().send(request);
  REQUIRE(outcome);
  CHECK(outcome->status == 200);
  CHECK(third.find("9\r\nall of it\r\n") != std::string::npos);
  CHECK(gate.left());
}

TEST_CASE("a response over HTTP/2 that comes before the end of the body ends the wait for it") {
  for (const bool background : {false, true}) {
    CAPTURE(background);
    Gate gate;
    const FrameServer server(
        [&](const std::string& stream, int) -> std::optional<FrameServer::Pieces> {
          gate.wait_for_arrival();
          const std::string refused(
              "\x08\x03"
              "413",
              5);
          return FrameServer::Pieces{frame(Frame::Headers, kEndHeaders, stream, refused) +
                                     frame(Frame::Data, kEndStream, stream, "no")};
        });
    ClientOptions options;
    options.middlewares = {};
    options.connection.ca_file = server.ca_file();
    Client client(options);
    const auto request = Request::put(server.url(), awaited_body_once(gated(gate)));
    const auto outcome = background ? client.send_async(request).get() : client.send(request);
    REQUIRE(outcome);
    CHECK(outcome->status == 413);
    CHECK(outcome->body == "no");
    CHECK(gate.left());
  }
}

TEST_CASE("the pieces of a body may be responses, fetched by the same client") {
  FaultServer server(Scenario{{200, "piece "}});
  auto client = Client::bare();
  const auto next = [&, left = 3](Call& call) mutable -> Task<Result<std::string>> {
    if (left-- == 0) co_return "";
    CallOptions options;
    options.stop = call.stop();
    const auto request = Request::get(server.url());
    const auto task = client.co_send(request, options);
    Outcome outcome = co_await task;
    if (!outcome) co_return outcome.error();
    co_return outcome->body;
  };
  const auto request = Request::put(server.url(), awaited_body_once(next));
  REQUIRE(client.send(request));
  CHECK(server.seen().back().body == "piece piece piece ");
  CHECK_FALSE(request.body().replayable());

  REQUIRE(client.send_async(Request::put(server.url(), awaited_body_once(next))).get());
  CHECK(server.seen().back().body == "piece piece piece ");
}
