#include "cli/wait_limit.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace httpretry::cli {
namespace {

int checked(int result) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), "a limit for waits");
  return result;
}

void add(int epoll, int descriptor) {
  ::epoll_event event{};
  event.events = EPOLLIN;
  checked(::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event));
}

}  // namespace

WaitLimit::WaitLimit(const Signals& signals, std::optional<Duration> time)
    : signals_(signals),
      time_(time.value_or(Duration::zero())),
      timer_(checked(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC))),
      either_(checked(::epoll_create1(EPOLL_CLOEXEC))) {
  add(either_.get(), timer_.get());
  add(either_.get(), signals.descriptor());
  restart();
}

// A time of zero does not arm the timer.
void WaitLimit::restart() const {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time_);
  ::itimerspec when{};
  when.it_value.tv_sec = static_cast<::time_t>(whole.count());
  when.it_value.tv_nsec = static_cast<long>((time_ - whole).count());
  checked(::timerfd_settime(timer_.get(), 0, &when, nullptr));
}

bool WaitLimit::has_expired() const {
  ::pollfd state{timer_.get(), POLLIN, 0};
  return ::poll(&state, 1, 0) > 0;
}

}  // namespace httpretry::cli
