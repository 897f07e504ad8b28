// Servers that send HTTP/2 frames without end, which libcurl handles without returning.
#include "raw_server.hpp"
#include "wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

constexpr char kData = 0;
constexpr char kHeaders = 1;
constexpr char kReset = 3;
constexpr char kSettings = 4;
constexpr char kGoAway = 7;

std::string frame(char type, char flags, const std::string& stream, const std::string& payload) {
  return std::string("\0\0", 2) + static_cast<char>(payload.size()) + type + flags + stream +
         payload;
}

// HTTP/2 without TLS. Responds to the first request of each connection with one kind of frame, for
// as long as the connection is open, but for some seconds at most.
class FloodingServer {
 public:
  explicit FloodingServer(std::string what) : what_(std::move(what)) {}
  [[nodiscard]] std::string url() const { return server_.url(); }
  void wait_for_flood() const { floods_.wait(false); }

 private:
  void serve(int listener) {
    for (int fd = 0; (fd = ::accept(listener, nullptr, nullptr)) >= 0; ::close(fd)) talk(fd);
  }

  void talk(int fd) {
    const std::string connection(4, '\0');
    read_exactly(fd, 24);  // the client's preface
    write_all(fd, frame(kSettings, 0, connection, ""));
    std::string head;
    do {
      head = read_exactly(fd, 9);
      if (head.size() < 9) return;
      const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(head[i]); };
      read_exactly(fd, static_cast<std::size_t>(byte(1)) << 8U | byte(2));
    } while (head[3] != kHeaders);
    flood(fd, head.substr(5));
    floods_ = false;
  }

  void flood(int fd, const std::string& stream) {
    const std::string connection(4, '\0');
    const std::string error("\0\0\0\x01", 4);
    std::string frames;
    while (frames.size() < 65536) {
      if (what_ == "empty DATA") frames += frame(kData, 0, stream, "");
      if (what_ == "GOAWAY") frames += frame(kGoAway, 0, connection, stream + error);
      if (what_ == "RST_STREAM") frames += frame(kReset, 0, stream, error);
    }
    if (what_ == "empty DATA") write_all(fd, frame(kHeaders, 4, stream, "\x88"));
    const auto end = std::chrono::steady_clock::now() + 5s;
    bool alive = true;
    while (alive && std::chrono::steady_clock::now() < end) {
      alive = send_all(fd, frames);
      floods_ = true;
      floods_.notify_all();
    }
  }
  static bool send_all(int fd, std::string_view text) {
    while (!text.empty()) {
      const auto count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  static std::string read_exactly(int fd, std::size_t size) {
    std::string text(size, '\0');
    const auto count = ::recv(fd, text.data(), size, MSG_WAITALL);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }

  const std::string what_;
  std::atomic<bool> floods_ = false;
  RawServer server_{[this](int listener) { serve(listener); }};
};

Request get(const FloodingServer& server) {
  auto request = Request::get(server.url());
  request.edit_options().http_version = HttpVersion::Http2PriorKnowledge;
  return request;
}

}  // namespace

TEST_CASE("a flood of HTTP/2 frames ends its call, and no other") {
  for (const std::string what : {"empty DATA", "GOAWAY", "RST_STREAM"}) {
    for (const bool blocking : {true, false}) {
      CAPTURE(what);
      CAPTURE(blocking);
      FloodingServer server(what);
      FaultServer healthy(Scenario{Step(200, "hello")});
      Client client;
      CHECK(client.send_async(Request::get(healthy.url())).get());
      const auto outcome =
          blocking ? client.send(get(server)) : client.send_async(get(server)).get();
      REQUIRE_FALSE(outcome);
      CHECK(outcome.error().code == Errc::Receive);
      // libcurl may notice the end of the stream by itself before the flood has begun.
      const auto& message = outcome.error().message;
      CAPTURE(message);
      CHECK(
          (message.find("HTTP/2 frames without end") != std::string::npos || what == "RST_STREAM"));
      CHECK(outcome.error().exchange.sent != Sent::Never);
      CHECK_FALSE(outcome.error().permanent);
      CHECK(client.send_async(Request::get(healthy.url())).get());
      CHECK(healthy.connections() == 1);  // its connection outlived the flood
    }
  }
}

TEST_CASE("a call whose time is over during a flood ends with a timeout") {
  FloodingServer server("empty DATA");
  CallOptions options;
  options.timeout = 10ms;
  const auto outcome = Client().send(get(server), options);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Timeout);
}

TEST_CASE("a call that is stopped during a flood ends as canceled") {
  FloodingServer server("empty DATA");
  std::stop_source stop;
  CallOptions options;
  options.stop = stop.get_token();
  Client client;
  auto call = client.send_async(get(server), options);
  server.wait_for_flood();
  stop.request_stop();
  const auto outcome = call.get();
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Errc::Canceled);
}

TEST_CASE("all calls of a connection that is flooded end") {
  FloodingServer server("empty DATA");
  Client client;
  auto first = client.send_async(get(server));
  auto second = client.send_async(get(server));
  for (auto* call : {&first, &second}) {
    const auto outcome = call->get();
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == Errc::Receive);
  }
}
