// Sender: whose limits a send is under, and the keys of the states that it uses.
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
  std::string_view endpoint;          // what identifies it; empty: its host
  const GuardNames* names = nullptr;  // where the blocks of the policy are stated
  std::uint64_t credentials = 0;      // a hash of those that are sent
  SendAsk ask;                        // without its time
  Time limit = kNever;                // of waiting
  Time pause_limit = kNever;          // of waiting for a pause
};

// "rate https://api.example.com /policies/careful": the key of a state of that kind. `name` is
// where its block is stated.
[[nodiscard]] std::string state_key(std::string_view kind, GuardScope scope, std::string_view name,
                                    const Sender& sender);
[[nodiscard]] LimitKeys limit_keys(const Sender& sender);

}  // namespace httpretry::guard
