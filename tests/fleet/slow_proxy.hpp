// SlowProxy: passes on what comes, each piece a time after it came. Connections made before the
// delay changes have it, too.
#pragma once

#include "lib/core/base/descriptor.hpp"

#include <httpretry/http/time.hpp>

#include <atomic>
#include <deque>
#include <list>
#include <string>
#include <thread>

class SlowProxy {
 public:
  // To a port of 127.0.0.1. Throws std::runtime_error.
  explicit SlowProxy(int target);
  ~SlowProxy();
  SlowProxy(const SlowProxy&) = delete;
  SlowProxy& operator=(const SlowProxy&) = delete;

  [[nodiscard]] int port() const { return port_; }
  void set_delay(httpretry::Duration delay) { delay_ = delay; }

 private:
  struct Piece {
    httpretry::Time due;
    int to;
    std::string bytes;
  };
  struct Pair {
    httpretry::Descriptor client;
    httpretry::Descriptor server;
    std::deque<Piece> pieces{};
    bool over = false;
  };
  void run();
  void accept();
  void read_from(Pair& pair, int from, int to);
  static void pass_on(Pair& pair, httpretry::Time now);

  const int target_;
  httpretry::Descriptor listener_;
  int port_ = 0;
  std::atomic<httpretry::Duration> delay_ = httpretry::Duration{};
  std::list<Pair> pairs_;
  std::atomic<bool> stop_ = false;
  httpretry::EventFd wake_{"no proxy"};
  std::thread thread_;
};
