// Imports of the retry configuration of other clients: gRPC's service config, and the settings of
// AWS.
//
//   auto imported = import_grpc_service_config(text, "service_config.json").value();
//   for (const auto& problem : imported.problems) std::puts(to_string(problem).c_str());
//   save("policy.json", imported.json);
//
// Settings that have no exact counterpart here are listed in `problems`, as warnings with line and
// column; nothing is dropped silently. Text that the other client would reject is rejected with
// Errc::InvalidRequest and one line for each problem.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/policy/policy_set.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// The result of an import.
struct HTTPRETRY_API ImportedPolicies {
  explicit ImportedPolicies(PolicySet set) : policies(std::move(set)) {}

  PolicySet policies;
  std::string json;               // the equivalent policy file
  std::vector<Problem> problems;  // the settings that could not be carried over exactly
};

// Imports a gRPC service config: methodConfig with its retryPolicy and timeout, and
// retryThrottling. A method becomes an entry for the path /service/method, a service one for
// /service/*, and the config for all methods becomes the default. Without a default, requests to
// methods that are not named are sent once.
//
// A gRPC status code is mapped to what an HTTP server sends for it: the header grpc-status of a
// response without a body, "/error/status" in JSON, and HTTP statuses. UNAVAILABLE becomes 502,
// 503, 504, 429 and a lost connection; RESOURCE_EXHAUSTED becomes 429; DEADLINE_EXCEEDED becomes
// 504 and a timeout; and so on. All methods are repeated, as gRPC does.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_grpc_service_config(
    std::string_view json, const std::string& file_name);

// Imports retry_mode and max_attempts of one profile in an AWS config file (~/.aws/config), from
// the section [profile NAME], whose name may be in quotes, or [default]. They become the policy
// "aws" for the hosts *.amazonaws.com, *.amazonaws.com.cn and *.api.aws.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_config(
    std::string_view text, const std::string& file_name, std::string_view profile = "default");

// Imports AWS_RETRY_MODE and AWS_MAX_ATTEMPTS in the same way, from lines "NAME=VALUE" such as
// `env` prints.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_environment(
    std::string_view lines, const std::string& name);

}  // namespace httpretry
