#include "lib/core/curl/watchdog.hpp"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Both ends of a TCP connection.
struct Connection {
  Connection() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(listener, any, size) == 0);
    REQUIRE(::listen(listener, 1) == 0);
    REQUIRE(::getsockname(listener, any, &size) == 0);
    client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::connect(client, any, size) == 0);
    server = ::accept(listener, nullptr, nullptr);
    REQUIRE(server >= 0);
    ::close(listener);
  }
  ~Connection() {
    ::close(client);
    ::close(server);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The client reads what the server has sent.
  void transfer() const {
    std::array<char, 1000> block{};
    if (::send(server, block.data(), block.size(), MSG_NOSIGNAL) > 0) {
      (void)::recv(client, block.data(), block.size(), 0);
    }
  }

  int client = -1;
  int server = -1;
};

void compute(std::chrono::milliseconds cpu) {
  const auto end = std::clock() + cpu.count() * (CLOCKS_PER_SEC / 1000);
  while (std::clock() < end) {
  }
}

}  // namespace

TEST_CASE("only a connection that is read again and again is taken for a flood") {
  const Connection connection;
  Heartbeat loop;  // libcurl is running
  const auto watched = loop.watch(connection.client);
  // As when libcurl opens a large certificate and then reads the server's response in the same
  // call.
  compute(300ms);
  connection.transfer();
  compute(300ms);
  CHECK_FALSE(watched->closed);
  loop.leave();
  // The watchdog is running: it closes a connection that is read without end.
  loop.enter(connection.client);
  for (const auto end = std::chrono::steady_clock::now() + 60s;
       !watched->closed && std::chrono::steady_clock::now() < end;) {
    connection.transfer();
  }
  CHECK(watched->closed);
  loop.leave();
}

TEST_CASE("bytes that arrive at the moment when they are counted are no flood") {
  const Connection connection;
  Heartbeat loop;
  const auto watched = loop.watch(connection.client);
  loop.leave();
  std::atomic<bool> over = false;
  std::thread server([&] {
    for (int sent = 0; sent < 500'000 && !over; ++sent) {
      (void)::send(connection.server, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  });
  std::array<char, 10'000> block{};
  for (int i = 0; i < 5000 && !watched->closed; ++i) {
    watched->progressed = true;
    for (int call = 0; call < 2000; ++call) {
      loop.enter(connection.client);
      loop.leave();
    }
    loop.enter(connection.client);
    (void)::recv(connection.client, block.data(), block.size(), MSG_DONTWAIT);
    loop.leave();
  }
  over = true;
  server.join();
  CHECK_FALSE(watched->closed);
}

TEST_CASE("only calls without progress that handled a connection count for it") {
  const Connection one;
  const Connection other;
  Heartbeat loop;
  const auto first = loop.watch(one.client);
  const auto second = loop.watch(other.client);
  loop.leave();
  struct Row {
    int fd;  // that libcurl is to handle; -1 for any
    bool progressed, paused;
    unsigned of_first, of_second;
    bool may_spin;
  };
  first->silent_calls = second->silent_calls = 14;
  for (const Row& row :
       {Row{one.client, false, false, 15, 14, false}, Row{-1, false, false, 16, 15, true},
        Row{other.client, false, false, 16, 16, true}, Row{one.client, true, false, 1, 16, false},
        Row{-1, false, false, 2, 17, true}, Row{other.client, false, true, 2, 1, false},
        Row{12345, false, false, 2, 1, false}}) {
    for (const auto& watched : {first, second}) {
      watched->progressed = row.progressed;
      watched->paused = row.paused ? 1 : 0;
    }
    loop.enter(row.fd);
    CHECK(loop.leave());
    CHECK(first->silent_calls == row.of_first);
    CHECK(second->silent_calls == row.of_second);
    CHECK(loop.may_spin() == row.may_spin);
    first->progressed = second->progressed = false;
  }
  CHECK_FALSE(loop.leave());
}

TEST_CASE("a connection may receive a megabyte without progress, and no more") {
  const Connection connection;
  Heartbeat loop;
  const auto watched = loop.watch(connection.client);
  loop.leave();
  const auto receive = [&](std::size_t size) {
    const std::string bytes(size, 'x');
    REQUIRE(::send(connection.server, bytes.data(), size, MSG_NOSIGNAL) ==
            static_cast<ssize_t>(size));
    std::string received(size, ' ');
    REQUIRE(::recv(connection.client, received.data(), size, MSG_WAITALL) ==
            static_cast<ssize_t>(size));
  };
  const auto call_silently = [&](int calls = 256) {
    for (int call = 0; call < calls; ++call) {
      loop.enter(connection.client);
      loop.leave();
    }
  };
  const auto receive_most = [&] {
    for (int block = 0; block < 1024; ++block) receive(1024);
  };
  receive(1000);
  call_silently();  // begins to count
  receive_most();
  call_silently();
  CHECK_FALSE(watched->closed);
  // The bytes before the 256th call after progress do not count.
  watched->progressed = true;
  call_silently(255);
  receive_most();
  call_silently(1);  // begins anew
  receive_most();
  call_silently();
  CHECK_FALSE(watched->closed);
  receive(1);
  call_silently(255);
  CHECK_FALSE(watched->closed);
  call_silently(1);
  CHECK(watched->closed);
}

// At the moment of the fork, the thread of the parent has the lock or waits for its condition.
TEST_CASE("a forked child watches loops of its own") {
  const Heartbeat of_parent;
  for (int i = 0; i < 20; ++i) {
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::alarm(30);  // a child that hangs ends by a signal
      for (int k = 0; k < 300; ++k) const Heartbeat of_child;
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
}
