// SIGHUP, SIGINT and SIGTERM as a request to stop.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace httpretry::cli {

// While one of these lives they end nothing by themselves. Make it before any other
// thread, so that all of them leave the signals alone.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Requested when a signal comes.
  [[nodiscard]] std::stop_token stop() const { return source_.get_token(); }
  // The signal that came; 0 where none did.
  [[nodiscard]] int received() const { return received_; }
  // Whether it was Ctrl-C on a terminal.
  [[nodiscard]] bool from_terminal() const { return from_terminal_; }
  // Readable from when a signal came, for poll().
  [[nodiscard]] int descriptor() const { return came_; }
  // Blocks until a signal comes.
  void wait() const;

 private:
  void watch();

  int signals_;  // a signalfd
  int came_;     // an eventfd
  int over_;     // an eventfd: tells the thread to end
  std::stop_source source_;
  std::atomic<int> received_ = 0;
  std::atomic<bool> from_terminal_ = false;
  std::thread thread_;
};

// Ends the process by an interrupt, as if it had never been caught: the loop of a shell script goes
// on after a program that merely exits.
[[noreturn]] void end_interrupted();

}  // namespace httpretry::cli
