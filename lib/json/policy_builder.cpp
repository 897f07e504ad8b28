#include <httpretry/policy_builder.hpp>

#include "lib/json/policy_set_data.hpp"
#include "lib/json/settings.hpp"

#include <algorithm>
#include <utility>

namespace httpretry {

using policy_file::quoted;

PolicyBuilder::PolicyBuilder() = default;
PolicyBuilder::~PolicyBuilder() = default;
PolicyBuilder::PolicyBuilder(const PolicyBuilder&) = default;
PolicyBuilder::PolicyBuilder(PolicyBuilder&&) noexcept = default;
PolicyBuilder& PolicyBuilder::operator=(const PolicyBuilder&) = default;
PolicyBuilder& PolicyBuilder::operator=(PolicyBuilder&&) noexcept = default;

PolicyBuilder& PolicyBuilder::set(std::string_view key, std::string_view text) {
  settings_.emplace_back(key, text);
  return *this;
}

// What the policy has at that key, as a file spells it.
PolicyBuilder& PolicyBuilder::say(std::string_view key, const RetryPolicy& policy) {
  return set(key, policy_file::print_key(policy, key));
}

PolicyBuilder& PolicyBuilder::extends(std::string_view policy) {
  return set("extends", quoted(policy));
}

PolicyBuilder& PolicyBuilder::preset(std::string_view name) { return set("preset", quoted(name)); }

PolicyBuilder& PolicyBuilder::max_attempts(int sends) {
  RetryPolicy policy;
  policy.max_attempts = sends;
  return say("max_attempts", policy);
}

PolicyBuilder& PolicyBuilder::unlimited_attempts() {
  RetryPolicy policy;
  policy.max_attempts.reset();
  return say("max_attempts", policy);
}

PolicyBuilder& PolicyBuilder::max_elapsed_time(Duration limit) {
  RetryPolicy policy;
  policy.max_elapsed_time = limit;
  return say("max_elapsed_time", policy);
}

PolicyBuilder& PolicyBuilder::attempt_timeout(Duration limit) {
  RetryPolicy policy;
  policy.attempt_timeout = limit;
  return say("attempt_timeout", policy);
}

PolicyBuilder& PolicyBuilder::connect_timeout(Duration limit) {
  RetryPolicy policy;
  policy.connect_timeout = limit;
  return say("connect_timeout", policy);
}

PolicyBuilder& PolicyBuilder::stall_timeout(Duration limit) {
  RetryPolicy policy;
  policy.stall_timeout = limit;
  return say("stall_timeout", policy);
}

PolicyBuilder& PolicyBuilder::elapsed_rule(ElapsedRule rule) {
  RetryPolicy policy;
  policy.elapsed_rule = rule;
  return say("elapsed_rule", policy);
}

PolicyBuilder& PolicyBuilder::backoff(const Backoff& backoff) {
  RetryPolicy policy;
  policy.backoff = backoff;
  return say("backoff", policy);
}

PolicyBuilder& PolicyBuilder::throttle_backoff(const std::optional<Backoff>& backoff) {
  RetryPolicy policy;
  policy.throttle_backoff = backoff;
  return say("throttle_backoff", policy);
}

PolicyBuilder& PolicyBuilder::retry_on(const RetryOn& what) {
  RetryPolicy policy;
  policy.retry_on = what;
  return say("retry_on", policy);
}

PolicyBuilder& PolicyBuilder::repeat(Repeat repeat) {
  RetryPolicy policy;
  policy.repeat = repeat;
  return say("repeat", policy);
}

PolicyBuilder& PolicyBuilder::idempotency_key(std::string_view header) {
  return set("idempotency_key", quoted(header));
}

PolicyBuilder& PolicyBuilder::server_delay(const ServerDelayPolicy& delay) {
  RetryPolicy policy;
  policy.server_delay = delay;
  return say("server_delay", policy);
}

PolicyBuilder& PolicyBuilder::budget(const BudgetPolicy& budget) {
  RetryPolicy policy;
  policy.budget = budget;
  return say("budget", policy);
}

PolicyBuilder& PolicyBuilder::adaptive(bool on) {
  RetryPolicy policy;
  policy.adaptive = on;
  return say("adaptive", policy);
}

std::string PolicyBuilder::json() const {
  policy_file::Document document;
  return compact(policy_file::object_of(settings_, document));
}

PolicySetBuilder::PolicySetBuilder() = default;
PolicySetBuilder::~PolicySetBuilder() = default;
PolicySetBuilder::PolicySetBuilder(const PolicySetBuilder&) = default;
PolicySetBuilder::PolicySetBuilder(PolicySetBuilder&&) noexcept = default;
PolicySetBuilder& PolicySetBuilder::operator=(const PolicySetBuilder&) = default;
PolicySetBuilder& PolicySetBuilder::operator=(PolicySetBuilder&&) noexcept = default;

PolicySetBuilder& PolicySetBuilder::policy(std::string_view name, const PolicyBuilder& policy) {
  policies_ += (policies_.empty() ? "\n" : ",\n") + quoted(name) + ": " + policy.json();
  return *this;
}

PolicySetBuilder& PolicySetBuilder::endpoint(const EndpointPattern& match, std::string_view policy,
                                             std::string_view name) {
  return entry(match, quoted(policy), name);
}

PolicySetBuilder& PolicySetBuilder::endpoint(const EndpointPattern& match,
                                             const PolicyBuilder& policy, std::string_view name) {
  return entry(match, policy.json(), name);
}

PolicySetBuilder& PolicySetBuilder::entry(const EndpointPattern& match, std::string_view policy,
                                          std::string_view name) {
  auto pattern = policy_file::print_pattern(match, {});
  pattern.erase(std::remove(pattern.begin(), pattern.end(), '\n'), pattern.end());
  endpoints_ += endpoints_.empty() ? "\n{" : ",\n{";
  if (!name.empty()) endpoints_ += "\"name\": " + quoted(name) + ", ";
  endpoints_ += "\"match\": " + pattern + ", \"policy\": ";
  endpoints_ += policy;
  endpoints_ += "}";
  return *this;
}

PolicySetBuilder& PolicySetBuilder::fallback(std::string_view policy) {
  default_ = quoted(policy);
  return *this;
}

PolicySetBuilder& PolicySetBuilder::fallback(const PolicyBuilder& policy) {
  default_ = policy.json();
  return *this;
}

std::string PolicySetBuilder::json() const {
  std::string text = "{\"version\": 1";
  if (!default_.empty()) text += ",\n\"default\": " + default_;
  if (!policies_.empty()) text += ",\n\"policies\": {" + policies_ + "}";
  if (!endpoints_.empty()) text += ",\n\"endpoints\": [" + endpoints_ + "]";
  return text + "}\n";
}

CheckedPolicies PolicySetBuilder::check(std::string_view origin) const {
  return check_policies(json(), origin);
}

Result<PolicySet> PolicySetBuilder::build(std::string origin) const {
  return parse_policies(json(), std::move(origin));
}

PolicySetBuilder PolicySet::builder() { return {}; }

}  // namespace httpretry
