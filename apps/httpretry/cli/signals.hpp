// SIGHUP, SIGINT and SIGTERM as a request to stop.
#pragma once

#include "cli/signal_thread.hpp"

#include <atomic>
#include <stop_token>

namespace httpretry::cli {

// While an object exists, these signals do not end the process. Create it before any other thread,
// so that all threads block them.
class Signals {
 public:
  Signals();

  // Stop is requested when a signal arrives.
  [[nodiscard]] std::stop_token stop() const { return source_.get_token(); }
  // The first signal; 0 if none arrived.
  [[nodiscard]] int received() const { return received_; }
  // Whether it was Ctrl-C on a terminal.
  [[nodiscard]] bool from_terminal() const { return from_terminal_; }
  // Becomes readable when a signal arrives; for poll().
  [[nodiscard]] int descriptor() const { return received_event_.fd(); }
  // Blocks until a signal arrives.
  void wait() const;

 private:
  void arrived(const ::signalfd_siginfo& info);

  EventFd received_event_{"signals"};
  std::stop_source source_;
  std::atomic<int> received_ = 0;
  std::atomic<bool> from_terminal_ = false;
  SignalThread thread_;  // last: it uses the others
};

// Ends the process by SIGINT instead of exiting. Otherwise a loop in a shell script would continue
// with its next command.
[[noreturn]] void end_interrupted();

}  // namespace httpretry::cli
