// The loops of a client: background loops, and the loops that blocking calls drive.
#pragma once

#include "lib/core/base/text.hpp"
#include "lib/core/curl/loop.hpp"
#include "lib/core/curl/resolver.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace httpretry::detail {

// A loop that runs many calls of a client. Its driver is its own thread (`start`) or the program's
// EventLoop. The driver shares ownership of the loop, so the loop outlives a client that is
// destroyed on the driver's thread.
class BackgroundLoop final : public std::enable_shared_from_this<BackgroundLoop> {
 public:
  struct EndCall {
    void operator()(BackgroundLoop* loop) const noexcept { loop->call_ended(); }
  };
  // The calls to one origin on one loop.
  struct OriginCalls {
    explicit OriginCalls(BackgroundLoop& owner) : loop(owner) {}
    BackgroundLoop& loop;
    std::atomic<int> in_flight = 0;
    int most = 0;  // the maximum of `in_flight`: how many connections were needed at once
  };
  struct EndFlight {
    void operator()(OriginCalls* calls) const noexcept {
      auto& loop = calls->loop;
      // Another thread may erase `calls` after this.
      calls->in_flight.fetch_sub(1, std::memory_order_release);
      loop.in_flight_.fetch_sub(1, std::memory_order_relaxed);
    }
  };
  // Counts a call (or spawned work) on its loop.
  struct CallCount {
    std::unique_ptr<BackgroundLoop, EndCall> call;      // the loop lives as long as this
    std::unique_ptr<OriginCalls, EndFlight> in_flight;  // until its outcome is known
  };

  BackgroundLoop(std::shared_ptr<const TransportOptions> options,
                 std::shared_ptr<Resolver> resolver)
      : loop_(std::move(options), std::move(resolver), Loop::Load::Many) {}
  void start();
  // Stops the calls. The driver is done after the last one has ended. Must be called once.
  void close() noexcept;
  // Joins or detaches the loop's own thread. They do nothing if it has none.
  void join();
  void detach();
  // Returns whether the last call has ended after `close`. The driver then runs one more turn, and
  // may free the loop.
  [[nodiscard]] bool is_done() const { return done_.load(std::memory_order_acquire); }
  // Keeps the loop alive until its last call has ended, for a driver that stops earlier.
  void keep_for_calls() { kept_ = shared_from_this(); }
  [[nodiscard]] Loop& loop() { return loop_; }
  [[nodiscard]] int in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  // The next two functions require the client's mutex.
  // Counts a call, before it is posted here and before `close`. `origin` is the origin of its URL,
  // or empty if the client has only one loop.
  [[nodiscard]] CallCount count_call(std::string_view origin);
  // Returns whether this loop probably has an idle connection to the origin. It may have been
  // closed since.
  [[nodiscard]] bool has_idle(std::string_view origin) const;

 private:
  void call_ended() noexcept;
  OriginCalls& calls_to(std::string_view origin);

  Loop loop_;
  std::thread thread_;
  std::atomic<int> calls_ = 1;  // until `close`, the client counts as a call
  std::atomic<int> in_flight_ = 0;
  std::unordered_map<std::string, OriginCalls, TextHash, std::equal_to<>> origins_;
  std::atomic<bool> done_ = false;
  std::shared_ptr<BackgroundLoop> kept_;
};

// Leases loops to blocking calls. A loop keeps its connections open between leases. Thread-safe.
class LoopPool {
 public:
  LoopPool(std::shared_ptr<const TransportOptions> options, std::shared_ptr<Resolver> resolver);

  struct TakeBack {
    LoopPool* pool;
    void operator()(Loop* loop) const { pool->take_back(std::unique_ptr<Loop>(loop)); }
  };
  using Lease = std::unique_ptr<Loop, TakeBack>;
  Lease lend();

  // Stops the calls on leased loops, also on those that are leased later.
  void stop();
  // Calls `stop`, and waits until the loops are returned. Does not wait for a loop that this thread
  // drives.
  void close();
  // Leaves the idle loops as they are. For a forked child, which must not use their connections.
  void abandon();

 private:
  void take_back(std::unique_ptr<Loop> loop);

  std::shared_ptr<const TransportOptions> options_;
  std::shared_ptr<Resolver> resolver_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable back_;
  std::vector<std::unique_ptr<Loop>> idle_;  // the most recently used is the last
  std::vector<Loop*> lent_;                  // leased; `stop` closes them
  bool stopped_ = false;
};

}  // namespace httpretry::detail
