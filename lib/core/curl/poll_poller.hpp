// PollPoller: waits for descriptors with poll, on systems without epoll. The time of a wait grows
// with the number of descriptors. epoll_poller.hpp documents the functions.
#pragma once

#include <curl/curl.h>
#include <poll.h>

#include <cstddef>
#include <span>
#include <vector>

namespace httpretry {

class PollPoller {
 public:
  using Event = pollfd;
  static constexpr bool kHasDescriptor = false;

  explicit PollPoller(const char* /*failure*/) {}

  [[nodiscard]] static int descriptor() { return -1; }

  bool watch(int fd, int what) noexcept;
  void forget(int fd) noexcept;

  std::size_t wait(std::span<Event> events, int timeout_ms) noexcept;

  static int descriptor_of(const Event& event) { return event.fd; }
  static int what_of(const Event& event) {
    int what = 0;
    if ((event.revents & POLLIN) != 0) what |= CURL_CSELECT_IN;
    if ((event.revents & POLLOUT) != 0) what |= CURL_CSELECT_OUT;
    if ((event.revents & (POLLERR | POLLHUP)) != 0) what |= CURL_CSELECT_ERR;
    return what;
  }

 private:
  std::vector<pollfd> watched_;
  // The index from which the next wait reports, so that the first descriptors cannot starve the
  // rest.
  std::size_t first_ = 0;
};

}  // namespace httpretry
