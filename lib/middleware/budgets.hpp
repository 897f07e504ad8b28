// The budgets and send rates of a client. Calls to one host, endpoint or policy share one, whatever
// loop they are on.
#pragma once

#include "lib/http/text.hpp"
#include "lib/retry/retry_loop.hpp"

#include <httpretry/middleware/retry.hpp>
#include <httpretry/retry/budget.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace httpretry {

// What calls share.
class SharedBudget {
 public:
  SharedBudget(const BudgetPolicy& policy, Time now) : budget(policy), rate(now), last_used(now) {}
  // In whole tokens; empty for a policy of kind None.
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const;

  mutable std::mutex mutex;  // guards what follows
  Budget budget;
  SendRate rate;
  Time last_used;
};

// How one call uses the limits that it shares with others. However the call ends, what it took is
// given back once at most: at the latest by the destructor.
class BudgetUse final : public SharedLimits {
 public:
  // Without `shared` there are no limits. With `own` that is asked instead of the shared budget, of
  // which only the send rate counts then; it needs the request. Both must outlive this.
  BudgetUse(std::shared_ptr<SharedBudget> shared, bool adaptive, Time now,
            RetryBudget* own = nullptr, const Request* request = nullptr);
  ~BudgetUse() override;
  BudgetUse(const BudgetUse&) = delete;
  BudgetUse& operator=(const BudgetUse&) = delete;

  Duration begin_attempt(Time now) override;
  Permit end_attempt(const Classified& classified, Next next, Time now) override;
  void cancel(Time now) override;
  [[nodiscard]] std::optional<std::int64_t> left(Time now) const override;

 private:
  Permit end_shared(const Classified& classified, Next next, Time now);
  bool ask_own(const Classified& classified, Next next, Time now);

  std::shared_ptr<SharedBudget> shared_;
  RetryBudget* const own_;
  const Request* const request_;
  BudgetClaim claim_;
  Time last_;            // the latest time that this was given
  bool adaptive_;        // the send rate counts
  bool paid_ = false;    // for a retry that has not begun
  bool closed_ = false;  // the call has ended
};

// A map from keys (a host, an endpoint, a policy) to budgets. Bounded: budgets that no call uses
// are dropped, first those that are as new.
class Budgets {
 public:
  std::shared_ptr<SharedBudget> at(std::string_view key, const BudgetPolicy& policy, Time now);

  // About 400 bytes each: 1.6 MB for a client that calls ever new hosts.
  static constexpr std::size_t kMaxBudgets = 4096;

 private:
  // Several maps, so that loops seldom wait for each other's lock.
  struct Part {
    std::mutex mutex;
    std::unordered_multimap<std::string, std::shared_ptr<SharedBudget>, TextHash, std::equal_to<>>
        budgets;
  };
  static constexpr std::size_t kParts = 16;
  static void make_room(Part& part, Time now);

  std::array<Part, kParts> parts_;
};

}  // namespace httpretry
