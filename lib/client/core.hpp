// What a Client shares with its calls and its loops.
#pragma once

#include "admission.hpp"

#include "lib/curl/loop.hpp"
#include "lib/curl/resolver.hpp"
#include "lib/flow/prepared.hpp"

#include <httpretry/client/client.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace httpretry::detail {

// A loop with a thread of its own. Held by the thread, so that it outlives a client that is
// destroyed on that very thread.
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
  // Calls off what runs, and ends the thread when the last call has ended.
  void close() noexcept { loop_.close(this); }
  void join();
  void detach() { thread_.detach(); }
  [[nodiscard]] Loop& loop() { return loop_; }

  // Around each call (and each piece of spawned work): the first before it is on its way here, on
  // any thread but before `close`; the second on the loop's.
  void call_began() { calls_.fetch_add(1, std::memory_order_relaxed); }
  void call_ended();
  // Instead of that, on any thread. Where the loop was told to close meanwhile it must be told
  // again.
  void call_not_begun() { calls_.fetch_sub(1, std::memory_order_acq_rel); }

 private:
  void closed() noexcept override;

  Loop loop_;
  std::thread thread_;
  std::atomic<int> calls_ = 0;
  bool closing_ = false;  // the loop's thread only
  std::atomic<bool> done_ = false;
};

// The loops that blocking calls drive on their own threads: lent, and taken back with their
// connections warm.
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

  // Calls off what runs on the loops that are lent, and waits until they are back; not for the one
  // that this very thread drives.
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
  std::mutex mutex_;
  std::condition_variable back_;
  std::vector<Idle> idle_;  // the last used is at the end
  std::vector<Loop*> lent_;
};

class ClientCore : public std::enable_shared_from_this<ClientCore> {
 public:
  explicit ClientCore(ClientOptions options);

  Outcome send(Request&& request, CallOptions&& options);
  void start(Request&& request, CallOptions&& options, std::unique_ptr<Completion> completion);
  void run(std::shared_ptr<Work> work);
  void shut_down();

 private:
  struct Where {
    Scheduler* scheduler;
    Transport* transport;
    RunQueue* leased;                            // the scheduler, where this thread will drive it
    std::shared_ptr<BackgroundLoop> background;  // null elsewhere
  };
  // Counts a call on its loop that has yet to be posted there, until `begun`.
  class Beginning;
  static Prepared carry(std::shared_ptr<ClientCore> core, Where where, Request request,
                        CallOptions options, Completion& completion);
  static Prepared carry_work(Where where, std::shared_ptr<Work> work);
  bool closed();
  Outcome send_here(Request&& request, CallOptions&& options);
  Outcome drive(const Where& where, Request&& request, CallOptions&& options);
  // Attempts multiply where a call that retries makes another one that does.
  void check_nesting(const Request& request) const;
  // Where a call can run that no thread waits for; empty where there is no loop to be had, and
  // `why` says why. (Not a Result: that would put a Where on the heap.)
  std::optional<Where> place_for_call(std::optional<Error>& why);
  Where on_background_loop();
  Where on_external_scheduler();
  Transport& transport_of(Loop& loop);

  ClientOptions options_;
  bool retries_ = false;
  const int process_;
  std::shared_ptr<const TransportOptions> connection_;
  std::shared_ptr<Resolver> resolver_;
  std::optional<Admission> admission_;  // where there are limits
  std::stop_source external_stop_;      // calls on a scheduler that is not ours
  LoopPool pool_;
  std::mutex mutex_;  // guards what is below
  bool closed_ = false;
  std::vector<std::shared_ptr<BackgroundLoop>> loops_;
  std::size_t next_loop_ = 0;
};

}  // namespace httpretry::detail
