// How much libcurl reads at a time: after a large body in memory more, for the next on its handle.
#include "files.hpp"
#include "raw_server.hpp"
#include "wire.hpp"

#include <httpretry/body/sink.hpp>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <semaphore>
#include <thread>

using namespace httpretry;

namespace {

constexpr std::size_t kLarge = 512UL * 1024;
// As much as a socket holds while nobody reads. With a buffer of the usual size it takes two reads.
constexpr std::size_t kTwoReads = 128UL * 1024;

// On a Unix socket, which holds all of kTwoReads (TCP may hold half of it back). The path of a
// request is the size of the body. One of kTwoReads is sent when the client has read the headers.
class SizeServer {
 public:
  SizeServer() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_, 1) == 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~SizeServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  SizeServer(const SizeServer&) = delete;
  SizeServer& operator=(const SizeServer&) = delete;

  [[nodiscard]] std::string path() const { return directory_.file("socket"); }
  // The client has read the headers. Returns when the whole body is in the socket.
  void send_body() {
    headers_read_.release();
    REQUIRE(body_sent_.try_acquire_for(kPatience));
  }
  [[nodiscard]] bool all_is_read() const {
    int unread = 0;
    REQUIRE(::ioctl(connection_, SIOCOUTQ, &unread) == 0);
    return unread == 0;
  }

 private:
  static constexpr std::chrono::seconds kPatience{20};

  void serve() {
    connection_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    for (;;) {
      const auto request = read_until(connection_, "\r\n\r\n");
      if (request.empty()) break;
      const auto size = std::stoul(request.substr(std::strlen("GET /")));
      write_all(connection_,
                "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
      const bool waits = size == kTwoReads;
      if (waits && !headers_read_.try_acquire_for(kPatience)) break;
      write_all(connection_, std::string(size, 'b'));
      if (waits) body_sent_.release();
    }
    ::close(connection_);
  }

  TemporaryDirectory directory_;
  int listener_;
  int connection_ = -1;
  std::binary_semaphore headers_read_{0};
  std::binary_semaphore body_sent_{0};
  std::thread thread_;
};

Request get(std::size_t size) { return Request::get("http://server/" + std::to_string(size)); }

// Whether the first read took all of kTwoReads. The client is asked at the first piece, and reads
// no more until it has answered.
bool is_read_at_once(Client& client, SizeServer& server) {
  std::optional<bool> at_once;
  auto request = get(kTwoReads);
  request.edit_options().on_progress = [&](const Progress& now) {
    if (now.to_receive && now.received == 0) server.send_body();
  };
  request.edit_options().sink = pass_to([&](std::string_view /*bytes*/) {
    if (!at_once) at_once = server.all_is_read();
  });
  REQUIRE(client.send(request));
  return at_once.value();
}

}  // namespace

TEST_CASE("after a large body in memory, more is read at a time") {
  SizeServer server;
  ClientOptions options;
  options.middlewares = {};
  options.connection.unix_socket = server.path();
  Client client(options);

  CHECK_FALSE(is_read_at_once(client, server));
  REQUIRE(client.send(get(kLarge)));
  CHECK(is_read_at_once(client, server));
  CHECK_FALSE(is_read_at_once(client, server));  // the last did not go into memory
  REQUIRE(client.send(get(kLarge)));
  REQUIRE(client.send(get(2)));
  CHECK_FALSE(is_read_at_once(client, server));  // the last was small
}
