// Call: what the middlewares of a chain share while one request is on its way: who it is, what has
// happened so far, and when it must end.
#pragma once

#include <httpretry/chain/observer.hpp>
#include <httpretry/flow/scheduler.hpp>
#include <httpretry/http/request.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

struct CurrentAttempt;
class PolicySource;
class RacingSend;

// What limits one exchange beside the deadline of its call. The words are those of RequestOptions.
struct HTTPRETRY_API ExchangeLimits {
  ExchangeLimits() = default;

  bool fresh_connection = false;
  std::optional<Duration> connect_timeout;
  Duration response_timeout = kForever;
  Time respond_by = kNever;
  Duration stall_timeout = kForever;
};

class HTTPRETRY_API Call {
 public:
  struct State;  // shared by all branches of a call: lib/core/chain/detail/call_state.hpp
  Call(State& state, Time deadline, std::stop_token stop)
      : state_(&state), deadline_(deadline), limit_(deadline), stop_(std::move(stop)) {}

  // Unique in this process.
  [[nodiscard]] std::uint64_t id() const;
  // The origin of the first request, "https://api.example.com"; redirects do not change it. A
  // middleware that adds credentials adds them only to requests to this origin.
  [[nodiscard]] std::string_view origin() const;
  [[nodiscard]] Scheduler& scheduler() const;
  [[nodiscard]] Time started() const;
  // The number of the attempt that this is a branch for; 0 where it is for none.
  [[nodiscard]] int attempt() const { return attempt_; }
  // The attempts so far, of all branches.
  [[nodiscard]] History& history() const;
  // ClientOptions::policies; nullptr if the client has none.
  [[nodiscard]] const PolicySource* policies() const;
  // Values that the middlewares and observers of this call share (context.hpp), one of each type.
  // Those of the request are there from the beginning. `get` gives nullptr if there is none.
  template <class T>
  T& set(T value) const {
    return context().set(std::move(value));
  }
  template <class T>
  [[nodiscard]] T* get() const {
    return context().template get<T>();
  }
  // Uniform in [0, 1).
  [[nodiscard]] double random() const;

  // This branch must end by then: the transport gives up, and no wait begins that would end later.
  [[nodiscard]] Time deadline() const { return deadline_; }
  // The limits of the request, and in an attempt of retry() also those of its policy: a
  // transport must keep to them.
  [[nodiscard]] ExchangeLimits limits(const Request& request) const;
  // Requested when the call is canceled (CallOptions::stop), and when the client ends.
  [[nodiscard]] const std::stop_token& stop() const;
  // A branch of this call with limits of its own, for one or several uses of `next`. Its deadline
  // is the earlier of the two. A `stop` other than this call's must be requested when this call's
  // is.
  [[nodiscard]] Call with(Time deadline, std::stop_token stop) const;

  // Tells every Observer of the client: call.emit(&Observer::redirected, next).
  template <class... Params, class... Args>
  void emit(void (Observer::*event)(const Call&, Params...) noexcept, const Args&... args) const {
    for (const auto& observer : observers()) (observer.get()->*event)(*this, args...);
  }

 private:
  [[nodiscard]] const std::vector<std::shared_ptr<Observer>>& observers() const;
  [[nodiscard]] Context& context() const;
  using HeadersWatch = std::function<void(const Response& head)>;

  State* state_;
  Time deadline_;
  Time limit_;  // the deadline that waiting for admission does not move
  int attempt_ = 0;
  CurrentAttempt* current_ = nullptr;    // that this branch is for
  const HeadersWatch* watch_ = nullptr;  // of its send
  RacingSend* racing_ = nullptr;         // it is for one of several sends of that attempt
  std::stop_token stop_;
};

}  // namespace httpretry
