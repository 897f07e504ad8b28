// WaitLimit ends the wait for a file that is a pipe, when a signal arrives or the time of -m is
// over.
#pragma once

#include "cli/signals.hpp"

#include <httpretry/http/time.hpp>

#include <optional>

namespace httpretry::cli {

class WaitLimit {
 public:
  // Starts the time. If it is empty or zero, only a signal ends a wait.
  WaitLimit(const Signals& signals, std::optional<Duration> time);

  // Starts the time again.
  void restart() const;
  // Returns a descriptor for poll() that becomes readable when the wait must end.
  [[nodiscard]] int descriptor() const { return either_.get(); }
  // Returns whether the time is over.
  [[nodiscard]] bool has_expired() const;
  [[nodiscard]] const Signals& signals() const { return signals_; }

 private:
  const Signals& signals_;
  Duration time_;
  Descriptor timer_;   // a timerfd
  Descriptor either_;  // an epoll descriptor: the timer, or a signal
};

}  // namespace httpretry::cli
