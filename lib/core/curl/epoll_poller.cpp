#include "epoll_poller.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace httpretry {

EpollPoller::EpollPoller(const char* failure) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) throw std::system_error(errno, std::generic_category(), failure);
}

// Watches a descriptor for CURL_POLL_IN, CURL_POLL_OUT or both. Returns false, with errno, if the
// system has no memory for that.
bool EpollPoller::watch(int fd, int what) noexcept {
  epoll_event event{};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  event.data.fd = fd;
  // MOD before ADD, because we do not know whether `fd` is registered: its number may have been
  // closed and reused.
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return true;
  return errno == ENOENT && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

std::size_t EpollPoller::wait(std::span<Event> events, int timeout_ms) noexcept {
  const auto room = static_cast<int>(events.size());
  const int count = ::epoll_wait(epoll_.get(), events.data(), room, timeout_ms);
  return static_cast<std::size_t>(std::max(count, 0));
}

}  // namespace httpretry
