#include "cli/signal_thread.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace httpretry::cli {
::sigset_t signal_set(std::initializer_list<int> signals) {
  ::sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals) ::sigaddset(&set, signal);
  return set;
}

SignalThread::SignalThread(const ::sigset_t& signals,
                           std::function<void(const ::signalfd_siginfo&)> on_signal)
    : on_signal_(std::move(on_signal)) {
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signals_ = Descriptor(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!signals_.is_open()) throw std::system_error(errno, std::generic_category(), "signals");
  thread_ = std::thread(&SignalThread::watch, this);
}

SignalThread::~SignalThread() {
  stop_event_.signal();
  thread_.join();
}

void SignalThread::watch() {
  for (;;) {
    std::array<::pollfd, 2> wait{{{signals_.get(), POLLIN, 0}, {stop_event_.fd(), POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), -1) < 0) continue;
    if ((wait[1].revents & POLLIN) != 0) return;
    struct ::signalfd_siginfo info {};
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) on_signal_(info);
  }
}

}  // namespace httpretry::cli
