#include "holding_server.hpp"

#include <doctest/doctest.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <unordered_map>
#include <vector>

namespace httpretry {

HoldingServer::HoldingServer(std::size_t count)
    : server_([count](int listener) { serve(listener, count); }) {}

// Ends when its listener is shut down.
void HoldingServer::serve(int listener, std::size_t count) {
  ::listen(listener, 4096);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [&](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    REQUIRE(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
  };
  watch(listener);
  std::unordered_map<int, std::string> connections;
  std::vector<int> held;
  for (bool open = true; open;) {
    std::array<epoll_event, 64> events{};
    const int ready = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener) {
        const int fresh = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        open = fresh >= 0;
        if (!open) break;
        connections[fresh];
        watch(fresh);
        continue;
      }
      std::array<char, 4096> bytes{};
      const auto size = ::recv(fd, bytes.data(), bytes.size(), 0);
      if (size <= 0) {
        ::close(fd);
        connections.erase(fd);
        continue;
      }
      auto& text = connections[fd];
      text.append(bytes.data(), static_cast<std::size_t>(size));
      if (!text.ends_with("\r\n\r\n")) continue;
      text.clear();
      held.push_back(fd);
      if (held.size() < count) continue;
      for (const int one : held) write_all(one, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      held.clear();
    }
  }
  for (const auto& connection : connections) ::close(connection.first);
  ::close(epoll);
}

}  // namespace httpretry
