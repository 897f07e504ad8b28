// A call can be stopped wherever it waits: from another thread, at once, and nothing is sent after
// that.
#include "raw_server.hpp"
#include "send_functions.hpp"
#include "tests/waiting.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <latch>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// It is milliseconds; but the machine may have other things to do, and what is not stopped would
// go on for half a minute.
constexpr auto kSoon = 3s;

struct Stopped {
  Error error;
  Clock::duration took;
};

// Sends, lets the loop come to rest after `reached`, and requests the stop on this thread.
Stopped stop_when(Client& client, Request request, const std::function<void()>& reached) {
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  std::promise<std::pair<Outcome, Clock::time_point>> told;
  auto heard = told.get_future();
  client.send_then(
      std::move(request),
      [&](Outcome outcome) {
        told.set_value({std::move(outcome), Clock::now()});
      },
      options);
  reached();
  for (int i = 0; i < 3; ++i) {  // a turn of the loop each
    (void)client.send_async(Request::get("nonsense")).get();
  }
  CHECK(heard.wait_for(0s) == std::future_status::timeout);
  const auto asked = Clock::now();
  stop.request_stop();
  auto [outcome, when] = heard.get();
  REQUIRE_FALSE(outcome);
  return {std::move(outcome).error(), when - asked};
}

void check(const Stopped& stopped, Sent sent) {
  CHECK(stopped.error.code == Errc::Canceled);
  CHECK(stopped.error.exchange.sent == sent);
  CHECK(stopped.took < kSoon);
}

Client retrying(ClientOptions options = {}) {
  options.middlewares = {retry(patient())};
  return Client(options);
}

void at_once() {}

// Whether the kernel has a thread of ours wait for something.
bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}

}  // namespace

TEST_CASE("a stop ends a wait for admission") {
  FaultServer server(Scenario({Fault::Hang}));
  ClientOptions options;
  options.middlewares = {};
  options.max_in_flight = 1;
  auto client = retrying(options);
  auto first = client.send_async(Request::get(server.url("/")));
  CHECK(server.wait_for_requests(1, 30s));
  std::stop_source stop;
  CallOptions stopped;
  stopped.stop = stop.get_token();
  auto second = client.send_async(Request::get(server.url("/")), stopped);
  CHECK(second.wait_for(0s) == std::future_status::timeout);
  const auto asked = Clock::now();
  stop.request_stop();
  const auto outcome = second.get();
  CHECK(Clock::now() - asked < kSoon);
  CHECK(outcome.error().code == Errc::Canceled);
  CHECK(outcome.error().exchange.sent == Sent::Never);
  CHECK(server.requests() == 1);
}

TEST_CASE("a stop ends a wait for a name's address") {
  std::latch begun(1);
  const auto over = std::make_shared<std::latch>(1);  // the look-up may outlive the client
  ClientOptions options;
  options.middlewares = {};
  options.connection.lookup = [&begun, over](const std::string&) {
    begun.count_down();
    over->wait();
    return Result<Addresses>(Addresses{"127.0.0.1"});
  };
  auto client = retrying(options);
  check(stop_when(client, Request::get("http://x.test/"), [&] { begun.wait(); }), Sent::Never);
  over->count_down();
}

TEST_CASE("a stop ends a wait for a connection") {
  // A listener whose queue is full leaves those who want to connect waiting.
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(listener, generic, size) == 0);
  REQUIRE(::listen(listener, 0) == 0);
  REQUIRE(::getsockname(listener, generic, &size) == 0);
  std::vector<int> queued;
  for (int i = 0; i < 8; ++i) {
    queued.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(queued.back(), generic, size);
  }
  {
    auto client = retrying();
    const auto url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
    const auto stopped = stop_when(client, Request::get(url), &at_once);
    CHECK(stopped.error.code == Errc::Canceled);
    CHECK(stopped.took < kSoon);
  }
  for (const int fd : queued) ::close(fd);
  ::close(listener);
}

TEST_CASE("a stop ends a TLS handshake") {
  FaultServerOptions tls;
  tls.tls = Tls::Good;
  FaultServer server(Scenario({Fault::TlsStall}), tls);
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = server.ca_file();
  auto client = retrying(options);
  const auto connected = [&] { wait_until([&] { return server.connections() > 0; }); };
  check(stop_when(client, Request::get(server.url("/")), connected), Sent::Never);
}

TEST_CASE("a stop ends an upload that goes nowhere") {
  std::latch connected(1);
  std::latch over(1);
  RawServer server([&](int listener) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    (void)read_until(fd, "\r\n\r\n");
    connected.count_down();
    over.wait();
    ::close(fd);
  });
  auto client = retrying();
  auto request = Request::put(server.url(), std::string(64U << 20U, 'x'));
  check(stop_when(client, std::move(request), [&] { connected.wait(); }), Sent::Maybe);
  over.count_down();
}

TEST_CASE("a stop ends a wait for the response") {
  FaultServer server(Scenario({Fault::Hang}));
  auto client = retrying();
  const auto seen = [&] { CHECK(server.wait_for_requests(1, 30s)); };
  check(stop_when(client, Request::get(server.url("/")), seen), Sent::Maybe);
}

TEST_CASE("a stop from another thread ends a send that blocks, in an exchange and in a backoff") {
  for (const auto& step : {Step(Fault::Hang), Step(503)}) {
    FaultServer server(Scenario({200, step}));
    auto client = retrying();
    // On a kept connection libcurl has no timer of its own that would wake it soon.
    REQUIRE(client.get(server.url("/")));
    std::stop_source stop;
    CallOptions options;
    options.stop = stop.get_token();
    std::thread stopping([&, blocked = ::gettid()] {
      CHECK(server.wait_for_requests(2, 30s));
      wait_until([&] { return sleeps(blocked); });
      stop.request_stop();
    });
    const auto begun = Clock::now();
    const auto outcome = client.send(Request::get(server.url("/")), options);
    stopping.join();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Canceled);
    CHECK(Clock::now() - begun < kSoon);
  }
}

TEST_CASE("a stop ends a response in its body") {
  std::latch begun(1);
  std::latch over(1);
  RawServer server([&](int listener) {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    (void)read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345");
    begun.count_down();
    over.wait();
    ::close(fd);
  });
  auto client = retrying();
  const auto stopped = stop_when(client, Request::get(server.url()), [&] { begun.wait(); });
  CHECK(stopped.error.code == Errc::Canceled);
  CHECK(stopped.took < kSoon);
  over.count_down();
}

TEST_CASE("a stop ends a backoff, and nothing is sent after it") {
  FaultServer server(Scenario({503}));
  auto client = retrying();
  const auto seen = [&] { CHECK(server.wait_for_requests(1, 30s)); };
  const auto stopped = stop_when(client, Request::get(server.url("/")), seen);
  check(stopped, stopped.error.exchange.sent);
  CHECK(stopped.error.history.attempts.size() <= 1);
  CHECK(server.requests() == 1);
}

TEST_CASE("a stop at any moment, from several threads at once, ends each call once") {
  FaultServer server({200, 503, Fault::Reset, {200, std::string(100'000, 'b')}, Fault::Close, 429});
  auto policy = hasty();
  policy.max_attempts = 3;
  ClientOptions options;
  options.middlewares = {redirect(), retry(policy), timeout(5s)};
  options.threads = 2;
  options.max_in_flight = 20;
  Client client(options);
  constexpr int kCalls = 400;
  std::vector<std::stop_source> stops(kCalls);
  std::vector<std::atomic<int>> ends(kCalls);
  std::atomic<int> ended = 0;
  std::thread sending([&] {
    for (std::size_t i = 0; i < kCalls; ++i) {
      CallOptions call;
      call.stop = stops[i].get_token();
      client.send_then(
          Request::get(server.url("/")),
          [&ends, &ended, i](const Outcome&) {
            ++ends[i];
            ++ended;
            ended.notify_one();
          },
          call);
    }
  });
  std::vector<std::thread> stopping;
  for (std::size_t thread = 0; thread < 2; ++thread) {
    stopping.emplace_back([&, thread] {
      for (std::size_t i = thread; i < kCalls; i += 3) {
        stops[i].request_stop();
        stops[(i * 7) % kCalls].request_stop();
        std::this_thread::yield();
      }
    });
  }
  sending.join();
  for (auto& thread : stopping) thread.join();
  for (auto count = ended.load(); count < kCalls; count = ended.load()) ended.wait(count);
  for (const auto& count : ends) CHECK(count == 1);
}
