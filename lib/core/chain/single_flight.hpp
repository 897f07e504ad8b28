// SingleFlight: if many calls need the same thing at once, such as a new token, the first of them
// fetches it and the others wait for its result. Thread-safe; calls on several loops can share one.
#pragma once

#include "lib/core/flow/resume_on.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/flow/detail/shared_work.hpp>
#include <httpretry/flow/task.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace httpretry {

template <class T>
class SingleFlight {
 public:
  using Fetch = std::function<Task<Result<T>>(Call&)>;

  // Returns the result of the fetch that is in flight, or of a new one that this call makes. The
  // calls that wait for the same fetch share a Flight, an event that happens when the fetch ends.
  // If the call that fetches is canceled or reaches its deadline, one of the waiting calls fetches
  // instead. Any other error is returned to all of them.
  Task<Result<T>> join(const Fetch& fetch, Call& call) {
    for (;;) {
      bool is_new = false;  // set by join_flight
      const auto flight = join_flight(is_new);
      if (is_new) {  // this call fetches
        const EndGuard wakes_waiting_calls(*flight);
        Result<T> result = co_await fetch(call);
        const ReturnTo calls_loop(call.scheduler());  // `fetch` may end on another thread
        co_await calls_loop;
        const bool call_ended = !result && (result.error().code == Errc::Canceled ||
                                            call.scheduler().now() >= call.deadline());
        if (!call_ended) flight->result = result;
        co_return result;
      }
      const bool not_canceled =
          co_await flight->wait(call.scheduler(), call.deadline(), call.stop());
      // A stop takes precedence over a result or the deadline at the same time.
      const bool canceled = !not_canceled || call.stop().stop_requested();
      if (canceled) co_return Error(Errc::Canceled, "canceled");
      if (!flight->happened()) {  // the deadline came before the end of the fetch
        co_return Error(Errc::Timeout, "timed out waiting for the fetch of another call");
      }
      if (flight->result) co_return *flight->result;
      // The call that fetched has ended without a result, so one of the waiting calls fetches.
    }
  }

 private:
  struct Flight final : detail::Event {
    std::optional<Result<T>> result;  // empty if the call that fetched ended first
  };
  // Ends the flight, even if the coroutine that fetches is destroyed.
  struct EndGuard {
    explicit EndGuard(Flight& its) : flight(its) {}
    ~EndGuard() { flight.happen(); }
    EndGuard(const EndGuard&) = delete;
    EndGuard& operator=(const EndGuard&) = delete;
    Flight& flight;
  };

  std::shared_ptr<Flight> join_flight(bool& is_new) {
    const std::lock_guard lock(mutex_);
    is_new = current_ == nullptr || current_->happened();
    if (is_new) current_ = std::make_shared<Flight>();
    return current_;
  }

  std::mutex mutex_;
  std::shared_ptr<Flight> current_;
};

}  // namespace httpretry
