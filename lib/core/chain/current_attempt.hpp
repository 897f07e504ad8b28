// What the middleware `retry` and the stages below it tell each other about one attempt.
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

// The attempt that the middleware `retry` makes, for the stages below it.
struct CurrentAttempt {
  // Of all attempts of the request.
  const Call& call;
  RetryLoop& loop;
  const std::shared_ptr<const RetryPolicy>& policy;
  // nullptr where the request has brought its own policy.
  const std::shared_ptr<const ResolvedPolicy>& resolved;
  const ClassifyFunction& classify;  // empty: by the policy

  // Of this one.
  const Request& request;
  int number = 0;         // Attempt::number of its first send
  bool is_retry = false;  // it is not the first of its request
  // False where a part of it may be sent only after the server was asked.
  bool may_be_hedged = true;
  // Of its policy, for each of its exchanges. Not put into the request: that would be a copy of all
  // its options for each attempt, an allocation of 400 bytes.
  ExchangeLimits limits{};

  // Set while it runs.
  PausingGate* passed = nullptr;        // that let the send pass without being asked
  std::optional<Classified> judged{};   // the beginning of a body that then went to the sink
  std::optional<HedgedSends> hedged{};  // by the middleware `hedge`, where there were several sends

  [[nodiscard]] Classified judge(const Outcome& outcome) const;
  // Without what was judged before.
  [[nodiscard]] Classified judge_anew(const Outcome& outcome) const;
  // Whether `judge` would look into the body of such a response.
  [[nodiscard]] bool reads_body(int status, const Headers& headers) const;
};

// What holds sends back: the middleware `guards`, and ClientOptions::max_in_flight.
class SendGate {
 public:
  // What would hold back one more send of that call now. Takes nothing. Nothing: a second send may
  // go out beside the first, which waits for neither slot nor token.
  [[nodiscard]] virtual QueuedBy would_hold(const Request& request, const Call& call) = 0;

 protected:
  ~SendGate() = default;
};

// Of the middleware `guards`.
class PausingGate : public SendGate {
 public:
  // A send that it let pass without being asked has ended like that: the server may ask for a
  // pause.
  virtual void hear(const Request& request, const Call& call, const CurrentAttempt& attempt,
                    const Outcome& outcome, const Classified& found) = 0;

 protected:
  ~PausingGate() = default;
};

}  // namespace httpretry
