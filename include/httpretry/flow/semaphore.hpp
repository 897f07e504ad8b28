#pragma once

#include <httpretry/export.hpp>

#include <httpretry/flow/scheduler.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace httpretry {

// Semaphore limits how many coroutines do something at once. Coroutines wait for a permit in FIFO
// order, each on its own loop. Waiting blocks no thread. A Semaphore is thread-safe.
//
//   Semaphore four(4);
//   ...
//   const Semaphore::Permit permit = co_await four.acquire(loop, stop);
//   if (!permit) co_return;   // canceled
//
// httpretry.hpp does not include this header. To limit the requests of a client, use
// ClientOptions::max_in_flight.
class HTTPRETRY_API Semaphore {
  struct State;
  class Turn;

 public:
  // The right to proceed, held until the Permit is destroyed, on any thread. A Permit may outlive
  // the Semaphore.
  class HTTPRETRY_API Permit {
   public:
    Permit() = default;  // an empty Permit
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

  // Returns a permit, at once if one is free. Otherwise waits on `loop`, which must outlive the
  // task. The Permit is empty if `stop` is requested first, or if the loop's client is destroyed.
  [[nodiscard]] Task<Permit> acquire(Scheduler& loop, std::stop_token stop = std::stop_token());
  // Returns an empty Permit if it would have to wait.
  [[nodiscard]] Permit try_acquire();

 private:
  static Task<Permit> wait(std::shared_ptr<State> state, Scheduler& loop, std::stop_token stop);
  std::shared_ptr<State> state_;
};

}  // namespace httpretry
