#include "socket_set.hpp"

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

// Returns the local port of a socket, or 0 if it is not connected yet.
int port_of(int fd) {
  sockaddr_in6 address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  const bool has_port = address.sin6_family == AF_INET || address.sin6_family == AF_INET6;
  return has_port ? ntohs(address.sin6_port) : 0;  // an IPv4 address has it at the same offset
}

// Returns whether the socket has bytes to read or has reached the end of the connection.
bool is_readable(int fd) {
  char byte = 0;
  const auto count = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || (errno != EAGAIN && errno != ENOTCONN);
}

// Returns whether the peer has ended the connection, even if there are bytes to read before the
// end.
bool is_ended(int fd) {
  pollfd look{fd, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0;
}

// Returns whether `fd` is one of the last descriptors that the process may have. These are not used
// for sockets, because a connection also needs files for a moment (certificates, /etc/hosts).
// Without descriptors for them it would fail with a different error, which may be permanent.
bool is_spare(int fd) {
  rlimit files{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_NOFILE, &files);
  constexpr rlim_t kSpare = 8;
  return static_cast<rlim_t>(fd) + std::min(kSpare, files.rlim_cur / 16) >= files.rlim_cur;
}

}  // namespace

SocketSet::SocketSet() {
  if (poller_.watch(wake_.fd(), CURL_POLL_IN)) return;
  throw std::system_error(errno, std::generic_category(), kFailure);
}

std::span<const Poller::Event> SocketSet::wait(int timeout_ms) {
  return {events_.data(), poller_.wait(events_, timeout_ms)};
}

// Returns the shard that wants the event, or nullptr if none does any more.
Shard* SocketSet::owner_of(int fd) {
  if (fd == wake_.fd()) {
    wake_.clear();
    return nullptr;
  }
  auto& socket = at(fd);
  if (socket.shard != nullptr && socket.wanted != 0) return socket.shard;
  forget(fd, socket);
  return nullptr;
}

bool SocketSet::make_room(int fd) noexcept {
  const auto index = static_cast<std::size_t>(fd);
  try {
    if (index >= sockets_.size()) sockets_.resize(index + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Notes which events libcurl wants for a socket, and has the poller watch for them. `what` is
// CURL_POLL_IN, OUT or INOUT, or CURL_POLL_REMOVE if libcurl wants none for now. Returns false if
// the system has no memory to watch the socket.
bool SocketSet::want(int fd, Shard& shard, int what) noexcept {
  if (!make_room(fd)) return false;  // so that `at` can return its element
  auto& socket = at(fd);
  socket.shard = &shard;
  if (what == CURL_POLL_REMOVE) {
    // The poller goes on watching the socket, because most sockets are wanted again for the next
    // exchange, and this saves two system calls. If an event comes before that, `owner_of` ends the
    // watching. The next call here begins it again, and the poller reports the event if it lasts.
    socket.wanted = 0;
    // libcurl opens and closes the sockets of its resolver without our callbacks, so one that
    // stayed watched could be closed unnoticed.
    if (!socket.ours) forget(fd, socket);
    return true;
  }
  socket.wanted = what;
  if (socket.wanted == socket.watched) return true;
  const bool watched = poller_.watch(fd, socket.wanted);
  socket.watched = watched ? socket.wanted : 0;
  return watched;
}

void SocketSet::forget(int fd, Socket& socket) noexcept {
  if (socket.watched != 0) poller_.forget(fd);
  socket.watched = 0;
}

// Returns the new socket, or -errno if the process lacks something for it.
int SocketSet::open(const curl_sockaddr& address) noexcept {
  const int fd = ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  const int problem = fd < 0 ? errno : is_spare(fd) ? EMFILE : make_room(fd) ? 0 : ENOMEM;
  if (problem == 0) {
    at(fd) = {.ours = true};
    return fd;
  }
  lost = true;
  if (fd >= 0) ::close(fd);
  return -problem;
}

// Returns the socket with this local port, or -1 if `open` did not open it. If the port is not
// known yet, first reads the ports of the sockets that were connected since the last search: when a
// socket is opened, it has no port.
int SocketSet::find(int local_port) {
  if (const auto known = ports_.find(local_port); known != ports_.end()) return known->second;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    auto& socket = sockets_[i];
    if (!socket.ours || socket.port != 0) continue;
    const int fd = static_cast<int>(i);
    const int port = port_of(fd);
    if (port == 0) continue;
    ports_.emplace(port, fd);
    socket.port = port;
  }
  const auto found = ports_.find(local_port);
  return found == ports_.end() ? -1 : found->second;
}

// Returns whether the predicate is true for any socket with this local port.
bool SocketSet::any_with(int local_port, bool (*predicate)(int fd)) {
  if (find(local_port) < 0) return false;
  const auto [first, end] = ports_.equal_range(local_port);
  return std::any_of(first, end, [=](const auto& entry) { return predicate(entry.second); });
}

bool SocketSet::has_unread(int local_port) {
  if (local_port != 0) return any_with(local_port, is_readable);
  // Only Unix sockets have no port, and if one socket is a Unix socket, all are.
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const auto& socket = sockets_[i];
    if (socket.ours && socket.wanted == 0 && is_readable(static_cast<int>(i))) return true;
  }
  return false;
}

bool SocketSet::has_ended(int local_port) { return any_with(local_port, is_ended); }

int SocketSet::set_http1(int local_port) {
  const int fd = find(local_port);
  if (fd < 0 || ports_.count(local_port) != 1) return -1;
  at(fd).http1 = true;
  return fd;
}

// Returns false if several connections have the port, because it could be any of them.
bool SocketSet::is_http1(int local_port) const {
  return ports_.count(local_port) == 1 &&
         sockets_[static_cast<std::size_t>(ports_.find(local_port)->second)].http1;
}

// Returns what ::close returns.
int SocketSet::close(curl_socket_t fd) noexcept {
  close_error = errno;
  lost = true;
  const auto [first, end] = ports_.equal_range(at(fd).port);
  const auto entry = std::find_if(first, end, [fd](const auto& some) { return some.second == fd; });
  if (entry != end) ports_.erase(entry);
  forget(fd, at(fd));
  at(fd) = Socket{};
  return ::close(fd);
}

}  // namespace httpretry
