#include "epoll_set.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace httpretry {

EpollSet::EpollSet() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = epoll_ < 0 ? -1 : ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  if (wake_ >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) == 0) return;
  const int cause = errno;
  release();
  throw std::system_error(cause, std::generic_category(), "cannot make an epoll set");
}

EpollSet::~EpollSet() { release(); }

void EpollSet::release() {
  if (wake_ >= 0) ::close(wake_);
  if (epoll_ >= 0) ::close(epoll_);
}

void EpollSet::wake() noexcept {
  const std::uint64_t one = 1;
  // It can otherwise only fail where the counter is full, and then the loop is awake.
  while (::write(wake_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void EpollSet::clear_wake() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto size = ::read(wake_, &count, sizeof count);
}

EpollSet::Events EpollSet::wait(int timeout_ms) {
  Events events;  // NOLINT: epoll_wait fills it
  events.count = ::epoll_wait(epoll_, events.list.data(), kEventsPerWait, timeout_ms);
  return events;
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
  const int first = socket.registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  int result = ::epoll_ctl(epoll_, first, fd, &event);
  // The number may have been closed and used again without our knowledge.
  if (result != 0 && errno == EEXIST) result = ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
  if (result != 0 && errno == ENOENT) result = ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  socket.registered = result == 0 ? socket.wanted : 0;
  return result == 0;
}

void EpollSet::forget(int fd, Socket& socket) const {
  if (socket.registered != 0) ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  socket.registered = 0;
}

curl_socket_t EpollSet::open(const curl_sockaddr& address) noexcept {
  const int fd = ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  open_error_ = fd < 0 ? errno : 0;
  if (fd < 0) return CURL_SOCKET_BAD;
  if (!make_room(fd)) {
    ::close(fd);
    open_error_ = ENOMEM;
    return CURL_SOCKET_BAD;
  }
  at(fd) = Socket{};
  at(fd).ours = true;
  return fd;
}

int EpollSet::close(curl_socket_t fd) noexcept {
  at(fd) = Socket{};
  return ::close(fd);
}

}  // namespace httpretry
