#include "batch/run_signals.hpp"

#include "cli/message.hpp"

#include <pthread.h>
#include <sys/signalfd.h>

#include <utility>

namespace httpretry::cli {
namespace {

::sigset_t our_signals() { return signal_set({SIGINT, SIGTERM, SIGUSR1}); }

}  // namespace

WithoutSignals::WithoutSignals() : before_{} {
  const auto set = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

WithoutSignals::~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

RunSignals::RunSignals(batch::Runner& runner, std::function<void()> stop)
    : runner_(runner), stop_(std::move(stop)), thread_(our_signals(), [this](const auto& info) {
        arrived(static_cast<int>(info.ssi_signo));
      }) {}

void RunSignals::arrived(int signal) {
  if (signal == SIGUSR1) return runner_.ask_progress();
  if (received_ != 0) return stop_();
  received_ = signal;
  runner_.finish_up();
  print_message("httpretry: requests on their way may end; a second signal stops them, too");
}

}  // namespace httpretry::cli
