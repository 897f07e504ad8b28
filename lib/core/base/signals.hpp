// Signals on the library's threads.
#pragma once

#include <csignal>

namespace httpretry {

// Blocks all signals on this thread, so that the program's handlers run on the program's threads.
// SIGPIPE must be blocked because OpenSSL raises it when it writes to a closed connection. OpenSSL
// also returns an error, which is enough.
inline void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace httpretry
