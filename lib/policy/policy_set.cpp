#include <httpretry/policy/policy_set.hpp>

#include "lib/policy/policy_set_data.hpp"
#include "lib/policy/text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry {

PolicyValues::PolicyValues() : PolicyValues(Shared()) {}
PolicyValues::PolicyValues(Shared values)
    : values_(std::make_shared<const Shared>(std::move(values))) {}
PolicyValues::Iterator PolicyValues::begin() const { return Iterator(values_->begin()); }
PolicyValues::Iterator PolicyValues::end() const { return Iterator(values_->end()); }
std::size_t PolicyValues::size() const { return values_->size(); }
const PolicyValue* PolicyValues::find(std::string_view key) const {
  const auto found =
      std::find_if(begin(), end(), [&](const PolicyValue& value) { return value.key == key; });
  return found == end() ? nullptr : &*found;
}

PolicySet::PolicySet() : PolicySet(policy_file::standard()) {}

PolicySet::PolicySet(ResolvedPolicy policy) {
  auto data = std::make_shared<Data>();
  if (!policy.policy) policy.policy = policy_file::standard().policy;
  if (policy.preset.empty()) policy.preset = "standard";
  if (policy.identity.empty() && !policy.endpoint.empty()) {
    policy.identity = policy_file::identity_of(policy.endpoint);
  }
  if (!policy.name.empty()) data->policies.push_back(policy);
  data->fallback = std::move(policy);
  data_ = std::move(data);
}

PolicySet::PolicySet(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

const ResolvedPolicy& PolicySet::find(std::string_view method, const Url& url) const {
  const auto winner = data_->index.find(method, url);
  return winner ? data_->entries[*winner].resolved : data_->fallback;
}

std::vector<PolicySet::Candidate> PolicySet::candidates(std::string_view method,
                                                        const Url& url) const {
  std::vector<Candidate> candidates;
  const auto matches = data_->index.matches(method, url);
  for (const auto match : matches) {
    auto& candidate = candidates.emplace_back();
    candidate.resolved = &data_->entries[match].resolved;
    if (match != matches.front()) {
      candidate.why_lost = data_->index.why_less(match, matches.front());
    }
  }
  return candidates;
}

namespace {

// What of an entry does not fit a request; the path is last.
struct Misfit {
  std::vector<std::string> parts;
  bool path = false;
};

bool fits(EndpointPattern part, std::string_view method, const Url& url) {
  if (!part.host) part.host = "*";  // a pattern has at least one part
  return EndpointIndex({std::move(part)}).find(method, url).has_value();
}

Misfit misfit_of(const EndpointPattern& pattern, std::string_view method, const Url& url) {
  Misfit misfit;
  EndpointPattern part;
  part.methods = pattern.methods;
  if (!fits(std::exchange(part, {}), method, url)) {
    auto& text = misfit.parts.emplace_back("its methods are");
    for (const auto& one : pattern.methods) text += ' ' + one;
  }
  part.port = pattern.port;
  if (!fits(std::exchange(part, {}), method, url)) {
    misfit.parts.push_back("its port is " + std::to_string(*pattern.port));
  }
  part.scheme = pattern.scheme;
  if (!fits(std::exchange(part, {}), method, url)) {
    misfit.parts.push_back("its scheme is " + *pattern.scheme);
  }
  part.path = pattern.path;
  misfit.path = !fits(std::move(part), method, url);
  if (misfit.path) misfit.parts.push_back("its path is " + *pattern.path);
  return misfit;
}

}  // namespace

std::vector<PolicySet::Candidate> PolicySet::near_misses(std::string_view method,
                                                         const Url& url) const {
  std::vector<Candidate> misses;
  const bool none_matches = !data_->index.find(method, url);
  for (const auto& entry : data_->entries) {
    EndpointPattern host;
    host.host = entry.pattern.host;
    if (!fits(std::move(host), method, url)) continue;
    const auto misfit = misfit_of(entry.pattern, method, url);
    if (misfit.parts.empty() || (misfit.path && !none_matches)) continue;
    std::string why;
    for (const auto& part : misfit.parts) why += (why.empty() ? "" : ", ") + part;
    misses.push_back({&entry.resolved, std::move(why)});
  }
  return misses;
}

const std::vector<Problem>& PolicySet::warnings() const { return data_->warnings; }

namespace {

bool same(const ResolvedPolicy& a, const ResolvedPolicy& b) {
  return *a.policy == *b.policy && a.endpoint == b.endpoint && a.name == b.name &&
         a.preset == b.preset;
}

}  // namespace

bool operator==(const PolicySet& a, const PolicySet& b) {
  if (a.data_ == b.data_) return true;
  const auto& x = *a.data_;
  const auto& y = *b.data_;
  return same(x.fallback, y.fallback) &&
         std::equal(x.policies.begin(), x.policies.end(), y.policies.begin(), y.policies.end(),
                    same) &&
         std::equal(x.entries.begin(), x.entries.end(), y.entries.begin(), y.entries.end(),
                    [](const auto& one, const auto& other) {
                      return one.pattern == other.pattern && one.named == other.named &&
                             same(one.resolved, other.resolved);
                    });
}

std::string policy_file::identity_of(std::string_view endpoint) {
  return "endpoint " + quoted_text(endpoint);
}

Result<PolicySet> parse_policies(std::string_view json, std::string file_name) {
  auto checked = check_policies(json, file_name);
  if (checked.set) return *std::move(checked.set);
  return Error(Errc::InvalidRequest, error_lines(checked.problems));
}

Result<PolicySet> PolicySet::load(const std::string& path) {
  const auto file = policy_file::read_file(path, policy_file::FileKind::Any);
  if (file.problem.empty()) return parse_policies(file.text, path);
  return Error(Errc::InvalidRequest, "cannot read the policy file " + path + ": " + file.problem);
}

}  // namespace httpretry
