// missing_stages: finds policies with settings that need a stage which the chain lacks.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace httpretry {

// Returns whether the chain has the stage "guards" or "hedge".
using HasStage = std::function<bool(std::string_view name)>;

// Returns a message with the settings that would do nothing, the stages to add, and how to switch
// the settings off. Returns an empty string if no stage is missing.
std::string missing_stages(const PolicySet& policies, const HasStage& has);
// Does the same for the policy that a request brought. Allocates nothing if it needs no stage.
std::string missing_stages(const RetryPolicy& policy, const HasStage& has);

// Returns the policies that were passed to retry(), or nullptr if it uses those of the client.
const PolicySource* policies_of(const Middleware& retry);

}  // namespace httpretry
