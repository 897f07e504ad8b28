// Signals turns SIGHUP, SIGINT and SIGTERM into a request to stop.
#pragma once

#include "cli/signal_thread.hpp"

#include <atomic>
#include <stop_token>

namespace httpretry::cli {

// Returns SIGHUP, SIGINT and SIGTERM. Leaves out SIGHUP if it is ignored.
::sigset_t stop_signals();

// From its construction on, these signals do not end the process. Create it before any other
// thread, so that all threads block them.
class Signals {
 public:
  Signals();

  // Returns a token that requests a stop when a signal arrives.
  [[nodiscard]] std::stop_token stop() const { return source_.get_token(); }
  // Returns the first signal, or 0 before one arrives.
  [[nodiscard]] int received() const { return received_; }
  // Returns whether the first signal was Ctrl-C on a terminal.
  [[nodiscard]] bool from_terminal() const { return from_terminal_; }
  // Returns a descriptor for poll() that becomes readable when a signal arrives.
  [[nodiscard]] int descriptor() const { return received_event_.fd(); }
  // Blocks until a signal arrives.
  void wait() const;

 private:
  void on_signal(const ::signalfd_siginfo& info);

  EventFd received_event_{"signals"};
  std::stop_source source_;
  std::atomic<int> received_ = 0;
  std::atomic<bool> from_terminal_ = false;
  SignalThread thread_;  // last, because it uses the other members
};

// Ends the process with a signal instead of an exit status, even if it ignores the signal. After an
// exit status, a loop in a shell script would continue with its next command.
[[noreturn]] void end_by(int signal);

}  // namespace httpretry::cli
