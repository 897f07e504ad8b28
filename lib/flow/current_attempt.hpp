// What the middleware `retry` and the stages below it tell each other about one attempt.
#pragma once

#include "lib/retry/retry_loop.hpp"

#include <httpretry/flow/call.hpp>
#include <httpretry/http/guard_facts.hpp>
#include <httpretry/http/result.hpp>
#include <httpretry/retry/classify.hpp>
#include <httpretry/retry/retry_policy.hpp>

#include <memory>
#include <optional>

namespace httpretry {

struct ResolvedPolicy;

// Of the middleware `retry`.
class CurrentAttempt {
 public:
  [[nodiscard]] virtual const std::shared_ptr<const RetryPolicy>& policy() const = 0;
  // nullptr where the request has brought its own policy.
  [[nodiscard]] virtual const std::shared_ptr<const ResolvedPolicy>& resolved() const = 0;
  // Attempt::number of its first send.
  [[nodiscard]] virtual int number() const = 0;
  // It is not the first of its request.
  [[nodiscard]] virtual bool is_retry() const = 0;
  // Of its policy, for each of its exchanges. Not put into the request: that would be a copy of all
  // its options for each attempt, an allocation of 400 bytes.
  [[nodiscard]] virtual ExchangeLimits limits() const = 0;
  [[nodiscard]] virtual Classified judge(const Outcome& outcome) const = 0;
  // Whether `judge` would look into the body of such a response.
  [[nodiscard]] virtual bool reads_body(int status, const Headers& headers) const = 0;

  // Of the middleware `hedge`, which sends several times in one attempt.

  // False where a part of it may be sent only after the server was asked.
  [[nodiscard]] virtual bool may_be_hedged() const = 0;
  // How many more sends max_attempts allows, this attempt's first counted already. Empty: any.
  [[nodiscard]] virtual std::optional<int> sends_left() const = 0;
  // Takes what a hedge costs from what calls share; the reason where that is not there.
  virtual std::optional<HedgeRefused> pay_for_hedge(Time now) = 0;
  // The latest one was not sent.
  virtual void give_back_hedge(Time now) = 0;
  // One has ended.
  virtual void end_hedge(Time now) = 0;
  // At the end of the attempt.
  virtual void sent_several(HedgedSends sends) = 0;

 protected:
  ~CurrentAttempt() = default;
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

// Is told how far a send is, on the loop of its call.
class SendWatch {
 public:
  // The final ones of the response.
  virtual void headers_came(const Response& head) noexcept = 0;

 protected:
  ~SendWatch() = default;
};

}  // namespace httpretry
