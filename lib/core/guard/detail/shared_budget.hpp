// The budgets and send rates of a client, in memory. The calls to one host, endpoint or policy
// share one, even on different loops.
#pragma once

#include "lib/core/base/text.hpp"

#include <httpretry/guard/shared_state.hpp>
#include <httpretry/retry/budget.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

namespace httpretry {

// A budget and a send rate that calls share. Thread-safe.
class SharedBudget final : public RetryAccount {
 public:
  SharedBudget(const BudgetPolicy& policy, Time now) : budget(policy), rate(now), last_used(now) {}
  SharedBudget(const Budget& like, const SendRate& sends, Time now)
      : budget(like), rate(sends), last_used(now) {}

  Duration take_send(Time now) override {
    const std::lock_guard lock(mutex);
    last_used = now;
    return rate.acquire(now);
  }
  void count_attempt(bool throttled, Time now) override {
    const std::lock_guard lock(mutex);
    rate.update(now, throttled);
  }
  void begin_call(Time now) override {
    const std::lock_guard lock(mutex);
    budget.begin(now);
    last_used = now;
  }
  RetryPermit end_attempt(BudgetClaim& claim, const Classified& classified, AfterAttempt next,
                          Time now) override {
    const std::lock_guard lock(mutex);
    RetryPermit permit;
    budget.end_attempt(claim);
    if (next == AfterAttempt::Retry) {
      permit.allowed = budget.take(claim, classified.cls, classified.timeout, now);
    }
    if (next == AfterAttempt::Stop || !permit.allowed) budget.settle(claim, classified.cls, now);
    permit.left = whole_tokens(now);
    return permit;
  }
  void cancel(BudgetClaim& claim, bool paid, Time now) override {
    const std::lock_guard lock(mutex);
    if (paid) budget.cancel(claim, now);
    budget.settle(claim, Class::Permanent, now);
  }
  bool take_hedge(BudgetClaim& claim, Time now) override {
    const std::lock_guard lock(mutex);
    return budget.take_hedge(claim, now);
  }
  void give_back_hedge(BudgetClaim& claim, Time now) override {
    const std::lock_guard lock(mutex);
    budget.give_back_hedge(claim, now);
  }
  void end_hedge(BudgetClaim& claim, Time /*now*/) override {
    const std::lock_guard lock(mutex);
    budget.end_hedge(claim);
  }
  // Returns the whole tokens left, or nullopt for a policy of kind None.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const override {
    const std::lock_guard lock(mutex);
    return whole_tokens(now);
  }

  mutable std::mutex mutex;  // guards the rest
  Budget budget;
  SendRate rate;
  Time last_used;

 private:
  [[nodiscard]] std::optional<std::int64_t> whole_tokens(Time now) const {
    const auto thousandths = budget.left(now);
    return thousandths ? std::optional(*thousandths / 1000) : std::nullopt;
  }
};

// A map from a key (a host, an endpoint or a policy) and a BudgetPolicy to a budget. When a policy
// file changes the BudgetPolicy, the budget continues with the new one. A second policy or a client
// that has not reloaded the file may still use the old one. It then gets a separate budget with the
// same share of its tokens left.
//
// The map is bounded. It drops budgets that no call uses, beginning with those in their initial
// state. Thread-safe.
class Budgets {
 public:
  // Returns the budget of the key. `changes` are changes of the policy file, the latest last.
  std::shared_ptr<SharedBudget> at(std::string_view key, const BudgetPolicy& policy, Time now,
                                   std::span<const ChangedBudget> changes = {});

  // About 400 bytes each: 1.6 MB for a client that keeps calling new hosts.
  static constexpr std::size_t kMaxBudgets = 4096;

 private:
  struct Entry {
    std::shared_ptr<SharedBudget> shared;
    std::unique_ptr<const BudgetPolicy> replaced;  // its policy before the last change
  };
  // Several maps, so that loops rarely wait for each other's lock.
  struct Part {
    std::mutex mutex;
    std::unordered_multimap<std::string, Entry, TextHash, std::equal_to<>> budgets;
  };
  static constexpr std::size_t kParts = 16;
  static std::shared_ptr<SharedBudget> make_budget(Part& part, std::string_view key,
                                                   const BudgetPolicy& policy, Time now,
                                                   std::span<const ChangedBudget> changes);
  static void drop_unused(Part& part, Time now);

  std::array<Part, kParts> parts_;
};

}  // namespace httpretry
