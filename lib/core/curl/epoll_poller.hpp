// EpollPoller: waits for descriptors with epoll, in a time that does not depend on their number.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <curl/curl.h>
#include <sys/epoll.h>

#include <cstddef>
#include <span>

namespace httpretry {

class EpollPoller {
 public:
  using Event = epoll_event;
  // Whether `descriptor` exists, so that libcurl or another poller can wait for this one.
  static constexpr bool kHasDescriptor = true;

  // Throws std::system_error, with the text `failure`, if the process may open no more descriptors.
  explicit EpollPoller(const char* failure);

  // Readable while `wait` would return an event.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }

  // Reports the events `what` (CURL_POLL_IN, CURL_POLL_OUT or both) and errors of the descriptor
  // from now on, in each `wait` while they last. Returns false, with errno, if the system lacks
  // memory.
  bool watch(int fd, int what) noexcept;
  // Must be called before a watched descriptor is closed.
  void forget(int fd) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  // Blocks until something happens, for at most `timeout_ms`. Writes the events to `events` and
  // returns their number. The next wait reports the events that did not fit.
  std::size_t wait(std::span<Event> events, int timeout_ms) noexcept;

  static int descriptor_of(const Event& event) { return event.data.fd; }
  // CURL_CSELECT_IN and so on.
  static int what_of(const Event& event) {
    int what = 0;
    if ((event.events & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_ERR;
    return what;
  }

 private:
  Descriptor epoll_;
};

}  // namespace httpretry
