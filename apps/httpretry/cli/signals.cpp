#include "cli/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <csignal>
#include <cstdlib>

namespace httpretry::cli {

// Includes SIGINT even if it is ignored: shells ignore it in background jobs, but a SIGINT that
// arrives there was sent on purpose. An ignored SIGHUP stays ignored, for nohup.
::sigset_t stop_signals() {
  auto set = signal_set({SIGINT, SIGTERM});
  struct ::sigaction now {};
  const bool nohup = ::sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  if (!nohup) ::sigaddset(&set, SIGHUP);
  return set;
}

Signals::Signals() : thread_(stop_signals(), [this](const auto& info) { on_signal(info); }) {}

void Signals::on_signal(const ::signalfd_siginfo& info) {
  int none = 0;
  // SI_KERNEL: from the terminal, and not by kill().
  if (received_ == none) from_terminal_ = info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL;
  received_.compare_exchange_strong(none, static_cast<int>(info.ssi_signo));
  received_event_.signal();
  source_.request_stop();
}

void Signals::wait() const {
  ::pollfd wait{descriptor(), POLLIN, 0};
  while (::poll(&wait, 1, -1) < 0) {
  }
}

void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  const auto set = signal_set({signal});
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(signal);
  std::_Exit(128 + signal);
}

}  // namespace httpretry::cli
