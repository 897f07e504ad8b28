#include "epoll_poller.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace httpretry {

EpollPoller::EpollPoller(const char* failure) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.open()) throw std::system_error(errno, std::generic_category(), failure);
}

bool EpollPoller::watch(int fd, int what, bool watched) noexcept {
  epoll_event event{};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  event.data.fd = fd;
  const auto problem_of = [&](int change) {
    return ::epoll_ctl(epoll_.get(), change, fd, &event) == 0 ? 0 : errno;
  };
  int problem = problem_of(watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
  // The number may have been closed and used again without our knowledge.
  if (problem == EEXIST) problem = problem_of(EPOLL_CTL_MOD);
  if (problem == ENOENT) problem = problem_of(EPOLL_CTL_ADD);
  return problem == 0;
}

std::size_t EpollPoller::wait(std::span<Event> events, int timeout_ms) noexcept {
  const auto room = static_cast<int>(events.size());
  const int count = ::epoll_wait(epoll_.get(), events.data(), room, timeout_ms);
  return static_cast<std::size_t>(std::max(count, 0));
}

CURLMcode EpollPoller::wait_with(CURLM* multi, int timeout_ms, int& ready, bool& own) {
  curl_waitfd others{epoll_.get(), CURL_WAIT_POLLIN, 0};
  const auto code = curl_multi_poll(multi, &others, 1, timeout_ms, &ready);
  own = others.revents != 0;
  return code;
}

}  // namespace httpretry
