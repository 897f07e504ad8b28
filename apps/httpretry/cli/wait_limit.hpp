// WaitLimit: what ends a wait for a file that is a pipe: a signal, or the time of -m.
#pragma once

#include "cli/signals.hpp"

#include <httpretry/http/time.hpp>

#include <optional>

namespace httpretry::cli {

class WaitLimit {
 public:
  // The time begins here. Empty, or zero: no limit.
  WaitLimit(const Signals& signals, std::optional<Duration> time);

  // The time begins anew.
  void restart() const;
  // Becomes readable when the wait must end; for poll().
  [[nodiscard]] int descriptor() const { return either_.get(); }
  // Whether the time is over.
  [[nodiscard]] bool over() const;
  [[nodiscard]] const Signals& signals() const { return signals_; }

 private:
  const Signals& signals_;
  Duration time_;
  Descriptor timer_;   // a timerfd
  Descriptor either_;  // an epoll descriptor: the timer, or a signal
};

}  // namespace httpretry::cli
