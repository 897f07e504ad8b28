// Semaphore: so many at once. Coroutines wait for a permit, first come first served, each on its
// own loop; no thread waits.
//
//   Semaphore four(4);
//   ...
//   const Semaphore::Permit permit = co_await four.acquire(loop, stop);
//   if (!permit) co_return;   // canceled
//
// httpretry.hpp does not include this header. For the requests of a client there is
// ClientOptions::max_in_flight.
#pragma once

#include <httpretry/flow/scheduler.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace httpretry {

// Safe to use from many threads at once.
class HTTPRETRY_API Semaphore {
  struct State;
  class Turn;

 public:
  // The right to be one of those at once, until it is destroyed, on any thread. It may outlive the
  // Semaphore.
  class HTTPRETRY_API Permit {
   public:
    Permit() = default;  // none
    Permit(Permit&& other) noexcept = default;
    Permit& operator=(Permit&& other) noexcept = default;
    explicit operator bool() const { return turn_ != nullptr; }

   private:
    friend class Semaphore;
    explicit Permit(std::shared_ptr<Turn> turn) : turn_(std::move(turn)) {}
    std::shared_ptr<Turn> turn_;
  };

  explicit Semaphore(std::size_t permits);
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // Continues at once where a permit is free, else waits on `loop`, which must outlive the task.
  // The Permit is none if `stop` is requested first, or if the client of the loop ends.
  [[nodiscard]] Task<Permit> acquire(Scheduler& loop, std::stop_token stop = std::stop_token());
  // None if it would have to wait.
  [[nodiscard]] Permit try_acquire();

 private:
  static Task<Permit> wait(std::shared_ptr<State> state, Scheduler& loop, std::stop_token stop);
  std::shared_ptr<State> state_;
};

}  // namespace httpretry
