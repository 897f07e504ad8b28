// Call: what the stages of a chain share while one request is carried through: who it is, how it
// has gone so far, and until when it may last.
#pragma once

#include <httpretry/flow/observer.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/http/request.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace httpretry {

class Delivery;
class PolicySource;
class Transport;

namespace detail {

// Shared by all branches of a call; lives in the frame of the coroutine that carries it.
struct CallState {
  std::uint64_t id = 0;
  Scheduler* scheduler = nullptr;
  Transport* transport = nullptr;
  const std::function<double()>* random = nullptr;
  const std::vector<std::shared_ptr<Observer>>* observers = nullptr;
  const PolicySource* policies = nullptr;
  std::optional<Url> first_url;
  int exchanges = 0;  // begun by the transport
  Time started{};
  std::shared_ptr<Delivery> delivery;  // where the body of the answer goes to a sink
  History history;
};

}  // namespace detail

class HTTPRETRY_API Call {
 public:
  Call(detail::CallState& state, Time deadline, std::stop_token stop)
      : state_(&state), deadline_(deadline), limit_(deadline), stop_(std::move(stop)) {}

  // Unique in this process.
  [[nodiscard]] std::uint64_t id() const { return state_->id; }
  // Where the call was first addressed, "https://api.example.com": fixed, whatever redirects
  // follow. A stage that adds credentials adds them only to requests of this origin.
  [[nodiscard]] const std::string& origin() const;
  [[nodiscard]] Scheduler& scheduler() const { return *state_->scheduler; }
  [[nodiscard]] Time started() const { return state_->started; }
  // What has been sent so far, and what came of it. The whole call's, in every branch.
  [[nodiscard]] History& history() const { return state_->history; }
  // Exchanges that were begun for it so far, in every branch.
  [[nodiscard]] int exchanges() const { return state_->exchanges; }
  // ClientOptions::policies; nullptr where the client has none.
  [[nodiscard]] const PolicySource* policies() const { return state_->policies; }
  // Uniform in [0, 1).
  [[nodiscard]] double random() const { return (*state_->random)(); }

  // This branch must end by then: the transport gives up, and no wait is begun that would end
  // later.
  [[nodiscard]] Time deadline() const { return deadline_; }
  [[nodiscard]] const std::stop_token& stop() const { return stop_; }
  // A branch of this call with limits of its own, for one or several uses of `next`. It can only be
  // shorter: the deadline is the earlier of the two. A `stop` that replaces this one must be
  // requested when this one is.
  [[nodiscard]] Call with(Time deadline, std::stop_token stop) const {
    Call branch(*state_, std::min(deadline_, deadline), std::move(stop));
    branch.in_attempt_ = in_attempt_;
    if (in_attempt_) branch.limit_ = limit_;
    return branch;
  }
  // A branch for one attempt. Its deadline, and those of further branches, are for the exchange: a
  // wait for admission (ClientOptions::max_in_flight) moves them back, within this call's.
  [[nodiscard]] Call attempt(Time deadline) const {
    Call branch(*state_, std::min(deadline_, deadline), stop_);
    branch.in_attempt_ = true;
    branch.limit_ = limit_;
    return branch;
  }
  // Until when an exchange may wait for admission, and the branch for it when it has waited.
  [[nodiscard]] Time admission_deadline() const { return limit_; }
  [[nodiscard]] Call admitted_after(Duration waited) const {
    Call branch(*this);
    branch.deadline_ = std::min(limit_, later(deadline_, waited));
    return branch;
  }

  // Tells every Observer of the client: call.emit(&Observer::redirected, next).
  template <class... Params, class... Args>
  void emit(void (Observer::*event)(const Call&, Params...) noexcept, const Args&... args) const {
    for (const auto& observer : *state_->observers) (observer.get()->*event)(*this, args...);
  }

 private:
  friend class Next;
  friend class Delivery;
  detail::CallState* state_;
  Time deadline_;
  Time limit_;  // the deadline that a wait for admission does not move
  bool in_attempt_ = false;
  std::stop_token stop_;
};

}  // namespace httpretry
