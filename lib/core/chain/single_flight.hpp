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

  // Returns the result of the fetch that is running, or of a new one. If the call that fetches is
  // canceled or reaches its deadline, one of the waiting calls fetches instead. Any other error is
  // returned to all of them.
  Task<Result<T>> join(const Fetch& fetch, Call& call) {
    for (;;) {
      bool leads = false;
      const auto flight = join_flight(leads);
      if (leads) {
        const EndGuard guard(*flight);
        Result<T> result = co_await fetch(call);
        const ReturnTo loop(call.scheduler());
        co_await loop;
        const bool call_ended = !result && (result.error().code == Errc::Canceled ||
                                            call.scheduler().now() >= call.deadline());
        if (!call_ended) flight->result = result;
        co_return result;
      }
      const bool whole = co_await flight->wait(call.scheduler(), call.deadline(), call.stop());
      if (call.stop().stop_requested() || !whole) co_return Error(Errc::Canceled, "canceled");
      if (!flight->happened()) {
        co_return Error(Errc::Timeout, "timed out waiting for what another call fetches");
      }
      if (flight->result) co_return *flight->result;
    }
  }

 private:
  struct Flight final : detail::Event {
    std::optional<Result<T>> result;  // empty if the call that fetched ended first
  };
  // Ends the flight, even if the coroutine that leads it is destroyed.
  struct EndGuard {
    explicit EndGuard(Flight& its) : flight(its) {}
    ~EndGuard() { flight.happen(); }
    EndGuard(const EndGuard&) = delete;
    EndGuard& operator=(const EndGuard&) = delete;
    Flight& flight;
  };

  std::shared_ptr<Flight> join_flight(bool& leads) {
    const std::lock_guard lock(mutex_);
    leads = current_ == nullptr || current_->happened();
    if (leads) current_ = std::make_shared<Flight>();
    return current_;
  }

  std::mutex mutex_;
  std::shared_ptr<Flight> current_;
};

}  // namespace httpretry
