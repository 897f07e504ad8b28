#include <httpretry/policy/policy_set.hpp>

#include "lib/policy/policy_set_data.hpp"
#include "lib/policy/setting_text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry {

PolicyBuilder& PolicyBuilder::set(std::string_view key, std::string_view text) {
  settings_.emplace_back(key, text);
  return *this;
}

// As a file spells it.
template <class T, class Value>
PolicyBuilder& PolicyBuilder::say(std::string_view key, T RetryPolicy::*field, const Value& value) {
  RetryPolicy policy;
  policy.*field = value;
  return set(key, policy_file::print_key(policy, key));
}

PolicyBuilder& PolicyBuilder::extends(std::string_view policy) {
  return set("extends", quoted_text(policy));
}

PolicyBuilder& PolicyBuilder::preset(std::string_view name) {
  return set("preset", quoted_text(name));
}

PolicyBuilder& PolicyBuilder::max_attempts(int sends) {
  return say("max_attempts", &RetryPolicy::max_attempts, sends);
}

PolicyBuilder& PolicyBuilder::unlimited_attempts() {
  return say("max_attempts", &RetryPolicy::max_attempts, std::nullopt);
}

PolicyBuilder& PolicyBuilder::max_elapsed_time(Duration limit) {
  return say("max_elapsed_time", &RetryPolicy::max_elapsed_time, limit);
}

PolicyBuilder& PolicyBuilder::attempt_timeout(Duration limit) {
  return say("attempt_timeout", &RetryPolicy::attempt_timeout, limit);
}

PolicyBuilder& PolicyBuilder::connect_timeout(Duration limit) {
  return say("connect_timeout", &RetryPolicy::connect_timeout, limit);
}

PolicyBuilder& PolicyBuilder::stall_timeout(Duration limit) {
  return say("stall_timeout", &RetryPolicy::stall_timeout, limit);
}

PolicyBuilder& PolicyBuilder::elapsed_rule(ElapsedRule rule) {
  return say("elapsed_rule", &RetryPolicy::elapsed_rule, rule);
}

PolicyBuilder& PolicyBuilder::backoff(const Backoff& backoff) {
  return say("backoff", &RetryPolicy::backoff, backoff);
}

PolicyBuilder& PolicyBuilder::throttle_backoff(const std::optional<Backoff>& backoff) {
  return say("throttle_backoff", &RetryPolicy::throttle_backoff, backoff);
}

PolicyBuilder& PolicyBuilder::retry_on(const RetryOn& what) {
  return say("retry_on", &RetryPolicy::retry_on, what);
}

PolicyBuilder& PolicyBuilder::repeat(Repeat repeat) {
  return say("repeat", &RetryPolicy::repeat, repeat);
}

PolicyBuilder& PolicyBuilder::idempotency_key(std::string_view header) {
  return set("idempotency_key", quoted_text(header));
}

PolicyBuilder& PolicyBuilder::server_delay(const ServerDelayPolicy& delay) {
  return say("server_delay", &RetryPolicy::server_delay, delay);
}

PolicyBuilder& PolicyBuilder::budget(const BudgetPolicy& budget) {
  return say("budget", &RetryPolicy::budget, budget);
}

PolicyBuilder& PolicyBuilder::adaptive(bool on) {
  return say("adaptive", &RetryPolicy::adaptive, on);
}

std::string PolicyBuilder::json() const {
  JsonTree document;
  return compact(policy_file::object_of(settings_, document));
}

PolicySetBuilder& PolicySetBuilder::policy(std::string_view name, const PolicyBuilder& policy) {
  policies_ += (policies_.empty() ? "\n" : ",\n") + quoted_text(name) + ": " + policy.json();
  return *this;
}

PolicySetBuilder& PolicySetBuilder::endpoint(const EndpointPattern& match, std::string_view policy,
                                             std::string_view name) {
  return entry(match, quoted_text(policy), name);
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
  if (!name.empty()) endpoints_ += "\"name\": " + quoted_text(name) + ", ";
  endpoints_ += "\"match\": " + pattern + ", \"policy\": ";
  endpoints_ += policy;
  endpoints_ += "}";
  return *this;
}

PolicySetBuilder& PolicySetBuilder::fallback(std::string_view policy) {
  default_ = quoted_text(policy);
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
