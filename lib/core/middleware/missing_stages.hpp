// missing_stages: finds policies with settings that no stage of a chain would carry out.
#pragma once

#include <httpretry/chain/middleware.hpp>
#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace httpretry {

// Returns whether the chain has a stage, "guards" or "hedge".
using HasStage = std::function<bool(std::string_view name)>;

// Describes the settings that would do nothing, the stages to add, and how to switch the settings
// off. Empty if the chain has all that is needed.
std::string missing_stages(const PolicySet& policies, const HasStage& has);
// The same for the policy that a request brought. Allocates nothing if it needs no stage.
std::string missing_stages(const RetryPolicy& policy, const HasStage& has);

// The policies that the middleware `retry` was given; nullptr if it uses those of the client.
const PolicySource* policies_of(const Middleware& retry);

}  // namespace httpretry
