#pragma once

#include <httpretry/export.hpp>

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

// The limits of one exchange, in addition to the deadline of its call. The members have the meaning
// of those in RequestOptions.
struct HTTPRETRY_API ExchangeLimits {
  ExchangeLimits() = default;

  bool fresh_connection = false;
  std::optional<Duration> connect_timeout;
  Duration response_timeout = kForever;
  Time respond_by = kNever;
  Duration stall_timeout = kForever;
};

// Call is what middlewares and transports know of the call that they work for: its identity, its
// history so far, the values that they share, and its limits. A middleware receives it in `handle`
// and passes it on with `next`; a transport enforces its limits. It is used on the thread that
// drives the call, and is valid until the call ends.
//
// A call has branches, and each Call object is one of them. The call begins as one branch. retry()
// makes a branch for each attempt, hedge() makes one for each send of an attempt, and a middleware
// makes one with `with`. A branch has its own deadline and stop token, and belongs to one attempt
// or to none. Everything else, such as the history, is the same in all branches.
class HTTPRETRY_API Call {
 public:
  struct State;  // shared by all branches of a call; lib/core/chain/detail/call_state.hpp
  Call(State& state, Time deadline, std::stop_token stop)
      : state_(&state), deadline_(deadline), limit_(deadline), stop_(std::move(stop)) {}

  // Unique in this process.
  [[nodiscard]] std::uint64_t id() const;
  // The origin of the first request, "https://api.example.com". Redirects do not change it. A
  // middleware that adds credentials must add them only to requests to this origin.
  [[nodiscard]] std::string_view origin() const;
  // The loop on which the call runs.
  [[nodiscard]] Scheduler& scheduler() const;
  // The time when the call began.
  [[nodiscard]] Time started() const;
  // The number of the attempt (Attempt::number) that this branch belongs to, or 0 outside the
  // attempts of retry().
  [[nodiscard]] int attempt() const { return attempt_; }
  // The history of the call, with the attempts of all branches so far.
  [[nodiscard]] History& history() const;
  // ClientOptions::policies, or nullptr if the client has none.
  [[nodiscard]] const PolicySource* policies() const;
  // Values that the middlewares and observers of this call share, at most one of each type
  // (context.hpp). At the beginning of the call, these are the values in RequestOptions::context.
  // `get` returns nullptr if there is no value of that type.
  template <class T>
  T& set(T value) const {
    return context().set(std::move(value));
  }
  // Returns the value of type T in the context of the call, or nullptr.
  template <class T>
  [[nodiscard]] T* get() const {
    return context().template get<T>();
  }
  // Returns a random number, uniform in [0, 1).
  [[nodiscard]] double random() const;

  // The time by which this branch must end. The transport gives up then, and a wait that would last
  // longer is not started.
  [[nodiscard]] Time deadline() const { return deadline_; }
  // Returns the limits of an exchange of `request`: those in its options and, within an attempt of
  // retry(), those of the retry policy. The stricter of two applies, but a connect timeout of the
  // request always replaces that of the policy. A transport must enforce these limits.
  [[nodiscard]] ExchangeLimits limits(const Request& request) const;
  // Requested when the call is canceled (CallOptions::stop), and when the client is destroyed.
  [[nodiscard]] const std::stop_token& stop() const;
  // Returns a branch of this call with its own limits, for one or several uses of `next`. The
  // branch ends at the earlier of the two deadlines. If `stop` is not the token of this call, it
  // must be requested whenever this call's token is.
  [[nodiscard]] Call with(Time deadline, std::stop_token stop) const;

  // Notifies every Observer of the client: call.emit(&Observer::redirected, next).
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
  Time limit_;  // the deadline, unaffected by waits for admission
  int attempt_ = 0;
  CurrentAttempt* current_ = nullptr;    // the attempt that this branch belongs to
  const HeadersWatch* watch_ = nullptr;  // of this branch's send
  RacingSend* racing_ = nullptr;  // set if this branch is one of several sends of that attempt
  std::stop_token stop_;
};

}  // namespace httpretry
