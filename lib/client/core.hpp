// What a Client shares with its calls and its loops.
#pragma once

#include "lib/curl/loop.hpp"

#include <httpretry/client.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace httpretry::detail {

// A loop with a thread of its own. Held by the thread, so that it outlives a client that is
// destroyed on that very thread.
class BackgroundLoop : public std::enable_shared_from_this<BackgroundLoop> {
 public:
  explicit BackgroundLoop(std::shared_ptr<const TransportOptions> options)
      : loop_(std::move(options)) {}
  void start();
  // Calls off what runs, and ends the thread when the last call has ended.
  void close();
  void join();
  [[nodiscard]] Loop& loop() { return loop_; }

  // On the loop's thread, around each call.
  void call_began() { ++calls_; }
  void call_ended();

 private:
  Detached close_on_thread();

  Loop loop_;
  std::thread thread_;
  int calls_ = 0;  // the loop's thread only, like the next
  bool closing_ = false;
  std::atomic<bool> done_ = false;
};

// The loops that blocking calls drive on their own threads: lent, and taken back with their
// connections warm.
class LoopPool {
 public:
  explicit LoopPool(std::shared_ptr<const TransportOptions> options)
      : options_(std::move(options)) {}

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

  // Calls off what runs on the loops that are lent, and waits until they are back.
  void close();

 private:
  struct Idle {
    std::unique_ptr<Loop> loop;
    std::chrono::steady_clock::time_point since;
  };
  std::unique_ptr<Loop> lend();
  void take_back(std::unique_ptr<Loop> loop);

  std::shared_ptr<const TransportOptions> options_;
  std::mutex mutex_;
  std::condition_variable back_;
  std::vector<Idle> idle_;  // the last used is at the end
  std::vector<Loop*> lent_;
};

class ClientCore : public std::enable_shared_from_this<ClientCore> {
 public:
  explicit ClientCore(ClientOptions options);

  Outcome send(Request request, CallOptions options);
  void start(Request request, CallOptions options, std::unique_ptr<Completion> completion);
  void shut_down();

 private:
  struct Where {
    Scheduler* scheduler;
    Transport* transport;
    RunQueue* leased;                            // the scheduler, where this thread will drive it
    std::shared_ptr<BackgroundLoop> background;  // null elsewhere
  };
  static Detached carry(std::shared_ptr<ClientCore> core, Where where, Request request,
                        CallOptions options, Completion& completion);
  Outcome drive(const Where& where, Request request, CallOptions options);
  // Attempts multiply where a call that retries makes another one that does.
  void check_nesting(const Request& request) const;
  Where on_background_loop();
  Where on_external_scheduler();
  Transport& transport_of(Loop& loop);

  ClientOptions options_;
  bool retries_ = false;
  std::shared_ptr<const TransportOptions> connection_;
  std::stop_source external_stop_;  // calls on a scheduler that is not ours
  LoopPool pool_;
  std::mutex mutex_;  // guards the two below
  std::vector<std::shared_ptr<BackgroundLoop>> loops_;
  std::size_t next_loop_ = 0;
};

}  // namespace httpretry::detail
