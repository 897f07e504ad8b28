#include "cli/signal_thread.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace httpretry::cli {
namespace {

int checked(int descriptor) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "signals");
  return descriptor;
}

}  // namespace

::sigset_t signal_set(std::initializer_list<int> signals) {
  ::sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  return set;
}

SignalThread::SignalThread(const ::sigset_t& signals,
                           std::function<void(const ::signalfd_siginfo&)> told)
    : told_(std::move(told)) {
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = checked(::signalfd(-1, &signals, SFD_CLOEXEC));
  stop_event_ = checked(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread(&SignalThread::watch, this);
}

SignalThread::~SignalThread() {
  ::eventfd_write(stop_event_, 1);
  thread_.join();
  ::close(signals_);
  ::close(stop_event_);
}

void SignalThread::watch() {
  for (;;) {
    std::array<::pollfd, 2> wait{{{signals_, POLLIN, 0}, {stop_event_, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), -1) < 0) continue;
    if ((wait[1].revents & POLLIN) != 0) return;
    struct ::signalfd_siginfo info {};
    if (::read(signals_, &info, sizeof info) == sizeof info) told_(info);
  }
}

}  // namespace httpretry::cli
