#pragma once

#include <httpretry/export.hpp>

#include <httpretry/policy/policy_set.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace httpretry {

// The result of reloading a policy file.
struct HTTPRETRY_API PolicyReload {
  PolicyReload() = default;

  std::string file;       // the path of the policy file
  bool accepted = false;  // true if its policies are in force; false if the earlier ones still are
  std::vector<Problem> problems;  // the reasons for a rejection; for an accepted file, its warnings
  std::uint64_t number = 0;       // 1 for the first reload of its source
  // Budgets that changed since the file was first read, the latest last. Only the latest hundred
  // are kept.
  std::vector<ChangedBudget> changed_budgets;
};

// PolicySource provides policies from a PolicySet, or from a file that is reloaded when it changes.
// It is a small handle; copies watch the same file. It is thread-safe.
//
//   ClientOptions options;
//   options.policies = PolicySource::watch("policy.json").value();
//
// No thread watches the file. Instead, a call that needs its policy checks the file, at most once a
// second. If the file has changed, it is read and validated at once. If it is invalid or missing,
// the earlier policies stay in force, and the log and Observer::policies_reloaded report the
// reason. Calls in flight keep the policy that they began with.
//
// A reload keeps the state of pauses, rates, breakers and concurrency limits if their key and their
// kind stay the same (GuardNames); the new numbers apply. It also keeps the budgets of policies and
// entries that still exist under the same name or, without a name, with the same pattern. A token
// budget keeps its fill level: if 4 of 10 tokens are left, a budget of 20 has 8. Retries and hedges
// in flight still count. Policies with different numbers have separate budgets, even for the same
// host. If one of two policies that share a budget gets new numbers, each gets its own budget with
// the same fill level.
//
// To update the file, write a new file next to it and rename that. A file that is overwritten in
// place may be read while it is incomplete. It is then almost certainly rejected, and read again a
// second later.
class HTTPRETRY_API PolicySource {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a set is a source
  PolicySource(PolicySet policies) : policies_(std::move(policies)) {}
  // One policy for all requests. Throws std::invalid_argument if `check` rejects it.
  PolicySource(RetryPolicy policy);  // NOLINT(google-explicit-constructor)

  // Reads the file and watches it from then on, even if the path is relative and the program
  // changes its working directory. Returns the errors of PolicySet::load, and an error if the path
  // is not a regular file.
  [[nodiscard]] static Result<PolicySource> watch(std::string path);

  // The policies in force, and the latest reload (nullptr before the first).
  struct HTTPRETRY_API Current {
    explicit Current(PolicySet set) : policies(std::move(set)) {}
    PolicySet policies;
    std::shared_ptr<const PolicyReload> reload;  // nullptr before the first reload
  };
  // Returns the policies in force. First checks the file if the last check was at least a second
  // before `now`. Allocates no memory unless the file has changed.
  [[nodiscard]] Current current(Time now) const;
  // Returns the policies in force without checking the file.
  [[nodiscard]] PolicySet in_force() const;

  // Reads the file now, even if it has not changed, and returns the policies that are then in
  // force. If the file is invalid, returns its problems, one line each, and changes nothing. A
  // source without a file returns its policies.
  Result<PolicySet> reload() const;

 private:
  class Watch;
  explicit PolicySource(std::shared_ptr<Watch> watch) : watch_(std::move(watch)) {}
  PolicySet policies_;            // used if there is no file
  std::shared_ptr<Watch> watch_;  // nullptr if there is no file
};

}  // namespace httpretry
