#include "poll_poller.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

namespace httpretry {

// Watches a descriptor for CURL_POLL_IN, CURL_POLL_OUT or both. Returns false, with errno, if
// memory is lacking.
bool PollPoller::watch(int fd, int what) noexcept {
  pollfd entry{fd, 0, 0};
  if ((what & CURL_POLL_IN) != 0) entry.events |= POLLIN;
  if ((what & CURL_POLL_OUT) != 0) entry.events |= POLLOUT;
  forget(fd);
  try {
    watched_.push_back(entry);
    return true;
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return false;
  }
}

void PollPoller::forget(int fd) noexcept {
  std::erase_if(watched_, [fd](const pollfd& entry) { return entry.fd == fd; });
}

// Waits for events, and returns their number. If there are more than fit into `events`, the next
// call begins with the descriptors that were left out.
std::size_t PollPoller::wait(std::span<Event> events, int timeout_ms) noexcept {
  if (::poll(watched_.data(), watched_.size(), timeout_ms) <= 0) return 0;
  // Forgets descriptors that were closed without a call of `forget`, as epoll does.
  std::erase_if(watched_, [](const pollfd& entry) { return (entry.revents & POLLNVAL) != 0; });
  std::size_t count = 0;
  // Moves the descriptors that the last call left out to the front.
  if (first_ >= watched_.size()) first_ = 0;
  std::rotate(watched_.begin(), watched_.begin() + static_cast<std::ptrdiff_t>(first_),
              watched_.end());
  for (first_ = 0; first_ < watched_.size() && count < events.size(); ++first_) {
    if (watched_[first_].revents != 0) events[count++] = watched_[first_];
  }
  return count;
}

}  // namespace httpretry
