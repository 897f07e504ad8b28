#include "sender.hpp"

namespace httpretry::guard {
namespace {

// Returns the part of a key that names the requests of the scope.
std::string scope_text(GuardScope scope, const Sender& sender) {
  switch (scope) {
    case GuardScope::Host: return std::string(sender.host);
    case GuardScope::Policy: return "policy";
    case GuardScope::Endpoint:
      return std::string(sender.endpoint.empty() ? sender.host : sender.endpoint);
    case GuardScope::Credentials:
      return std::string(sender.host) + " credentials " + std::to_string(sender.credentials);
  }
  return {};
}

// Returns the key of a pause. A server's request for a pause applies to all policies, so the key
// does not name the policy block. It applies only to that server, so the key names the host.
std::string pause_key(GuardScope scope, const Sender& sender, const GuardNames& names) {
  if (scope == GuardScope::Policy) return "pause policy " + names.pause;
  auto key = "pause " + std::string(sender.host);
  if (scope != GuardScope::Endpoint) return key;
  if (!sender.endpoint.empty()) key.append(" ").append(sender.endpoint);
  if (sender.credentials != 0) key += " credentials " + std::to_string(sender.credentials);
  return key;
}

}  // namespace

std::string state_key(std::string_view kind, GuardScope scope, std::string_view name,
                      const Sender& sender) {
  auto key = std::string(kind) + " " + scope_text(scope, sender);
  if (!name.empty()) key.append(" ").append(name);
  return key;
}

// Returns the keys of the limits that a sender shares with others, for example the key "rate
// https://api.example.com /policies/careful". Senders with the same key share the limit. The key of
// a limit that the policy does not have is empty.
LimitKeys limit_keys(const Sender& sender) {
  // `names` says where the policy file states each limit ("/policies/careful"): policies that take
  // a limit from the same place share it. The names are empty without a policy file.
  static const GuardNames unnamed;
  const auto& policy = *sender.policy;
  const auto& names = sender.names == nullptr ? unnamed : *sender.names;
  LimitKeys keys;
  keys.policy = sender.policy;
  if (policy.pause.enabled) {
    // Without a scope in the policy there are two pauses: a 503 pauses the whole host, and other
    // responses pause only the endpoint. If both have the same key, one pause is enough.
    keys.pauses[0] = pause_key(policy.pause.scope.value_or(GuardScope::Host), sender, names);
    if (!policy.pause.scope) keys.pauses[1] = pause_key(GuardScope::Endpoint, sender, names);
    if (keys.pauses[1] == keys.pauses[0]) keys.pauses[1].clear();
  }
  if (policy.rate) keys.rate = state_key("rate", policy.rate->scope, names.rate, sender);
  if (policy.concurrency) {
    keys.slots = state_key("concurrency", policy.concurrency->scope, names.concurrency, sender);
  }
  if (policy.breaker) {
    keys.breaker = state_key("breaker", policy.breaker->scope, names.breaker, sender);
  }
  return keys;
}

}  // namespace httpretry::guard
