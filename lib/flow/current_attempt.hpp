// CurrentAttempt: what the stages below the middleware `retry` may ask of it about the attempt that
// they carry out, and what one of them tells it that sends several times within the attempt.
#pragma once

#include "lib/retry/retry_loop.hpp"

#include <memory>
#include <optional>

namespace httpretry {

class CurrentAttempt {
 public:
  CurrentAttempt() = default;
  virtual ~CurrentAttempt() = default;
  CurrentAttempt(const CurrentAttempt&) = delete;
  CurrentAttempt& operator=(const CurrentAttempt&) = delete;

  [[nodiscard]] virtual const RetryPolicy& policy() const = 0;
  [[nodiscard]] virtual std::shared_ptr<const RetryPolicy> shared_policy() const = 0;
  // nullptr where the request brought its own policy.
  [[nodiscard]] virtual std::shared_ptr<const ResolvedPolicy> resolved() const = 0;
  // Attempt::number of its first send.
  [[nodiscard]] virtual int number() const = 0;
  // It is not the first of its request.
  [[nodiscard]] virtual bool is_retry() const = 0;
  [[nodiscard]] virtual Classified judge(const Outcome& outcome) const = 0;
  // Whether `judge` would look into the body of such a response.
  [[nodiscard]] virtual bool reads_body(int status, const Headers& headers) const = 0;

  // False where a part of it may be sent only after the server was asked.
  [[nodiscard]] virtual bool may_be_hedged() const = 0;
  // How many more sends max_attempts allows, this attempt's first counted already. Empty: any.
  [[nodiscard]] virtual std::optional<int> sends_left() const = 0;
  // Takes what a hedge costs from what calls share; the reason where that is not there.
  virtual std::optional<HedgeRefused> pay_for_hedge(Time now) = 0;
  // It was not sent.
  virtual void give_back_hedge(Time now) = 0;
  // At the end of the attempt.
  virtual void sent_several(HedgedSends sends) = 0;
};

}  // namespace httpretry
