// SingleFlight: when many calls need the same thing at once, such as a new token, the first of them
// fetches it and the others wait for its result. Shared by loops and threads.
#pragma once

#include "resume_on.hpp"

#include <httpretry/flow/call.hpp>
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

  // The result of the fetch that is running, or of a new one. If the call that fetches is canceled
  // or reaches its deadline, one of the waiting calls fetches instead; any other error is returned
  // to all of them.
  Task<Result<T>> join(const Fetch& fetch, Call& call) {
    for (;;) {
      const auto [flight, leads] = board();
      if (leads) {
        const EndGuard guard(*this, *flight);
        Result<T> result = co_await lead(fetch, call, *flight);
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
    using Event::happen;
  };
  struct Boarded {
    std::shared_ptr<Flight> flight;
    bool leads;
  };
  // Ends the flight also if the coroutine that leads is destroyed, or cannot start.
  class EndGuard {
   public:
    EndGuard(SingleFlight& owner, Flight& flight) : owner_(owner), flight_(flight) {}
    ~EndGuard() {
      if (!flight_.happened()) owner_.end(flight_, std::nullopt);
    }
    EndGuard(const EndGuard&) = delete;
    EndGuard& operator=(const EndGuard&) = delete;

   private:
    SingleFlight& owner_;
    Flight& flight_;
  };

  Boarded board() {
    const std::lock_guard lock(mutex_);
    const bool leads = current_ == nullptr;
    if (leads) current_ = std::make_shared<Flight>();
    return {current_, leads};
  }

  Task<Result<T>> lead(const Fetch& fetch, Call& call, Flight& flight) {
    Result<T> result = co_await fetch(call);
    const ReturnTo loop(call.scheduler());
    co_await loop;
    const bool call_ended = !result && (result.error().code == Errc::Canceled ||
                                        call.scheduler().now() >= call.deadline());
    end(flight, call_ended ? std::nullopt : std::optional<Result<T>>(result));
    co_return result;
  }

  void end(Flight& flight, std::optional<Result<T>> result) {
    {
      const std::lock_guard lock(mutex_);
      current_.reset();
    }
    flight.result = std::move(result);
    flight.happen();
  }

  std::mutex mutex_;
  std::shared_ptr<Flight> current_;
};

}  // namespace httpretry
