// For peers that only block: a thread for each request in flight, each with a connection of its
// own.
#pragma once

#include "peer.hpp"

#include <functional>
#include <thread>
#include <vector>

namespace bench {

class Threads final : public Peer {
 public:
  using Get = std::function<void()>;  // one request and its response
  Threads(int width, const std::function<Get()>& connect) {
    for (int i = 0; i < width; ++i) gets_.push_back(connect());
  }
  void run(long count) override {
    const auto width = static_cast<long>(gets_.size());
    if (width == 1) return repeat(gets_[0], count);
    std::vector<std::jthread> threads;
    for (long i = 0; i < width; ++i) {
      const auto share = count / width + (i < count % width ? 1 : 0);
      threads.emplace_back([this, i, share] { repeat(gets_[static_cast<std::size_t>(i)], share); });
    }
  }

 private:
  static void repeat(const Get& get, long count) {
    for (long i = 0; i < count; ++i) get();
  }
  std::vector<Get> gets_;
};

}  // namespace bench
