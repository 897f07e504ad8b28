// The numbers of the preset `standard`, tried on servers that restart, stay down or throttle: many
// calls in virtual time, with the real retry loop and budget. The seed is fixed unless it is given.
#include "lib/core/retry/retry_loop.hpp"
#include "random.hpp"
#include "situation.hpp"

#include <httpretry/retry/budget.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

using namespace httpretry_test;

namespace {

// The budget that the calls of a client share, on one thread.
class Account final : public RetryAccount {
 public:
  explicit Account(const BudgetPolicy& policy) : budget_(policy) {}
  Duration take_send(Time) override { return {}; }
  void count_attempt(bool, Time) override {}
  void begin_call(Time now) override { budget_.begin(now); }
  RetryPermit end_attempt(BudgetClaim& claim, const Classified& classified, AfterAttempt next,
                          Time now) override {
    RetryPermit permit;
    if (next == AfterAttempt::Retry) {
      permit.allowed = budget_.take(claim, classified.cls, classified.timeout, now);
    }
    if (next == AfterAttempt::Stop || !permit.allowed) budget_.settle(claim, classified.cls, now);
    return permit;
  }
  void cancel(BudgetClaim& claim, bool, Time now) override { budget_.cancel(claim, now); }
  bool take_hedge(BudgetClaim&, Time) override { return false; }
  void give_back_hedge(BudgetClaim&, Time) override {}
  void end_hedge(BudgetClaim&, Time) override {}
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const override {
    return budget_.left(now);
  }

 private:
  Budget budget_;
};

struct Totals {
  int calls = 0;
  int served = 0;
  int sends = 0;
  Duration first_waits{};  // the sum over all calls

  [[nodiscard]] double share() const { return static_cast<double>(served) / calls; }
};

// Calls of one client to one server. Each response takes no time.
class Calls {
 public:
  using Server = std::function<Outcome(Time)>;
  Calls(RetryPolicy policy, Server server, Random& random)
      : policy_(std::move(policy)), server_(std::move(server)), random_(random) {}

  void call_at(Time when) {
    calls_.push_back(std::make_unique<Call>(policy_, account_, when));
    due_.push({when, calls_.size() - 1});
  }

  Totals run() {
    while (!due_.empty()) {
      const auto [now, index] = due_.top();
      due_.pop();
      attempt(*calls_[index], index, now);
    }
    result_.calls = static_cast<int>(calls_.size());
    return result_;
  }

 private:
  struct Call {
    Call(const RetryPolicy& policy, std::shared_ptr<RetryAccount> account, Time when)
        : loop(policy, std::move(account), history, options(when)) {}
    static RetryLoop::Options options(Time when) {
      RetryLoop::Options options;
      options.call_started = options.started = when;
      return options;
    }
    History history;
    RetryLoop loop;
  };
  struct Due {
    Time when;
    std::size_t call;
    friend bool operator<(const Due& a, const Due& b) { return a.when > b.when; }
  };

  void attempt(Call& call, std::size_t index, Time now) {
    (void)call.loop.begin(now);
    const auto outcome = server_(now);
    ++result_.sends;
    EndedAttempt ended;
    ended.now = now;
    ended.random = random_.unit();
    ended.outcome = &outcome;
    const auto classified = classify(policy_, Observed(outcome, WallTime()));
    const auto step = call.loop.end(ended, classified, {});
    if (classified.cls == Class::Success) ++result_.served;
    if (step.kind != RetryStep::Kind::Wait) return;
    if (call.history.attempts.size() == 1) result_.first_waits += step.until - now;
    due_.push({step.until, index});
  }

  RetryPolicy policy_;
  Server server_;
  Random& random_;
  const std::shared_ptr<RetryAccount> account_ = std::make_shared<Account>(policy_.budget);
  std::vector<std::unique_ptr<Call>> calls_;
  std::priority_queue<Due> due_;
  Totals result_;
};

Outcome restarting(Time now) {
  return now < Time(2500ms) ? outcome_of("connect") : Outcome(Response(200));
}

// Allows `most` requests in ten seconds, and counts those that it refuses.
Calls::Server limiter(std::size_t most) {
  return [most, seen = std::deque<Time>()](Time now) mutable -> Outcome {
    while (!seen.empty() && seen.front() <= now - 10s) seen.pop_front();
    seen.push_back(now);
    return seen.size() <= most ? Outcome(Response(200)) : outcome_of("429; Retry-After: 5");
  };
}

double served_by_limiter(const RetryPolicy& policy, Random& random) {
  Totals all;
  for (int round = 0; round < 100; ++round) {
    Calls client(policy, limiter(5), random);
    for (int i = 0; i < 8; ++i) client.call_at(Time(i * 1ms));
    const auto result = client.run();
    all.calls += result.calls;
    all.served += result.served;
  }
  return all.share();
}

}  // namespace

TEST_CASE("separate clients survive a restart of 2.5 s, and first wait a quarter of a second") {
  Random random(20261122);
  CAPTURE(random.seed());
  Totals all;
  for (; all.calls < 4000; ++all.calls) {
    Calls client(RetryPolicy(), restarting, random);
    client.call_at(Time());
    const auto result = client.run();
    all.served += result.served;
    all.first_waits += result.first_waits;
  }
  CHECK(all.share() > 0.98);
  CHECK(all.first_waits / all.calls <= 250ms);
}

// A hundred calls at once would need 400 retries, and the budget has 100.
TEST_CASE("of the calls that one client makes at once, the budget lets 25 survive") {
  Random random(20261122);
  CAPTURE(random.seed());
  const auto share = [&](int calls) {
    Calls client(RetryPolicy(), restarting, random);
    for (int i = 0; i < calls; ++i) client.call_at(Time());
    return client.run().share();
  };
  CHECK(share(10) > 0.9);
  CHECK(share(25) > 0.9);
  CHECK(share(100) == 0);
}

TEST_CASE("a server that fails for good gets few retries") {
  Random random(20261122);
  CAPTURE(random.seed());
  for (const auto* outcome : {"503", "connect", "429"}) {
    Calls client(
        RetryPolicy(), [=](Time) { return outcome_of(outcome); }, random);
    for (int i = 0; i < 6000; ++i) client.call_at(Time(i * 10ms));
    const auto result = client.run();
    CHECK(result.served == 0);
    CHECK(result.sends <= 6100);  // the 100 retries of the budget
  }
}

TEST_CASE("a limiter that counts what it refuses lets all through, as the waits grow") {
  Random random(20261122);
  CAPTURE(random.seed());
  CHECK(served_by_limiter(RetryPolicy(), random) == 1);
  RetryPolicy larger_wait;
  larger_wait.server_delay.combine = ServerDelayPolicy::Combine::Max;
  CHECK(served_by_limiter(larger_wait, random) < 0.9);
}
