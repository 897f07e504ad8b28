// Sender: identifies the limits of a send. Its keys name the states that the send uses.
#pragma once

#include <httpretry/guard/shared_state.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace httpretry::guard {

struct Sender {
  std::shared_ptr<const GuardPolicy> policy;
  std::string_view host;              // "https://api.example.com"
  std::string_view endpoint;          // identifies the endpoint; empty: the host identifies it
  const GuardNames* names = nullptr;  // where the policy file states each block of the policy
  std::uint64_t credentials = 0;      // a hash of the credentials; 0: the request has none
  SendAsk ask;                        // without `now`
  Time deadline = kNever;             // when waiting must end
  Time pause_deadline = kNever;       // when waiting for a pause must end
};

// Returns the key of a state, for example "rate https://api.example.com /policies/careful". `name`
// is where the policy file states its block.
[[nodiscard]] std::string state_key(std::string_view kind, GuardScope scope, std::string_view name,
                                    const Sender& sender);
// Returns the keys of all states that the sends of this sender use.
[[nodiscard]] LimitKeys limit_keys(const Sender& sender);

}  // namespace httpretry::guard
