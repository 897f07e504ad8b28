// SignalThread is a thread that receives signals and passes them to a function. They do not end the
// process.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <csignal>
#include <functional>
#include <initializer_list>
#include <thread>

struct signalfd_siginfo;

namespace httpretry::cli {

::sigset_t signal_set(std::initializer_list<int> signals);

class SignalThread {
 public:
  // Calls `on_signal` on the new thread for each signal. Create this object before any other
  // thread, so that all threads block the signals.
  SignalThread(const ::sigset_t& signals, std::function<void(const ::signalfd_siginfo&)> on_signal);
  // Leaves the signals blocked, because the process is about to end and a late signal must not
  // change its exit status.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void watch();

  std::function<void(const ::signalfd_siginfo&)> on_signal_;
  Descriptor signals_;  // a signalfd
  EventFd stop_event_{"signals"};
  std::thread thread_;
};

}  // namespace httpretry::cli
