// A response that came before its request is not the answer to it (RFC 9112 §9.2).
#include "files.hpp"
#include "http2_server.hpp"
#include "send_functions.hpp"

#include "lib/core/base/descriptor.hpp"
#include "lib/core/base/owned.hpp"
#include "lib/extras/testing/certificates.hpp"
#include "tests/waiting.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

using namespace httpretry;

namespace {

enum class Over { Tcp, Tls, Unix };

// Answers each request with "CONNECTION METHOD TARGET", and sends what no request has asked for
// when it is told to.
class EagerServer {
 public:
  explicit EagerServer(Over over) : over_(over) {
    sockaddr_storage address{};
    const auto size = make_address(address);
    listener_ = Descriptor(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(listener_.get(), any, size) == 0);
    REQUIRE(::listen(listener_.get(), 16) == 0);
    socklen_t known = sizeof address;
    REQUIRE(::getsockname(listener_.get(), any, &known) == 0);
    if (over != Over::Unix) port_ = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~EagerServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  EagerServer(const EagerServer&) = delete;
  EagerServer& operator=(const EagerServer&) = delete;

  // Sends `text` on all connections; it is there when this returns.
  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    for (auto& connection : connections_) {
      write(connection, text);
      wait_until([&] { return over_ == Over::Unix || has_arrived(connection); });
    }
  }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] int connections() const { return accepted_; }
  [[nodiscard]] std::string url(const std::string& path) const {
    const std::string scheme = over_ == Over::Tls ? "https" : "http";
    return scheme + "://127.0.0.1:" + std::to_string(port_) + path;
  }
  [[nodiscard]] ClientOptions options() const {
    ClientOptions options;
    options.middlewares = {};
    if (over_ == Over::Tls) options.connection.ca_file = certificates_.ca_file();
    if (over_ == Over::Unix) options.connection.unix_socket = directory_.file("socket");
    return options;
  }

 private:
  struct Connection {
    Descriptor socket;
    Owned<SSL, SSL_free> tls;
    int number = 0;
    std::string received;
  };

  socklen_t make_address(sockaddr_storage& address) const {
    if (over_ == Over::Unix) {
      auto& there = reinterpret_cast<sockaddr_un&>(address);
      there.sun_family = AF_UNIX;
      directory_.file("socket").copy(there.sun_path, sizeof there.sun_path - 1);
      return sizeof there;
    }
    auto& there = reinterpret_cast<sockaddr_in&>(address);
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof there;
  }
  // The listener is readable for a new client, and when the server ends.
  void serve() {
    for (;;) {
      std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
      for (const auto& connection : connections_) {
        watched.push_back({connection.socket.get(), POLLIN, 0});
      }
      if (::poll(watched.data(), watched.size(), -1) <= 0) return;
      const std::lock_guard lock(mutex_);
      for (std::size_t i = watched.size(); i-- > 1;) {
        const auto at = connections_.begin() + static_cast<std::ptrdiff_t>(i - 1);
        if (watched[i].revents != 0 && !answer(*at)) connections_.erase(at);
      }
      if (watched[0].revents != 0 && !accept()) return;
    }
  }
  bool accept() {
    Connection fresh;
    fresh.socket = Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fresh.socket.is_open()) return false;
    fresh.number = ++accepted_;
    if (over_ == Over::Tls) {
      fresh.tls.reset(SSL_new(&certificates_.context()));
      SSL_set_fd(fresh.tls.get(), fresh.socket.get());
      if (SSL_accept(fresh.tls.get()) != 1) return true;
    }
    connections_.push_back(std::move(fresh));
    return true;
  }
  // False where the client has closed it.
  bool answer(Connection& connection) {
    std::array<char, 4096> bytes{};
    const auto count =
        connection.tls
            ? SSL_read(connection.tls.get(), bytes.data(), static_cast<int>(bytes.size()))
            : static_cast<int>(::recv(connection.socket.get(), bytes.data(), bytes.size(), 0));
    if (count <= 0) return false;
    auto& received = connection.received;
    received.append(bytes.data(), static_cast<std::size_t>(count));
    const auto end = received.find("\r\n\r\n");
    const std::size_t body = received.find("Content-Length: 1\r\n") == std::string::npos ? 0 : 1;
    if (end == std::string::npos || received.size() < end + 4 + body) return true;
    ++requests_;
    const auto line = received.substr(0, received.find(" HTTP/1.1"));
    write(connection, response(std::to_string(connection.number) + " " + line));
    received.clear();
    return true;
  }
  // True also where the client has reset the connection: what it had not acknowledged then stays in
  // the queue.
  static bool has_arrived(const Connection& connection) {
    int bytes = 0;
    if (::ioctl(connection.socket.get(), SIOCOUTQ, &bytes) != 0) FAIL("no SIOCOUTQ");
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(connection.socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
      FAIL("no TCP_INFO");
    }
    return bytes == 0 || info.tcpi_state == TCP_CLOSE;
  }
  static void write(Connection& connection, const std::string& text) {
    if (connection.tls) {
      SSL_write(connection.tls.get(), text.data(), static_cast<int>(text.size()));
    } else {
      ::send(connection.socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    }
  }

 public:
  static std::string response(const std::string& body, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }

 private:
  const Over over_;
  const TemporaryDirectory directory_;
  const faults::Certificates certificates_{Tls::Good};
  std::uint16_t port_ = 0;
  Descriptor listener_;
  std::mutex mutex_;  // guards the connections, which only the server's thread adds and removes
  std::vector<Connection> connections_;
  std::atomic<int> requests_ = 0;
  std::atomic<int> accepted_ = 0;
  std::thread thread_;
};

std::string body_of(const Outcome& outcome) {
  return outcome ? outcome->body : outcome.error().message;
}

}  // namespace

TEST_CASE_TEMPLATE("what came before its request is not its response, with", Function,
                   ALL_SEND_FUNCTIONS) {
  for (const auto over : {Over::Tcp, Over::Tls, Over::Unix}) {
    CAPTURE(static_cast<int>(over));
    EagerServer server(over);
    auto options = server.options();
    options.blocking = Function::kBlocking;
    Client client(std::move(options));
    const auto body = [&](Request request) {
      const auto outcome = Function::send(client, std::move(request), {});
      CHECK(exchange_of(outcome).wire_sends == 1);
      return body_of(outcome);
    };
    CHECK(body(Request::get(server.url("/a"))) == "1 GET /a");
    CHECK(body(Request::get(server.url("/b"))) == "1 GET /b");
    server.say(EagerServer::response("stolen"));
    CHECK(body(Request::get(server.url("/c"))) == "2 GET /c");
    CHECK(body(Request::post(server.url("/d"), "x")) == "2 POST /d");
    server.say(EagerServer::response("too slow", "408 Request Timeout"));
    CHECK(body(Request::post(server.url("/e"), "x")) == "3 POST /e");
    CHECK(server.requests() == 5);
  }
}

TEST_CASE(
    "a request that goes to another connection than the first takes no attempt and no budget") {
  EagerServer server(Over::Tcp);
  auto options = server.options();
  RetryPolicy policy;
  policy.max_attempts = 1;
  policy.budget = BudgetPolicy();
  options.middlewares = {retry(policy)};
  Client client(std::move(options));
  const auto before = client.get(server.url("/a"));
  server.say(EagerServer::response("stolen"));
  int read = 0;
  auto body = Body::once(
      [&read](std::span<char> into) {
        into[0] = 'x';
        return std::size_t(read++ == 0 ? 1 : 0);
      },
      1);
  const auto outcome = client.send(Request::post(server.url("/b"), std::move(body)));
  CHECK(body_of(outcome) == "2 POST /b");
  const auto& attempts = history_of(outcome).attempts;
  REQUIRE(attempts.size() == 1);
  CHECK(attempts[0].wire_sends == 1);
  CHECK_FALSE(attempts[0].exchange().reused_connection);
  CHECK(attempts[0].budget_left == history_of(before).attempts.at(0).budget_left);
}

TEST_CASE("what comes for other requests on an HTTP/2 connection does not cost it") {
  const Nghttpd server;
  ClientOptions options;
  options.middlewares = {};
  options.connection.ca_file = server.ca_file();
  Client client(std::move(options));
  REQUIRE(client.send_async(Request::get(server.url())).get());
  const auto before = server.connections();
  std::vector<std::future<Outcome>> ends;
  for (int i = 0; i < 100; ++i) {
    ends.push_back(client.send_async(Request::get(server.url(i % 5 == 0 ? "/large" : "/hello"))));
    if (i % 10 == 9) CHECK(ends[ends.size() - 2].get());
  }
  for (auto& end : ends) {
    if (end.valid()) CHECK(end.get());
  }
  CHECK(server.connections() == before);
}
