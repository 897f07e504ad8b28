// Texts of `policy explain`: what holds requests back, and the endpoints that nearly match.
#pragma once

#include <httpretry/http/request.hpp>
#include <httpretry/policy/policy_set.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

// Returns a line for each guard except the pause, for a concurrent budget and for the hedge, with
// the scope that shares its state. Empty if the policy has none of these.
std::string held_back_text(const ResolvedPolicy& resolved, const Request& request);

// A file may have hundreds of endpoints for one host.
inline constexpr std::size_t kMostNearMisses = 5;

// Returns a line for each of the first `most` entries that nearly match a request, and one that
// counts the others, which ends with `hint`.
std::string near_misses_text(const std::vector<PolicySet::Candidate>& misses, std::size_t most,
                             std::string_view hint = "");

}  // namespace httpretry::cli
