#include "epoll_set.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace httpretry {
namespace {

// Our port of a socket; 0 where it is not connected yet.
int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
  if (address.ss_family != AF_INET6) return 0;
  return ntohs(reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

// Whether there are bytes to read, or the end of the connection.
bool is_readable(int fd) {
  char byte = 0;
  const auto count = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || (errno != EAGAIN && errno != ENOTCONN);
}

// Whether the other side sends no more, even if there are bytes to read before.
bool is_ended(int fd) {
  pollfd look{fd, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0;
}

// Whether it is one of the last descriptors that the process may have. They are not for sockets: a
// connection that has one also needs files, for a moment (certificates, /etc/hosts), and without
// them it would fail for another reason, which may be permanent.
bool is_spare(int fd) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return false;
  constexpr rlim_t kSpare = 8;
  return static_cast<rlim_t>(fd) + std::min(kSpare, files.rlim_cur / 16) >= files.rlim_cur;
}

}  // namespace

EpollSet::EpollSet() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_.fd();
  if (epoll_.open() && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.fd(), &event) == 0) return;
  throw std::system_error(errno, std::generic_category(), kFailure);
}

std::span<const epoll_event> EpollSet::wait(int timeout_ms) {
  const auto room = static_cast<int>(events_.size());
  const int count = ::epoll_wait(epoll_.get(), events_.data(), room, timeout_ms);
  return {events_.data(), static_cast<std::size_t>(std::max(count, 0))};
}

Shard* EpollSet::owner_of(int fd) {
  auto& socket = at(fd);
  if (socket.shard != nullptr && socket.wanted != 0) return socket.shard;
  forget(fd, socket);
  return nullptr;
}

bool EpollSet::make_room(int fd) noexcept {
  const auto index = static_cast<std::size_t>(fd);
  try {
    if (index >= sockets_.size()) sockets_.resize(index + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool EpollSet::want(int fd, Shard& shard, int what) noexcept {
  if (!make_room(fd)) return false;
  auto& socket = at(fd);
  socket.shard = &shard;
  socket.wanted = 0;
  if (what == CURL_POLL_REMOVE) {
    // The sockets that libcurl made without us (of its resolver) are closed without us.
    if (!socket.ours) forget(fd, socket);
    return true;
  }
  if ((what & CURL_POLL_IN) != 0) socket.wanted |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) socket.wanted |= EPOLLOUT;
  return socket.wanted == socket.registered || watch(fd, socket);
}

bool EpollSet::watch(int fd, Socket& socket) const {
  epoll_event event{};
  event.events = socket.wanted;
  event.data.fd = fd;
  const auto problem_of = [&](int change) {
    return ::epoll_ctl(epoll_.get(), change, fd, &event) == 0 ? 0 : errno;
  };
  int problem = problem_of(socket.registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
  // The number may have been closed and used again without our knowledge.
  if (problem == EEXIST) problem = problem_of(EPOLL_CTL_MOD);
  if (problem == ENOENT) problem = problem_of(EPOLL_CTL_ADD);
  socket.registered = problem == 0 ? socket.wanted : 0;
  return problem == 0;
}

void EpollSet::forget(int fd, Socket& socket) const {
  if (socket.registered != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  socket.registered = 0;
}

int EpollSet::open(const curl_sockaddr& address) noexcept {
  const int fd = ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  if (fd < 0) return -errno;
  if (const int problem = is_spare(fd) ? EMFILE : make_room(fd) ? 0 : ENOMEM; problem != 0) {
    ::close(fd);
    return -problem;
  }
  at(fd) = Socket{};
  at(fd).ours = true;
  at(fd).of_unix = address.family == AF_UNIX;
  return fd;
}

int EpollSet::find(int local_port) {
  auto found = ports_.find(local_port);
  if (found == ports_.end()) {
    learn_ports();
    found = ports_.find(local_port);
  }
  return found == ports_.end() ? -1 : found->second;
}

void EpollSet::learn_ports() {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    auto& socket = sockets_[i];
    if (!socket.ours || socket.port != 0) continue;
    const int fd = static_cast<int>(i);
    const int port = port_of(fd);
    if (port == 0) continue;
    ports_.emplace(port, fd);
    socket.port = port;
  }
}

bool EpollSet::has_unread(int local_port) {
  if (local_port == 0) {
    for (std::size_t i = 0; i < sockets_.size(); ++i) {
      const auto& socket = sockets_[i];
      if (socket.of_unix && socket.wanted == 0 && is_readable(static_cast<int>(i))) return true;
    }
    return false;
  }
  if (find(local_port) < 0) return false;
  const auto [first, end] = ports_.equal_range(local_port);
  return std::any_of(first, end, [](const auto& one) { return is_readable(one.second); });
}

bool EpollSet::has_ended(int local_port) {
  if (find(local_port) < 0) return false;
  const auto [first, end] = ports_.equal_range(local_port);
  return std::any_of(first, end, [](const auto& one) { return is_ended(one.second); });
}

// Where several have the port, it could be any of them.
bool EpollSet::is_http1(int local_port) const {
  return is_only(local_port) &&
         sockets_[static_cast<std::size_t>(ports_.find(local_port)->second)].http1;
}

int EpollSet::close(curl_socket_t fd) noexcept {
  close_error_ = errno;
  const auto [first, end] = ports_.equal_range(at(fd).port);
  const auto own = std::find_if(first, end, [fd](const auto& one) { return one.second == fd; });
  if (own != end) ports_.erase(own);
  at(fd) = Socket{};
  return ::close(fd);
}

}  // namespace httpretry
