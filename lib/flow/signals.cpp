#include "signals.hpp"

#include <csignal>

namespace httpretry {

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace httpretry
