// PolicyBuilder and PolicySetBuilder define policies in code instead of a file.
//
//   auto policies = PolicySet::builder()
//                       .policy("careful", PolicyBuilder().preset("standard").max_attempts(6))
//                       .endpoint(drive, PolicyBuilder().extends("careful").preset("google-drive"))
//                       .fallback("careful")
//                       .build()
//                       .value();
//
// A builder writes a policy file and has it parsed, so the result, the checks and the problems are
// the same as those of the file. `json` returns the file.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/policy/policy_set.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace httpretry {

namespace detail::policy_file {
struct Layer;  // JSON; lib/core/policy/policy_set_data.hpp
}

// PolicyBuilder defines one policy. Each function sets the key of its name;
// lib/core/policy/policy-file.md explains the keys. The policy contains only the values that are
// set here, not those of the policies and presets below it. A value that is set twice has the last
// value.
class HTTPRETRY_API PolicyBuilder {
 public:
  PolicyBuilder() = default;

  PolicyBuilder& extends(std::string_view policy) { return put("extends", policy); }
  PolicyBuilder& preset(std::string_view name) { return put("preset", name); }

  PolicyBuilder& max_attempts(int sends) { return say<&RetryPolicy::max_attempts>(sends); }
  PolicyBuilder& unlimited_attempts() { return say<&RetryPolicy::max_attempts>(std::nullopt); }
  // For the following five limits, kForever means no limit.
  PolicyBuilder& max_elapsed_time(Duration limit) {
    return say<&RetryPolicy::max_elapsed_time>(limit);
  }
  PolicyBuilder& attempt_timeout(Duration limit) {
    return say<&RetryPolicy::attempt_timeout>(limit);
  }
  PolicyBuilder& response_timeout(Duration limit) {
    return say<&RetryPolicy::response_timeout>(limit);
  }
  PolicyBuilder& connect_timeout(Duration limit) {
    return say<&RetryPolicy::connect_timeout>(limit);
  }
  PolicyBuilder& stall_timeout(Duration limit) { return say<&RetryPolicy::stall_timeout>(limit); }
  PolicyBuilder& elapsed_rule(ElapsedRule rule) { return say<&RetryPolicy::elapsed_rule>(rule); }
  PolicyBuilder& backoff(const Backoff& waits) { return say<&RetryPolicy::backoff>(waits); }
  PolicyBuilder& throttle_backoff(const std::optional<Backoff>& waits) {
    return say<&RetryPolicy::throttle_backoff>(waits);
  }
  PolicyBuilder& retry_on(const RetryOn& what) { return say<&RetryPolicy::retry_on>(what); }
  PolicyBuilder& repeat(Repeat rule) { return say<&RetryPolicy::repeat>(rule); }
  // An empty name is an error when the policy is built.
  PolicyBuilder& idempotency_key(std::string_view header) { return put("idempotency_key", header); }
  PolicyBuilder& attempt_header(std::string_view header) { return put("attempt_header", header); }
  PolicyBuilder& deadline_header(std::string_view header) { return put("deadline_header", header); }
  PolicyBuilder& server_delay(const ServerDelayPolicy& delay) {
    return say<&RetryPolicy::server_delay>(delay);
  }
  PolicyBuilder& budget(const BudgetPolicy& limit) { return say<&RetryPolicy::budget>(limit); }
  PolicyBuilder& adaptive(bool on) { return say<&RetryPolicy::adaptive>(on); }
  PolicyBuilder& pause(const PausePolicy& rule) {
    return say<&RetryPolicy::guards, &GuardPolicy::pause>(rule);
  }
  PolicyBuilder& rate(const std::optional<RatePolicy>& limit) {
    return say<&RetryPolicy::guards, &GuardPolicy::rate>(limit);
  }
  PolicyBuilder& concurrency(const std::optional<ConcurrencyPolicy>& limits) {
    return say<&RetryPolicy::guards, &GuardPolicy::concurrency>(limits);
  }
  PolicyBuilder& breaker(const std::optional<BreakerPolicy>& rule) {
    return say<&RetryPolicy::guards, &GuardPolicy::breaker>(rule);
  }
  PolicyBuilder& priority(Priority rank) {
    return say<&RetryPolicy::guards, &GuardPolicy::priority>(rank);
  }
  PolicyBuilder& hedge(const std::optional<HedgePolicy>& rule) {
    return say<&RetryPolicy::hedge>(rule);
  }

  // Sets one key, or a key within a block, in the syntax of `--set`: set("backoff.initial",
  // "200ms"). The text is JSON if it parses as such, and otherwise a string.
  PolicyBuilder& set(std::string_view key, std::string_view text);

  // Returns the policy as it would appear in a file.
  [[nodiscard]] std::string json() const;

 private:
  friend class PolicySetBuilder;
  // Sets a member of a RetryPolicy, or a member of a member.
  template <auto... member, class Value>
  PolicyBuilder& say(const Value& value) {
    RetryPolicy policy;
    auto& field = (policy.*....*member);
    field = value;
    return say(policy, &field);
  }
  // Writes the key that corresponds to the member of `policy` at address `field`.
  PolicyBuilder& say(const RetryPolicy& policy, const void* field);
  PolicyBuilder& put(std::string_view key, std::string_view text);
  std::shared_ptr<detail::policy_file::Layer> layer_;  // nullptr if nothing has been set
};

// PolicySetBuilder defines a set of policies and endpoints in code.
class HTTPRETRY_API PolicySetBuilder {
 public:
  PolicySetBuilder() = default;

  // Adds a named policy, which others can extend and endpoints can refer to.
  PolicySetBuilder& policy(std::string_view name, const PolicyBuilder& policy);
  // Adds an endpoint. Reports show its name.
  PolicySetBuilder& endpoint(const EndpointPattern& match, std::string_view policy,
                             std::string_view name = {});
  PolicySetBuilder& endpoint(const EndpointPattern& match, const PolicyBuilder& policy,
                             std::string_view name = {});
  // Sets the policy for requests that match no endpoint, the file's "default".
  PolicySetBuilder& fallback(std::string_view policy);
  PolicySetBuilder& fallback(const PolicyBuilder& policy);

  // Returns the policy file. The lines and columns in problems and sources refer to this text.
  [[nodiscard]] std::string json() const;
  // Return the result of parsing the file. `origin` takes the place of the file name.
  [[nodiscard]] CheckedPolicies check(std::string_view origin = "built") const;
  [[nodiscard]] Result<PolicySet> build(std::string origin = "built") const;

 private:
  std::shared_ptr<detail::policy_file::Layer> layer_;
};

}  // namespace httpretry
