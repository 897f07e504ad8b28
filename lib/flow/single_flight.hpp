// SingleFlight: something that many calls need at once, such as a new token, is fetched by the
// first of them; the others wait for what it brings. Shared by loops and threads.
#pragma once

#include "hop.hpp"

#include <httpretry/flow/call.hpp>
#include <httpretry/flow/task.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace httpretry {

template <class T>
class SingleFlight {
 public:
  using Fetch = std::function<Task<Result<T>>(Call&)>;

  // What the flight brings that is under way, or else one that this call makes. A call that is
  // canceled, or has come to its deadline, hands over to one that waits; any other failure is
  // everybody's who waited for it.
  Task<Result<T>> join(const Fetch& fetch, Call& call) {
    for (;;) {
      std::stop_source wake;
      const auto [flight, leads] = board(wake);
      if (leads) {
        const Landing landing(*this, *flight);
        Result<T> brought = co_await lead(fetch, call, *flight);
        co_return brought;
      }
      const std::stop_callback forward(call.stop(), Wake{wake});
      const bool late = co_await call.scheduler().sleep_until(call.deadline(), wake.get_token());
      if (late) co_return Error(Errc::Timeout, "waited in vain for what another call fetches");
      // Called off, by its caller or with the client: then nobody has landed.
      if (call.stop().stop_requested() || !over(*flight))
        co_return Error(Errc::Canceled, "canceled");
      if (flight->brought) co_return *flight->brought;
    }
  }

 private:
  struct Flight {
    bool over = false;
    std::optional<Result<T>> brought;  // empty where it is whoever led that ended
    std::vector<std::stop_source> waiting;
  };
  struct Wake {
    std::stop_source which;
    void operator()() { which.request_stop(); }
  };
  struct Boarded {
    std::shared_ptr<Flight> flight;
    bool leads;
  };
  // Lands also where the coroutine that leads is destroyed, or cannot begin.
  class Landing {
   public:
    Landing(SingleFlight& owner, Flight& flight) : owner_(owner), flight_(flight) {}
    ~Landing() { owner_.land(flight_, std::nullopt); }
    Landing(const Landing&) = delete;
    Landing& operator=(const Landing&) = delete;

   private:
    SingleFlight& owner_;
    Flight& flight_;
  };

  Boarded board(const std::stop_source& wake) {
    const std::lock_guard lock(mutex_);
    if (current_) {
      current_->waiting.push_back(wake);
      return {current_, false};
    }
    current_ = std::make_shared<Flight>();
    return {current_, true};
  }

  Task<Result<T>> lead(const Fetch& fetch, Call& call, Flight& flight) {
    Result<T> brought = co_await fetch(call);
    const ReturnTo loop(call.scheduler());
    co_await loop;
    const bool own_end = !brought && (brought.error().code == Errc::Canceled ||
                                      call.scheduler().now() >= call.deadline());
    land(flight, own_end ? std::nullopt : std::optional<Result<T>>(brought));
    co_return brought;
  }

  void land(Flight& flight, std::optional<Result<T>> brought) {
    std::vector<std::stop_source> waiting;
    {
      const std::lock_guard lock(mutex_);
      if (flight.over) return;
      flight.over = true;
      flight.brought = std::move(brought);
      waiting.swap(flight.waiting);
      if (current_.get() == &flight) current_.reset();
    }
    for (auto& waiter : waiting) waiter.request_stop();
  }

  bool over(const Flight& flight) {
    const std::lock_guard lock(mutex_);
    return flight.over;
  }

  std::mutex mutex_;
  std::shared_ptr<Flight> current_;
};

}  // namespace httpretry
