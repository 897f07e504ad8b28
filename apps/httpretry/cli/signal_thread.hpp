// SignalThread: a thread that is told of signals, which then do not end the process.
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
  // `told` is called on that thread. Create it before any other thread, so that all block them.
  SignalThread(const ::sigset_t& signals, std::function<void(const ::signalfd_siginfo&)> told);
  // The signals stay blocked: the process is about to end, and a late signal must not change its
  // exit status.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void watch();

  std::function<void(const ::signalfd_siginfo&)> told_;
  Descriptor signals_;  // a signalfd
  EventFd stop_event_{"signals"};
  std::thread thread_;
};

}  // namespace httpretry::cli
