// Policies from what other clients are configured with: gRPC's service config, and the retry
// settings of AWS.
//
//   auto imported = import_grpc_service_config(text, "service_config.json").value();
//   for (const auto& problem : imported.problems) std::puts(to_string(problem).c_str());
//   save("policy.json", imported.json);
//
// What has no counterpart here, or only a similar one, is named in `problems`, as warnings with
// line and column; nothing is dropped in silence. Text that the other client would refuse is
// refused here: Errc::InvalidRequest, with a line for each problem.
#pragma once

#include <httpretry/policy_set.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

struct HTTPRETRY_API ImportedPolicies {
  explicit ImportedPolicies(PolicySet set);
  ~ImportedPolicies();
  ImportedPolicies(const ImportedPolicies&);
  ImportedPolicies(ImportedPolicies&&) noexcept;
  ImportedPolicies& operator=(const ImportedPolicies&);
  ImportedPolicies& operator=(ImportedPolicies&&) noexcept;

  PolicySet policies;
  std::string json;               // the policy file that says the same
  std::vector<Problem> problems;  // what could not be carried over as it was
};

// A gRPC service config: methodConfig, its retryPolicy and timeout, and retryThrottling. A method
// becomes an entry for the path /service/method, a service one for /service/*, the config of all
// methods the default; without one, what is not named is sent once.
//
// A status code becomes what an HTTP server says in its place: the header grpc-status of an answer
// without a body, "/error/status" in JSON, and the HTTP statuses (UNAVAILABLE: 502, 503, 504, 429,
// and a lost connection; RESOURCE_EXHAUSTED: 429; DEADLINE_EXCEEDED: 504, and a timeout; …).
// Methods are repeated whatever they are, as gRPC does.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_grpc_service_config(
    std::string_view json, const std::string& file_name);

// retry_mode and max_attempts of one profile in an AWS config file (~/.aws/config). They become the
// policy "aws", for the hosts *.amazonaws.com, *.amazonaws.com.cn and *.api.aws.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_config(
    std::string_view text, const std::string& file_name, std::string_view profile = "default");

// The same of AWS_RETRY_MODE and AWS_MAX_ATTEMPTS, in lines "NAME=VALUE" such as `env` prints.
[[nodiscard]] HTTPRETRY_API Result<ImportedPolicies> import_aws_environment(
    std::string_view lines, const std::string& name);

}  // namespace httpretry
