#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/scheduler.hpp>

#include <chrono>
#include <memory>
#include <optional>

namespace httpretry {

namespace detail {
class ClientCore;
class EventLoopCore;
}  // namespace detail

// EventLoop is a loop for programs that have their own event loop (epoll, poll, libuv, Qt, …; for
// Boost.Asio, asio.hpp is easier). The program drives it, and the calls of a client run on it, not
// on a thread of the library.
//
//   auto loop = std::make_shared<EventLoop>();
//   ClientOptions options;
//   options.scheduler = loop;
//   Client client(options);
//   client.send_then(request, [](Outcome outcome) { ... });
//
// The program waits until `descriptor()` is readable or `time_left()` has passed, whichever comes
// first. Then it calls `turn()`:
//
//   for (;;) {
//     const auto left = loop->time_left();
//     pollfd ready{loop->descriptor(), POLLIN, 0};
//     poll(&ready, 1, left ? static_cast<int>(left->count()) : -1);
//     loop->turn();
//   }
//
// Callbacks, middlewares, observers and coroutines run inside `turn`, on the thread that calls it.
// send_then, send_async, co_send and spawn only post a call, which begins in the next turn. Several
// clients may share one EventLoop. ClientOptions::threads has no effect.
//
// Threads: only one thread at a time may call `turn`, `time_left` and `run_until`, and never from
// inside a turn; otherwise the program aborts with a message. Clients may be used from any thread:
// a posted call makes the descriptor readable. The library still uses two kinds of threads. One
// thread per process guards connections that may use HTTP/2. Threads look up names, and exist only
// during a lookup: at most four for each client, and libcurl's own threads for the names of proxies
// and in `connect_to`. No lookup thread is needed if the host is an address or localhost, or if the
// program supplies the addresses with TransportOptions::resolve, or with a `lookup` and
// `lookup_may_block = false`.
//
// Blocking: on the thread that drives the loop (that called `turn` last), `send` drives the loop
// until its call has ended. Other calls continue, but the program's own events wait. On other
// threads, and before the first turn, `send` runs its call on the calling thread and not on this
// loop, as with any client.
// Do not wait for a future, and do not call sync_wait, on the thread that drives the loop or will
// drive it: the loop would stand still. Before the first turn the library cannot detect this
// mistake. Instead:
//
//   std::atomic<bool> done = false;
//   start(main_coroutine(client), [&](Result<void>) { done = true; });
//   loop->run_until(done);
//
// Destruction: ~Client does not wait. Its calls end with Errc::Canceled in the next turns, or in
// ~EventLoop, so everything that their callbacks use must exist until then. ~EventLoop ends all
// calls and all waits on the loop, by running turns itself. It does not wait for anything outside
// the loop: a call whose middleware waits for something else never ends, and its memory is leaked.
// A client shares the ownership of its loop.
//
// fork: an EventLoop belongs to the process that created it, as a client does. The child may
// destroy it, which has no effect on the parent.
class HTTPRETRY_API EventLoop final : public Scheduler {
 public:
  // Throws std::system_error if the process has no free descriptor, and always if the environment
  // has HTTPRETRY_POLLER=poll.
  EventLoop();
  ~EventLoop() override;
  // Returns whether a scheduler is an EventLoop, even in a program without RTTI.
  [[nodiscard]] static bool is_one(const Scheduler& scheduler) { return scheduler.is_event_loop(); }
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Returns a descriptor that becomes readable (for poll, level-triggered epoll, …) when a turn is
  // due before `time_left` has passed. The descriptor belongs to the loop: do not read, write or
  // close it.
  [[nodiscard]] int descriptor() const;

  // Returns the time until the next turn is due, rounded up and at most one hour. Zero means that a
  // turn is due now; nullopt means to wait for the descriptor only. The value changes with each
  // turn, so call this again after each one.
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_left() const;

  // Does the work that is due and returns without waiting. The work of one turn is bounded: the
  // events of at most 256 sockets, at most 256 KiB of decoded bodies for each client, and one
  // resumption of each coroutine that is ready.
  void turn();

  // The functions below implement Scheduler. Use them through `start` (flow/start.hpp),
  // CallOptions::resume_on, and the waits of the program's coroutines.
  [[nodiscard]] Time now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  void post(std::coroutine_handle<> handle) override;
  Task<bool> sleep_until(Time when, std::stop_token stop) override;
  // Blocks until `done` is true. Runs turns, and waits between them until the next one is due.
  void run_until(const std::atomic<bool>& done) override;

 private:
  [[nodiscard]] const detail::RunQueue* queue() const override;
  [[nodiscard]] bool is_event_loop() const override { return true; }
  friend class detail::ClientCore;
  std::shared_ptr<detail::EventLoopCore> core_;
};

}  // namespace httpretry
