// Event streams over real sockets.
#include "event_loops.hpp"
#include "raw_server.hpp"

#include <httpretry/client/event_stream.hpp>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iomanip>
#include <sstream>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr const char* kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
  std::ostringstream out;
  out << std::hex << text.size() << "\r\n" << text << "\r\n";
  return out.str();
}

// The port of the other end of the connection, or of this one.
template <class Name>
int port_of(int fd, Name name) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  name(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// Whether the kernel has a keepalive timer for the client's end of the connection. Reads
// /proc/net/tcp: the sixth field begins with the kind of timer, which is 2 for keepalive.
bool client_has_keepalive(int fd) {
  const auto hex = [](int port) {
    std::ostringstream out;
    out << ":" << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << port;
    return out.str();
  };
  const auto client = hex(port_of(fd, ::getpeername));
  const auto server = hex(port_of(fd, ::getsockname));
  std::ifstream list("/proc/net/tcp");
  for (std::string line; std::getline(list, line);) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer;
    fields >> number >> local >> remote >> state >> queues >> timer;
    if (local.ends_with(client) && remote.ends_with(server)) return timer.starts_with("02:");
  }
  return false;
}

}  // namespace

TEST_CASE("a stream that is quiet for longer than the policy's stall_timeout goes on") {
  std::atomic<bool> left = false;
  std::atomic<bool> keepalive = false;
  RawServer server([&](int listener) {
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) return;
    read_until(fd, "\r\n\r\n");
    write_all(fd, kHead + chunk("data: a\n\n"));
    pollfd client{fd, POLLIN, 0};
    left = ::poll(&client, 1, 300) == 1;
    keepalive = client_has_keepalive(fd);
    write_all(fd, chunk("data: b\n\n"));
    pollfd until_left{fd, POLLIN, 0};
    ::poll(&until_left, 1, 5000);
    ::close(fd);
  });
  auto policy = hasty();
  policy.stall_timeout = 50ms;
  Client client({retry(policy)});
  std::string heard;
  CHECK(listen(client, Request::get(server.url()), [&](const ServerEvent& event) {
    heard += event.data;
    return heard != "ab";
  }));
  CHECK_FALSE(left);
  CHECK(keepalive);
}

TEST_CASE(
    "a stream that breaks after its headers is requested again by listen, not by the policy") {
  RawServer server([](int listener) {
    for (const auto* body : {"", "data: a\n\n"}) {
      const int fd = ::accept(listener, nullptr, nullptr);
      if (fd < 0) return;
      read_until(fd, "\r\n\r\n");
      write_all(fd, *body == '\0' ? kHead : kHead + chunk(body));
      ::close(fd);
    }
  });
  Client client({retry(hasty())});
  std::vector<std::string> told;
  EventStreamOptions options;
  options.reconnect = 1ms;
  options.on_open = [&](const Response&) { told.emplace_back("open"); };
  options.on_end = [&](const Outcome& outcome) {
    told.emplace_back(outcome ? "end" : to_string(outcome.error().code));
  };
  options.on_reconnect = [&](const Request&) { told.emplace_back("again"); };
  const auto enough = [](const ServerEvent&) { return false; };
  CHECK(listen(client, Request::get(server.url()), enough, options));
  CHECK(told == std::vector<std::string>{"open", "receive", "again", "open", "canceled"});
}

TEST_CASE("a stall_timeout of the stream ends a quiet one, and it is requested again") {
  RawServer server([](int listener) {
    int first = -1;
    for (const auto* body : {"data: a\n\n", "data: b\n\n"}) {
      const int fd = ::accept(listener, nullptr, nullptr);
      if (fd < 0) return;
      read_until(fd, "\r\n\r\n");
      write_all(fd, kHead + chunk(body));
      if (first >= 0) ::close(first);
      first = fd;  // open, and quiet
    }
    pollfd until_left{first, POLLIN, 0};
    ::poll(&until_left, 1, 5000);
    ::close(first);
  });
  Client client({retry(hasty())});
  std::string heard;
  std::vector<Errc> ends;
  EventStreamOptions options;
  options.reconnect = 1ms;
  options.stall_timeout = 50ms;
  options.on_end = [&](const Outcome& outcome) {
    if (!outcome) ends.push_back(outcome.error().code);
  };
  const auto until_b = [&](const ServerEvent& event) {
    heard += event.data;
    return event.data != "b";
  };
  CHECK(listen(client, Request::get(server.url()), until_b, options));
  CHECK(heard == "ab");
  CHECK(ends == std::vector<Errc>{Errc::Timeout, Errc::Canceled});
}

TEST_CASE("other calls of an event loop go on while listen waits between two streams") {
  const Headers type{{"Content-Type", "text/event-stream"}};
  Scenario scenario{{200, type, "data: a\n\n"}};
  scenario.paths["/other"] = Script({{200, "other"}});
  FaultServer server(scenario);
  const auto loop = std::make_shared<EventLoop>();
  auto client = client_on(loop, {});
  loop->turn();  // from now on this thread drives the loop

  std::stop_source stop;
  EventStreamOptions options;
  options.reconnect = options.max_reconnect = 1h;
  options.call.stop = stop.get_token();
  options.on_end = [&](const Outcome&) {
    client.send_then(Request::get(server.url("/other")), [&](const Outcome& outcome) {
      CHECK(outcome->body == "other");
      stop.request_stop();
    });
  };
  const auto all = [](const ServerEvent&) { return true; };
  const auto ended = listen(client, Request::get(server.url("/")), all, options);
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Errc::Canceled);
}

TEST_CASE("a broken stream of a POST is an error, and the POST is not sent again") {
  std::atomic<int> requests = 0;
  const RawServer server([&](int listener) {
    for (;;) {
      const int fd = ::accept(listener, nullptr, nullptr);
      if (fd < 0) return;
      read_until(fd, "question");
      ++requests;
      write_all(fd, kHead + chunk("data: a\n\n"));
      ::close(fd);
    }
  });
  std::string heard;
  Client client;
  const auto ended =
      listen(client, Request::post(server.url(), "question"), [&](const ServerEvent& event) {
        heard += event.data;
        return true;
      });
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == Errc::Receive);
  CHECK(heard == "a");
  CHECK(requests == 1);
}
