// LinePolicies finds the policy for the request of a line. It is that of the endpoint, unless the
// line names a policy or changes settings.
#pragma once

#include "request_line.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <map>
#include <memory>
#include <string>

namespace httpretry::batch {

// Used by one thread.
class LinePolicies {
 public:
  explicit LinePolicies(PolicySet policies);

  // Returns Errc::InvalidRequest if the policy does not exist, or if a setting is invalid.
  Result<std::shared_ptr<const RetryPolicy>> find(const RequestLine& line);
  // Returns whether the line has its own policy. Otherwise the client finds that of the endpoint.
  [[nodiscard]] static bool has_own(const RequestLine& line) {
    return !line.policy.empty() || !line.settings.empty();
  }

 private:
  Result<ResolvedPolicy> find_base(const RequestLine& line) const;

  PolicySet policies_;
  // The policies that were found for lines with their own, by the name or endpoint and the
  // settings.
  std::map<std::string, std::shared_ptr<const RetryPolicy>> found_;
};

// Returns the name of the header for the idempotency key of a line. Returns an empty string if
// neither the line nor its policy requests a key.
std::string key_header(const RequestLine& line, const RetryPolicy& policy);

}  // namespace httpretry::batch
