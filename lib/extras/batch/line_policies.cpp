#include "line_policies.hpp"

namespace httpretry::batch {
namespace {

constexpr std::size_t kMostCached = 1000;
constexpr std::string_view kUsualHeader = "Idempotency-Key";

}  // namespace

LinePolicies::LinePolicies(PolicySet policies) : policies_(std::move(policies)) {}

// Returns the policy before the line's settings change it: that of the endpoint, or the one that
// the line names. Returns Errc::InvalidRequest if neither a policy nor a preset has that name.
Result<ResolvedPolicy> LinePolicies::find_base(const RequestLine& line) const {
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

// Returns the policy for the request of a line: that of its endpoint in the policy file, unless the
// line names another policy or changes settings. Returns Errc::InvalidRequest if that policy does
// not exist, or if a setting is invalid. Lines usually share a few combinations of policy and
// settings, so each is resolved once and cached in `found_`.
Result<std::shared_ptr<const RetryPolicy>> LinePolicies::find(const RequestLine& line) {
  // Most lines neither name a policy nor change settings.
  if (!has_own(line)) {
    return policies_.find(line.method, *line.parsed_url, line.headers).policy;
  }
  // The key looks like "orders\nmax_attempts=9". A line that names no policy has that of its
  // endpoint, which is identified by where it is defined (`source`) and by the endpoint's name. Its
  // key begins with "\n", so it differs from all names.
  std::string cache_key = line.policy;
  if (line.policy.empty()) {
    const auto& endpoint = policies_.find(line.method, *line.parsed_url, line.headers);
    cache_key = "\n" + endpoint.source + "\n" + endpoint.endpoint;
  }
  for (const auto& [name, value] : line.settings) cache_key += "\n" + name + "=" + value;
  if (const auto cached = found_.find(cache_key); cached != found_.end()) return cached->second;

  auto base = find_base(line);  // the policy before the settings change it
  if (!base) return std::move(base).error();
  auto policy = base->policy;
  if (!line.settings.empty()) {
    // with_settings() changes all policies of a set, so it gets a set with this policy alone, which
    // applies to every request. "set" is the name of the settings' origin in messages.
    const auto changed = with_settings(PolicySet(*std::move(base)), line.settings, "set");
    if (!changed) return changed.error();
    policy = changed->find(line.method, *line.parsed_url, line.headers).policy;
  }
  if (found_.size() >= kMostCached) found_.clear();
  found_.emplace(std::move(cache_key), policy);
  return policy;
}

std::string key_header(const RequestLine& line, const RetryPolicy& policy) {
  if (!policy.idempotency_key.empty()) {
    const bool needs_key = line.method == "POST" || line.method == "PATCH";
    return needs_key || line.wants_key ? policy.idempotency_key : std::string();
  }
  const bool has_header = line.headers.contains(kUsualHeader);
  return line.wants_key || has_header ? std::string(kUsualHeader) : std::string();
}

}  // namespace httpretry::batch
