#include "batch/run_signals.hpp"

#include "cli/message.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace httpretry::cli {
namespace {

int checked(int descriptor) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "signals");
  return descriptor;
}

::sigset_t our_signals() {
  ::sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::sigaddset(&set, signal);
  return set;
}

}  // namespace

WithoutSignals::WithoutSignals() : before_{} {
  const auto set = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

WithoutSignals::~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

RunSignals::RunSignals(batch::Runner& runner) : runner_(runner) {
  const auto set = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = checked(::signalfd(-1, &set, SFD_CLOEXEC));
  stop_event_ = checked(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread(&RunSignals::watch, this);
}

// The signals stay blocked: the process is about to end, and a late signal must not change its exit
// status.
RunSignals::~RunSignals() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_event_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(signals_);
  ::close(stop_event_);
}

void RunSignals::watch() {
  for (;;) {
    std::array<::pollfd, 2> wait{{{signals_, POLLIN, 0}, {stop_event_, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), -1) < 0) continue;
    if ((wait[1].revents & POLLIN) != 0) return;
    struct ::signalfd_siginfo info {};
    if (::read(signals_, &info, sizeof info) != sizeof info) continue;
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGUSR1) {
      runner_.ask_progress();
    } else if (received_ == 0) {
      received_ = signal;
      runner_.finish_up();
      print_message("httpretry: requests on their way may end; a second signal stops them, too");
    } else {
      runner_.stop();
    }
  }
}

}  // namespace httpretry::cli
