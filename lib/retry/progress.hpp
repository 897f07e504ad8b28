// What a loop of attempts counts from one decision to the next.
#pragma once

#include <httpretry/retry/decide.hpp>

#include <algorithm>
#include <string>

namespace httpretry::policy {

class Progress {
 public:
  // `changes_nothing`: doing it twice leaves no trace, so that no later answer is ambiguous.
  Progress(bool repeatable, bool changes_nothing) : changes_nothing_(changes_nothing) {
    facts_.failures = 0;
    facts_.repeatable = repeatable;
  }

  [[nodiscard]] AttemptFacts& facts() { return facts_; }

  // Before `decide`.
  void ended(Class cls) {
    if (cls == Class::Pending) ++facts_.polls;
    if (cls != Class::Pending && cls != Class::Success) ++facts_.failures;
    // Each of the two backoffs grows from its own last wait.
    facts_.previous = cls == Class::Pending ? last_poll_wait_ : last_wait_;
  }
  // The request may have been done, in an attempt that nobody decides about.
  void maybe_executed() { facts_.maybe_executed = !changes_nothing_; }
  // After it.
  void decided(const Classified& classified, const Decision& decision) {
    facts_.once_used = facts_.once_used || classified.once;
    if (may_have_executed(classified)) maybe_executed();
    (decision.poll ? last_poll_wait_ : last_wait_) = decision.backoff;
  }

 private:
  AttemptFacts facts_;
  bool changes_nothing_;
  Duration last_wait_{};
  Duration last_poll_wait_{};
};

// Whether an attempt that the send rate holds back until `when` would come too late.
inline bool too_late(const RetryPolicy& policy, Time started, Time deadline, Time when) {
  const bool counts = policy.elapsed_rule == ElapsedRule::IncludeWait;
  return when >= std::min(deadline, counts ? later(started, policy.max_elapsed_time) : kNever);
}
inline std::string too_late_text(Duration wait) {
  return "the send rate allows the next attempt in " + to_text(wait) + ", too late";
}

// Why a call ended, for people, where there is more to say than Reason does.
inline std::string detail_of(const Decision& decision, Repeat repeat) {
  if (decision.reason != Reason::UnsafeToRepeat) return limit_text(decision);
  return repeat == Repeat::Never ? "the policy says repeat: never"
                                 : "the server may have done it, and doing it twice may do harm";
}

// What a decision says of the attempt before it, and of the call where it ends it.
inline void write_down(const Decision& decision, Repeat repeat, Attempt& attempt,
                       History& history) {
  attempt.retried = decision.retry;
  attempt.ambiguous = decision.ambiguous;
  if (decision.server_delay) {
    attempt.server_delay = decision.server_delay;
    attempt.server_delay_source = to_string(decision.source);
  }
  if (decision.retry) {
    attempt.backoff = decision.backoff;
    attempt.wait = decision.wait;
  } else {
    history.stop_reason = decision.reason;
    history.retry_at = decision.retry_at;
    history.detail = detail_of(decision, repeat);
  }
}

}  // namespace httpretry::policy
