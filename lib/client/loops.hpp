// The loops of a client: those with threads of their own, and those that blocking calls drive on
// theirs.
#pragma once

#include "lib/curl/loop.hpp"
#include "lib/curl/resolver.hpp"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace httpretry::detail {

// A loop with its own thread, which shares its ownership: so it outlives a client that is destroyed
// on that thread.
class BackgroundLoop final : public std::enable_shared_from_this<BackgroundLoop>,
                             private RunQueue::Closed {
 public:
  BackgroundLoop(std::shared_ptr<const TransportOptions> options,
                 std::shared_ptr<Resolver> resolver)
      : loop_(std::move(options), std::move(resolver), Loop::Load::Many) {}
  virtual ~BackgroundLoop() = default;
  BackgroundLoop(const BackgroundLoop&) = delete;
  BackgroundLoop& operator=(const BackgroundLoop&) = delete;
  void start();
  // Stops what runs; the thread ends after the last call.
  void close() noexcept { loop_.close(this); }
  void join();
  void detach() { thread_.detach(); }
  [[nodiscard]] Loop& loop() { return loop_; }

  // The number of calls (and of spawned work). A call is counted before it is posted here, on any
  // thread but before `close`, and leaves on the loop's thread.
  void call_began() { calls_.fetch_add(1, std::memory_order_relaxed); }
  void call_ended();
  // It could not be posted. On any thread; `close` again where the client has been closed.
  void call_not_begun() { calls_.fetch_sub(1, std::memory_order_acq_rel); }

 private:
  void closed() noexcept override;

  Loop loop_;
  std::thread thread_;
  std::atomic<int> calls_ = 0;
  bool closing_ = false;  // the loop's thread only
  std::atomic<bool> done_ = false;
};

// Lends loops to blocking calls, and takes them back with their connections open.
class LoopPool {
 public:
  LoopPool(std::shared_ptr<const TransportOptions> options, std::shared_ptr<Resolver> resolver);

  class Lease {
   public:
    explicit Lease(LoopPool& pool) : pool_(pool), loop_(pool.lend()) {}
    ~Lease() { pool_.take_back(std::move(loop_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Loop& loop() { return *loop_; }

   private:
    LoopPool& pool_;
    std::unique_ptr<Loop> loop_;
  };

  // Stops what runs on the loops that are lent, and waits until they are back; not for one that
  // this thread itself drives.
  void close();
  // For a process that inherited the pool by a fork: leaves the loops as they are.
  void abandon();

 private:
  struct Idle {
    std::unique_ptr<Loop> loop;
    std::chrono::steady_clock::time_point since;
  };
  std::unique_ptr<Loop> lend();
  void take_back(std::unique_ptr<Loop> loop);

  std::shared_ptr<const TransportOptions> options_;
  std::shared_ptr<Resolver> resolver_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable back_;
  std::vector<Idle> idle_;  // the last used is at the end
  std::vector<Loop*> lent_;
};

}  // namespace httpretry::detail
