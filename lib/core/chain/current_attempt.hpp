// The state of one attempt that the `retry` middleware shares with the stages below it.
#pragma once

#include "lib/core/retry/retry_loop.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/http/result.hpp>
#include <httpretry/retry/classify.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace httpretry {

class PausingGate;
struct ResolvedPolicy;

using ClassifyFunction =
    std::function<Classified(const RetryPolicy&, const Request&, const Observed&)>;

// The current attempt of the `retry` middleware, as seen by the stages below it.
struct CurrentAttempt {
  // Shared by all attempts of the request.
  const Call& call;
  RetryLoop& loop;
  const std::shared_ptr<const RetryPolicy>& policy;
  // nullptr if the request has its own policy.
  const std::shared_ptr<const ResolvedPolicy>& resolved;
  const ClassifyFunction& classify;  // empty: the policy classifies

  // Specific to this attempt.
  const Request& request;
  int number = 0;         // Attempt::number of its first send
  bool is_retry = false;  // not the first attempt of its request
  // False if a part of the request may be sent only after the server was asked.
  bool may_be_hedged = true;
  // The policy's limits for each exchange. They are not put into the request, because that would
  // copy all its options for each attempt, an allocation of 400 bytes.
  ExchangeLimits limits{};

  // Set while the attempt runs.
  PausingGate* passed = nullptr;        // the gate that let the send pass unchecked
  std::optional<Classified> judged{};   // from the beginning of a body that then went to the sink
  std::optional<HedgedSends> hedged{};  // set by the `hedge` middleware if there were several sends
  // Returns whether a retry would follow a failure with this head and this part of its body. The
  // transport then need not receive the rest.
  std::function<bool(const Response& begun)> will_retry{};

  // Classifies the outcome. Returns `judged` if the body went to a sink.
  [[nodiscard]] Classified judge(const Outcome& outcome) const;
  // Classifies the outcome, ignoring `judged`.
  [[nodiscard]] Classified judge_anew(const Outcome& outcome) const;
  // Returns whether `judge` would look into the body of a response with this status and headers.
  [[nodiscard]] bool reads_body(int status, const Headers& headers) const;
};

// A stage that can hold sends back: the `guards` middleware or ClientOptions::max_in_flight.
class SendGate {
 public:
  // Returns what would hold back one more send of that call now. Takes nothing. If it returns
  // QueuedBy::Nothing, a second send may go out beside the first without waiting for a slot or
  // token.
  [[nodiscard]] virtual QueuedBy would_hold(const Request& request, const Call& call) = 0;

 protected:
  ~SendGate() = default;
};

// The gate of the `guards` middleware, which learns of pauses from responses.
class PausingGate : public SendGate {
 public:
  // Called when a send that this gate let pass unchecked has ended: the server may have asked for a
  // pause.
  virtual void begin_requested_pause(const Request& request, const Call& call,
                                     const CurrentAttempt& attempt, const Outcome& outcome,
                                     const Classified& verdict) = 0;

 protected:
  ~PausingGate() = default;
};

}  // namespace httpretry
