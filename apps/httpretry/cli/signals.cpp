#include "cli/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

namespace httpretry::cli {
namespace {

// SIGINT also if it is ignored, as shells do for background jobs: somebody sent it on purpose. An
// ignored SIGHUP stays ignored, for nohup.
::sigset_t our_signals() {
  ::sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  struct ::sigaction now {};
  const bool nohup = ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  if (!nohup) ::sigaddset(&set, SIGHUP);
  return set;
}

int checked(int descriptor) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "signals");
  return descriptor;
}

void raise(int event) { ::eventfd_write(event, 1); }

}  // namespace

Signals::Signals() {
  const auto set = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = checked(::signalfd(-1, &set, SFD_CLOEXEC));
  received_event_ = checked(::eventfd(0, EFD_CLOEXEC));
  stop_event_ = checked(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread(&Signals::watch, this);
}

// The signals stay blocked: the process is about to end, and a late signal must not change its exit
// status.
Signals::~Signals() {
  raise(stop_event_);
  thread_.join();
  for (const int descriptor : {signals_, received_event_, stop_event_}) ::close(descriptor);
}

void Signals::watch() {
  for (;;) {
    std::array<::pollfd, 2> wait{{{signals_, POLLIN, 0}, {stop_event_, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), -1) < 0) continue;
    if ((wait[1].revents & POLLIN) != 0) return;
    struct ::signalfd_siginfo info {};
    if (::read(signals_, &info, sizeof info) != sizeof info) continue;
    int none = 0;
    if (received_ == none) from_terminal_ = info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL;
    received_.compare_exchange_strong(none, static_cast<int>(info.ssi_signo));
    raise(received_event_);
    source_.request_stop();
  }
}

void Signals::wait() const {
  ::pollfd wait{received_event_, POLLIN, 0};
  while (::poll(&wait, 1, -1) < 0) {
  }
}

void end_interrupted() {
  std::signal(SIGINT, SIG_DFL);
  const auto set = our_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(SIGINT);
  std::_Exit(128 + SIGINT);
}

}  // namespace httpretry::cli
