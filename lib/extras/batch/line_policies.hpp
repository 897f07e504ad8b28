// LinePolicies: which policy the request of a line gets: that of its endpoint, or one that the line
// names or changes.
#pragma once

#include "request_line.hpp"

#include <httpretry/policy/policy_set.hpp>

#include <map>
#include <memory>
#include <string>

namespace httpretry::batch {

// Used by one thread.
class HTTPRETRY_API LinePolicies {
 public:
  explicit LinePolicies(PolicySet policies);

  // Errc::InvalidRequest for a policy that does not exist, or a setting that makes no sense.
  Result<std::shared_ptr<const RetryPolicy>> find(const RequestLine& line);
  // Whether the line has a policy of its own; else the client finds that of the endpoint.
  [[nodiscard]] static bool has_own(const RequestLine& line) {
    return !line.policy.empty() || !line.settings.empty();
  }

 private:
  Result<ResolvedPolicy> base(const RequestLine& line) const;

  PolicySet policies_;
  std::map<std::string, std::shared_ptr<const RetryPolicy>> known_;
};

// The header that the key of the line goes into; empty: it has no key. A key is there where the
// line has one, or where the policy asks for it.
HTTPRETRY_API std::string key_header(const RequestLine& line, const RetryPolicy& policy);

}  // namespace httpretry::batch
