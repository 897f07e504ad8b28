// The loops of a client: those with threads of their own, and those that blocking calls drive on
// theirs.
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

// A loop that carries many calls of a client. Its driver is a thread of its own (`start`), or the
// EventLoop of the program. The driver shares its ownership: so it outlives a client that is
// destroyed on its thread.
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
    int most = 0;  // at once: so many connections were needed
  };
  struct EndFlight {
    void operator()(OriginCalls* calls) const noexcept {
      auto& loop = calls->loop;
      // `calls` may be gone after this.
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
  // Stops what runs; the driver is done after the last call. Once.
  void close() noexcept;
  // For a thread of its own. Does nothing where it has none.
  void join();
  void detach();
  // After `close`: the last call has ended. One more turn, and the loop may go.
  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
  // For a driver that stops before the last call: keeps the loop for its calls.
  void keep_for_calls() { kept_ = shared_from_this(); }
  [[nodiscard]] Loop& loop() { return loop_; }
  [[nodiscard]] int in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
  // These two need the client's mutex.
  // Before the call is posted here, and before `close`. `origin`: of its URL; empty where there
  // is only one loop.
  [[nodiscard]] CallCount count_call(std::string_view origin);
  // Whether a connection to the origin is likely to be idle here: it may have been closed since.
  [[nodiscard]] bool has_idle(std::string_view origin) const;

 private:
  void call_ended() noexcept;
  OriginCalls& calls_to(std::string_view origin);

  Loop loop_;
  std::thread thread_;
  std::atomic<int> calls_ = 1;  // until `close` the client counts as one
  std::atomic<int> in_flight_ = 0;
  std::unordered_map<std::string, OriginCalls, TextHash, std::equal_to<>> origins_;
  std::atomic<bool> done_ = false;
  std::shared_ptr<BackgroundLoop> kept_;
};

// Lends loops to blocking calls, and takes them back with their connections open.
class LoopPool {
 public:
  LoopPool(std::shared_ptr<const TransportOptions> options, std::shared_ptr<Resolver> resolver);

  struct TakeBack {
    LoopPool* pool;
    void operator()(Loop* loop) const { pool->take_back(std::unique_ptr<Loop>(loop)); }
  };
  using Lease = std::unique_ptr<Loop, TakeBack>;
  Lease lend();

  // Stops what runs on the loops that are lent, now or later.
  void stop();
  // The same, and waits until they are back; not for one that this thread itself drives.
  void close();
  // For a process that inherited the pool by a fork: leaves the loops as they are.
  void abandon();

 private:
  void take_back(std::unique_ptr<Loop> loop);

  std::shared_ptr<const TransportOptions> options_;
  std::shared_ptr<Resolver> resolver_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable back_;
  std::vector<std::unique_ptr<Loop>> idle_;  // the last used is at the end
  std::vector<Loop*> lent_;
  bool stopped_ = false;
};

}  // namespace httpretry::detail
