// Which threads a client on an EventLoop starts.
#include "event_loops.hpp"
#include "http2_server.hpp"
#include "raw_server.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <set>
#include <string>
#include <utility>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// The numbers of the threads of this process.
std::set<std::string> threads() {
  std::set<std::string> numbers;
  DIR* listing = ::opendir("/proc/self/task");
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] != '.') numbers.emplace(entry->d_name);
  }
  ::closedir(listing);
  return numbers;
}

// Those of other tests may still be ending, so a number of threads would say nothing.
std::size_t new_threads(const std::set<std::string>& before) {
  std::size_t count = 0;
  for (const auto& number : threads()) count += 1 - before.count(number);
  return count;
}

// A server without a thread: the test accepts its connections, which the system completes before.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(fd_, 16) == 0);
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = std::to_string(ntohs(address.sin_port));
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] const std::string& port() const { return port_; }
  // -1 where nobody has connected.
  [[nodiscard]] int accept() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  int fd_;
  std::string port_;
};

// Sends a request to this host and answers it; how many threads were started until then.
std::size_t threads_of_call(const std::string& host, Lookup lookup = {}) {
  const auto before = threads();
  const Listener listener;
  const auto loop = std::make_shared<EventLoop>();
  auto options = options_on(loop, default_chain());
  options.connection.resolve = {"api.example.com:" + listener.port() + ":127.0.0.1"};
  options.connection.lookup_may_block = lookup == nullptr;
  options.connection.lookup = std::move(lookup);
  Client client(options);
  int status = 0;
  client.send_then(Request::get("http://" + host + ":" + listener.port() + "/"),
                   [&](const Outcome& outcome) { status = outcome ? outcome->status : -1; });
  int connection_fd = -1;
  turn_until_seen(*loop, [&] { return (connection_fd = listener.accept()) >= 0; });
  // The request is on its way: the client sends it in the turn in which it is connected.
  pollfd request{connection_fd, POLLIN, 0};
  turn_until_seen(*loop, [&] { return ::poll(&request, 1, 0) == 1; });
  read_until(connection_fd, "\r\n\r\n");
  const auto count = new_threads(before);
  write_all(connection_fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  turn_until(*loop, [&] { return status != 0; });
  ::close(connection_fd);
  CHECK(status == 200);
  return count;
}

}  // namespace

TEST_CASE("a client on an EventLoop has no thread where the program gives the addresses") {
  CHECK(threads_of_call("127.0.0.1") == 0);
  CHECK(threads_of_call("api.example.com") == 0);
  const auto known = [](const std::string& host) -> Result<Addresses> {
    CHECK(host == "shop.example.com");
    return Addresses{"127.0.0.1"};
  };
  CHECK(threads_of_call("shop.example.com", known) == 0);
}

TEST_CASE("without the addresses, only the look-up of a client on an EventLoop has a thread") {
  std::promise<void> answer;
  std::atomic<std::size_t> during = 0;
  const auto before = threads();
  const auto loop = std::make_shared<EventLoop>();
  auto options = options_on(loop, {});
  const ClosedPort closed;
  options.connection.lookup = [&](const std::string&) -> Result<Addresses> {
    during = new_threads(before);
    answer.get_future().wait();
    return Addresses{"127.0.0.1"};
  };
  Client client(options);
  bool ended = false;
  auto url = closed.url();
  url.replace(url.find("127.0.0.1"), 9, "api.example.com");
  client.send_then(Request::get(url), [&](const Outcome& outcome) {
    CHECK(outcome.error().code == Errc::Connect);
    ended = true;
  });
  turn_until_seen(*loop, [&] { return during != 0; });
  CHECK(during == 1);
  CHECK_FALSE(ended);
  answer.set_value();
  turn_until(*loop, [&] { return ended; });
}

TEST_CASE("over HTTP/2, only what guards the connection has a thread") {
  const Nghttpd server;  // a process of its own
  const auto before = threads();
  const auto loop = std::make_shared<EventLoop>();
  auto options = options_on(loop, {});
  options.connection.ca_file = server.ca_file();
  Client client(options);
  const auto connections = server.connections();
  constexpr int kCalls = 40;
  int good = 0;
  int ended = 0;
  for (int i = 0; i < kCalls; ++i) {
    const bool large = i % 4 == 0;
    const auto size = large ? Nghttpd::kLarge : std::string("hello, two").size();
    client.send_then(Request::get(server.url(large ? "/large" : "/hello")),
                     [&, size](const Outcome& outcome) {
                       if (outcome && outcome->body.size() == size) ++good;
                       ++ended;
                     });
  }
  turn_until(*loop, [&] { return ended == kCalls; });
  CHECK(good == kCalls);
  CHECK(server.connections() == connections + 1);
  CHECK(new_threads(before) <= 1);  // 0 where that of an earlier test is still there
}
