#include "line_policies.hpp"

namespace httpretry::batch {
namespace {

constexpr std::size_t kMostKnown = 1000;
constexpr std::string_view kUsualHeader = "Idempotency-Key";

}  // namespace

LinePolicies::LinePolicies(PolicySet policies) : policies_(std::move(policies)) {}

Result<ResolvedPolicy> LinePolicies::base(const RequestLine& line) const {
  if (line.policy.empty()) {
    return policies_.find(line.method, *line.parsed_url, line.headers);
  }
  if (const auto* named = policies_.named(line.policy)) return *named;
  auto preset = resolve_preset(line.policy);
  if (preset) return preset;
  Error error(Errc::InvalidRequest,
              "no policy and no preset is named \"" + printable(line.policy) + "\"");
  return error;
}

Result<std::shared_ptr<const RetryPolicy>> LinePolicies::find(const RequestLine& line) {
  if (!has_own(line)) {
    return policies_.find(line.method, *line.parsed_url, line.headers).policy;
  }
  std::string key = line.policy;
  if (line.policy.empty()) {
    const auto& endpoint = policies_.find(line.method, *line.parsed_url, line.headers);
    key = "\n" + endpoint.source + "\n" + endpoint.endpoint;
  }
  for (const auto& [name, value] : line.settings) key += "\n" + name + "=" + value;
  if (const auto known = known_.find(key); known != known_.end()) return known->second;

  auto resolved = base(line);
  if (!resolved) return std::move(resolved).error();
  auto policy = resolved->policy;
  if (!line.settings.empty()) {
    const auto changed = with_settings(PolicySet(*std::move(resolved)), line.settings, "set");
    if (!changed) return changed.error();
    policy = changed->find(line.method, *line.parsed_url, line.headers).policy;
  }
  if (known_.size() >= kMostKnown) known_.clear();
  known_.emplace(std::move(key), policy);
  return policy;
}

std::string key_header(const RequestLine& line, const RetryPolicy& policy) {
  if (!policy.idempotency_key.empty()) {
    const bool needs_one = line.method == "POST" || line.method == "PATCH";
    return needs_one || line.wants_key ? policy.idempotency_key : std::string();
  }
  const bool given = line.headers.contains(kUsualHeader);
  return line.wants_key || given ? std::string(kUsualHeader) : std::string();
}

}  // namespace httpretry::batch
