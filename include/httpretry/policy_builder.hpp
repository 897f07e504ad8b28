// PolicyBuilder and PolicySetBuilder: policies for programs that prefer code to a file.
//
//   auto policies = PolicySet::builder()
//                       .policy("careful", PolicyBuilder().preset("standard").max_attempts(6))
//                       .endpoint(drive, PolicyBuilder().extends("careful").preset("google-drive"))
//                       .fallback("careful")
//                       .build()
//                       .value();
//
// A builder writes a policy file and has it read: what it gives is what that file gives, with the
// same checks and the same problems. `json` shows the file.
#pragma once

#include <httpretry/endpoint.hpp>
#include <httpretry/policy_set.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// One policy: what it says, and nothing of what lies below it. Said twice, the last counts.
class HTTPRETRY_API PolicyBuilder {
 public:
  PolicyBuilder();
  ~PolicyBuilder();
  PolicyBuilder(const PolicyBuilder&);
  PolicyBuilder(PolicyBuilder&&) noexcept;
  PolicyBuilder& operator=(const PolicyBuilder&);
  PolicyBuilder& operator=(PolicyBuilder&&) noexcept;

  PolicyBuilder& extends(std::string_view policy);
  PolicyBuilder& preset(std::string_view name);

  PolicyBuilder& max_attempts(int sends);
  PolicyBuilder& unlimited_attempts();
  PolicyBuilder& max_elapsed_time(Duration limit);  // of this and the next three, kForever is none
  PolicyBuilder& attempt_timeout(Duration limit);
  PolicyBuilder& connect_timeout(Duration limit);
  PolicyBuilder& stall_timeout(Duration limit);
  PolicyBuilder& elapsed_rule(ElapsedRule rule);
  PolicyBuilder& backoff(const Backoff& backoff);
  PolicyBuilder& throttle_backoff(const std::optional<Backoff>& backoff);
  PolicyBuilder& retry_on(const RetryOn& what);
  PolicyBuilder& repeat(Repeat repeat);
  PolicyBuilder& idempotency_key(std::string_view header);
  PolicyBuilder& server_delay(const ServerDelayPolicy& delay);
  PolicyBuilder& budget(const BudgetPolicy& budget);
  PolicyBuilder& adaptive(bool on);

  // One key, or one of a block's, as `--set` has it: set("backoff.initial", "200ms"). The text is
  // JSON where it parses, else a string.
  PolicyBuilder& set(std::string_view key, std::string_view text);

  // As it stands in a file.
  [[nodiscard]] std::string json() const;

 private:
  template <class T, class Value>
  PolicyBuilder& say(std::string_view key, T RetryPolicy::*field, const Value& value);
  std::vector<std::pair<std::string, std::string>> settings_;
};

class HTTPRETRY_API PolicySetBuilder {
 public:
  PolicySetBuilder();
  ~PolicySetBuilder();
  PolicySetBuilder(const PolicySetBuilder&);
  PolicySetBuilder(PolicySetBuilder&&) noexcept;
  PolicySetBuilder& operator=(const PolicySetBuilder&);
  PolicySetBuilder& operator=(PolicySetBuilder&&) noexcept;

  // A policy with a name, for others to extend and for entries to refer to.
  PolicySetBuilder& policy(std::string_view name, const PolicyBuilder& policy);
  // An entry; the name is for reports.
  PolicySetBuilder& endpoint(const EndpointPattern& match, std::string_view policy,
                             std::string_view name = {});
  PolicySetBuilder& endpoint(const EndpointPattern& match, const PolicyBuilder& policy,
                             std::string_view name = {});
  // Where no entry matches: the "default" of the file.
  PolicySetBuilder& fallback(std::string_view policy);
  PolicySetBuilder& fallback(const PolicyBuilder& policy);

  // The file. Lines and columns of problems and sources are those of this text.
  [[nodiscard]] std::string json() const;
  // `origin` stands where the name of a file would.
  [[nodiscard]] CheckedPolicies check(std::string_view origin = "built") const;
  [[nodiscard]] Result<PolicySet> build(std::string origin = "built") const;

 private:
  PolicySetBuilder& entry(const EndpointPattern& match, std::string_view policy,
                          std::string_view name);
  std::string default_;  // JSON, as all of them
  std::string policies_;
  std::string endpoints_;
};

}  // namespace httpretry
