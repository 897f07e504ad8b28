// RetryClaim: what one call takes from the RetryAccount that it shares with others.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/retry/retry_account.hpp>

#include <memory>
#include <optional>

namespace httpretry {

// However the call ends, what it took is given back once at most: at the latest by the destructor.
class RetryClaim {
 public:
  // `account`: nullptr where nothing limits the call. `adaptive`: the send rate counts.
  RetryClaim(std::shared_ptr<RetryAccount> account, bool adaptive, Time now);
  ~RetryClaim();
  RetryClaim(const RetryClaim&) = delete;
  RetryClaim& operator=(const RetryClaim&) = delete;

  // Zero: the attempt begins now. Otherwise nothing was taken: ask again after that time.
  Duration begin_attempt(Time now);
  // Takes what a retry costs. Where the call ends with this attempt, because it is the last or
  // because the retry is not allowed, the claim is closed.
  RetryPermit end_attempt(const Classified& classified, AfterAttempt next, Time now);
  // The call ended before the attempt that was paid for, which is given back.
  void cancel(Time now);
  // Takes what a hedge costs; the reason where that is not there.
  std::optional<HedgeRefused> take_hedge(Time now);
  // The latest hedge was not sent.
  void give_back_hedge(Time now);
  // A hedge has ended.
  void end_hedge(Time now);
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

 private:
  const std::shared_ptr<RetryAccount> account_;
  BudgetClaim claim_;
  const bool adaptive_;
  bool paid_ = false;    // for a retry that has not begun
  bool closed_ = false;  // the call has ended
  Time last_;            // the latest time that this was given
};

}  // namespace httpretry
