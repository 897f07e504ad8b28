// RunSignals: SIGINT and SIGTERM end a run, the first one gently, and SIGUSR1 asks how far it is.
#pragma once

#include "cli/signal_thread.hpp"

#include <httpretry/batch/runner.hpp>

#include <atomic>
#include <csignal>
#include <functional>

namespace httpretry::cli {

// Threads that are made while an object exists do not get these signals.
class WithoutSignals {
 public:
  WithoutSignals();
  ~WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  ::sigset_t before_;
};

// While an object exists, these signals do not end the process. Create it before the threads of the
// client, so that all threads block them.
class RunSignals {
 public:
  // `stop`: for the second signal.
  RunSignals(batch::Runner& runner, std::function<void()> stop);

  // The first that ends the run; 0 if none arrived.
  [[nodiscard]] int received() const { return received_; }

 private:
  void arrived(int signal);

  batch::Runner& runner_;
  std::function<void()> stop_;
  std::atomic<int> received_ = 0;
  SignalThread thread_;  // last: it uses the others
};

}  // namespace httpretry::cli
