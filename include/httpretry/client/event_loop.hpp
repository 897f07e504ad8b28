// EventLoop: a loop that the program drives, for programs that have an event loop of their own
// (epoll, poll, Boost.Asio, libuv, Qt, …). The calls of a client run on it, and no thread of the
// library does.
//
//   auto loop = std::make_shared<EventLoop>();
//   ClientOptions options;
//   options.scheduler = loop;
//   Client client(options);
//   client.send_then(request, [](Outcome outcome) { ... });
//
// The program waits until `descriptor()` is readable or `time_left()` has passed, whichever is
// first, and then calls `turn()`:
//
//   for (;;) {
//     const auto left = loop->time_left();
//     pollfd ready{loop->descriptor(), POLLIN, 0};
//     poll(&ready, 1, left ? static_cast<int>(left->count()) : -1);
//     loop->turn();
//   }
//
// What runs where: callbacks, middlewares, observers and coroutines run in `turn`, on the thread
// that calls it. send_then, send_async, co_send and spawn only post a call, which begins in the
// next turn. Several clients may have the same EventLoop. ClientOptions::threads has no meaning.
//
// Threads: one thread at a time calls `turn`, `time_left` and `run_until`, and not inside a turn;
// otherwise the program aborts with a message. Clients may be used from any thread: what they post
// makes the descriptor readable. Two kinds of threads remain. One thread in the process guards
// connections that may speak HTTP/2. And names are looked up on threads, only while that takes: at
// most four for each client, and libcurl's own for the names of proxies and in `connect_to`. There
// are none where the host is an address or localhost, or where the program gives the addresses:
// TransportOptions::resolve, or a `lookup` with `lookup_may_block = false`.
//
// Blocking: `send` on the thread that drives the loop (that called `turn` last) drives it until the
// call has ended: other calls go on, the program's own events wait. On other threads, and before
// the first turn, `send` runs its call on its own, as with any client. Do not wait for a future,
// and do not sync_wait, on the thread that drives the loop or is going to: nobody would drive it.
// Before the first turn the library cannot detect this. Instead:
//
//   std::atomic<bool> done = false;
//   start(main_coroutine(client), [&] { done = true; });
//   loop->run_until(done);
//
// The end: ~Client does not wait. Its calls end with Errc::Canceled in the next turns, or in
// ~EventLoop, so what their callbacks use must live until then. ~EventLoop ends all calls and all
// waits on the loop, in turns of its own. It does not wait for anything outside of the loop: a call
// whose middleware waits for something else never ends then, and its memory is not freed. A client
// shares the ownership of its loop.
//
// fork: as a client, an EventLoop belongs to the process that made it. The child may destroy it,
// which touches nothing.
#pragma once

#include <httpretry/flow/scheduler.hpp>

#include <chrono>
#include <memory>
#include <optional>

namespace httpretry {

namespace detail {
class ClientCore;
class EventLoopCore;
}  // namespace detail

class HTTPRETRY_API EventLoop final : public Scheduler {
 public:
  // Throws std::system_error if no descriptor is left, and always with HTTPRETRY_POLLER=poll.
  EventLoop();
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Readable (for poll, level-triggered epoll, …) when a turn is due before `time_left` has passed.
  // It belongs to the loop: do not read, write or close it.
  [[nodiscard]] int descriptor() const;

  // The time until the next turn is due, rounded up, at most an hour; zero: now; none: only the
  // descriptor tells. Each turn changes it, so ask again after each.
  [[nodiscard]] std::optional<std::chrono::milliseconds> time_left() const;

  // Does what is due, and returns without waiting. Its work is bounded: events of at most 256
  // sockets and at most 256 KiB of decoded bodies for each client, and each coroutine that is ready
  // is resumed once.
  void turn();

  // The rest makes it a Scheduler: for `start` (flow/start.hpp), for CallOptions::resume_on, and
  // for waits of the program's coroutines.
  [[nodiscard]] Time now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  void post(std::coroutine_handle<> handle) override;
  Task<bool> sleep_until(Time when, std::stop_token stop) override;
  // Blocks: turns, and waits for the next turn, until `done`.
  void run_until(const std::atomic<bool>& done) override;

 private:
  friend class detail::ClientCore;
  std::shared_ptr<detail::EventLoopCore> core_;
};

}  // namespace httpretry
