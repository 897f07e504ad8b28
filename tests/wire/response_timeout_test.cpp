// response_timeout: it counts until the headers of the final response, and no further.
#include "raw_server.hpp"
#include "send_functions.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <latch>

using namespace httpretry;
using namespace std::chrono_literals;
namespace ways = httpretry::send_functions;

namespace {

RetryPolicy with_response_timeout(Duration limit) {
  auto policy = hasty();
  policy.response_timeout = limit;
  return policy;
}

// Accepts one connection, and goes on with it.
std::function<void(int)> once(std::function<void(int fd)> serve) {
  return [serve = std::move(serve)](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) return;
    serve(fd);
    ::close(fd);
  };
}

}  // namespace

TEST_CASE_TEMPLATE(
    "a server that hangs is left at response_timeout, and a long body is read to its end", Way,
    ways::Blocking, ways::BlockingOnLoop, ways::Future) {
  Step slow(200, std::string(40, 'x'));
  slow.fault = Fault::Drip;
  slow.interval = 20ms;  // 800 ms in all
  FaultServer server({Fault::Hang, slow});
  ClientOptions options;
  options.blocking = Way::kBlocking;
  options.middlewares = {retry(with_response_timeout(200ms))};
  Client client(std::move(options));
  const auto outcome = Way::send(client, Request::get(server.url()), {});
  REQUIRE(outcome);
  CHECK(outcome->body == slow.body);
  const auto& attempts = outcome->history.attempts;
  REQUIRE(attempts.size() == 2);
  CHECK(attempts[0].error == Errc::Timeout);
  CHECK(attempts[0].duration >= 200ms);
  CHECK(attempts[1].duration >= 600ms);
}

TEST_CASE("1xx responses do not put response_timeout off") {
  RawServer server(once([](int fd) {
    read_until(fd, "\r\n\r\n");
    pollfd client_left{fd, POLLIN, 0};
    while (::poll(&client_left, 1, 20) == 0) write_all(fd, "HTTP/1.1 102 Processing\r\n\r\n");
  }));
  auto policy = with_response_timeout(200ms);
  policy.max_attempts = 1;
  Client client({retry(policy)});
  const auto outcome = client.get(server.url());
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
}

TEST_CASE("response_timeout counts from the last part of a request body") {
  FaultServer server;
  auto policy = with_response_timeout(400ms);
  policy.max_attempts = 1;
  Client client({retry(policy)});
  const std::string bytes(512U << 10U, 'x');
  const auto generated = Body::generated([&] {
    return [left = bytes.size()](std::span<char> into) mutable {
      const auto count = std::min(left, into.size());
      std::ranges::fill(into.first(count), 'x');
      left -= count;
      return count;
    };
  });
  for (const auto& body : {generated, Body(bytes)}) {
    auto request = Request::put(server.url(), body);
    request.edit_options().upload_rate =
        bytes.size();  // a second, less what the socket takes at once
    const auto outcome = client.send(request);
    if (!outcome) FAIL(outcome.error().message);
    CHECK(outcome->history.elapsed > 600ms);
  }
}

TEST_CASE("a server that takes only a part of a body from memory is left at response_timeout") {
  std::latch over(1);  // the bytes that were not read hide from the server that the client left
  RawServer server(once([&](int fd) {
    read_until(fd, "\r\n\r\n");
    over.wait();
  }));
  auto policy = with_response_timeout(200ms);
  policy.max_attempts = 1;
  Client client({retry(policy)});
  const auto outcome = client.put(server.url(), std::string(32U << 20U, 'x'));
  over.count_down();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
}

TEST_CASE("an upload rate beyond what libcurl knows is no limit, and neither is 0") {
  FaultServer server({Step(200), Step(Fault::Hang)});
  Client client({retry(with_response_timeout(300ms))});
  auto request = Request::post(server.url(), "x");
  request.edit_options().upload_rate = UINT64_MAX;
  CHECK(client.send(request));
  request.edit_options().upload_rate = 0;
  const auto outcome = client.send(request, CallOptions().with_timeout(10s));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  CHECK(outcome.error().history.elapsed < 5s);
}

TEST_CASE("a time that has passed long ago is a limit like any other") {
  FaultServer server({Step(Fault::Hang)});
  auto policy = with_response_timeout(10s);
  policy.deadline_header = "X-Time-Left";
  Client client({retry(policy)});
  auto request = Request::get(server.url());
  request.edit_options().respond_by = Time::min();
  const auto outcome = client.send(request);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
  CHECK(outcome.error().history.elapsed < 5s);
  for (const auto& seen : server.seen()) CHECK(seen.headers["X-Time-Left"] == "0");
}
