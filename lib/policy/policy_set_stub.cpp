#include <httpretry/policy_set.hpp>
namespace httpretry {
struct PolicySet::Data {
  ResolvedPolicy fallback;
};
ResolvedPolicy::ResolvedPolicy() = default;
ResolvedPolicy::~ResolvedPolicy() = default;
ResolvedPolicy::ResolvedPolicy(const ResolvedPolicy&) = default;
ResolvedPolicy::ResolvedPolicy(ResolvedPolicy&&) noexcept = default;
ResolvedPolicy& ResolvedPolicy::operator=(const ResolvedPolicy&) = default;
ResolvedPolicy& ResolvedPolicy::operator=(ResolvedPolicy&&) noexcept = default;
PolicyValue::PolicyValue() = default;
PolicyValue::~PolicyValue() = default;
PolicyValue::PolicyValue(const PolicyValue&) = default;
PolicyValue::PolicyValue(PolicyValue&&) noexcept = default;
PolicyValue& PolicyValue::operator=(const PolicyValue&) = default;
PolicyValue& PolicyValue::operator=(PolicyValue&&) noexcept = default;
namespace {
ResolvedPolicy standard() {
  ResolvedPolicy r;
  r.policy = std::make_shared<const RetryPolicy>();
  return r;
}
}  // namespace
PolicySet::PolicySet() : PolicySet(standard()) {}
PolicySet::PolicySet(ResolvedPolicy policy)
    : data_(std::make_shared<const Data>(Data{std::move(policy)})) {}
const ResolvedPolicy& PolicySet::find(std::string_view, const Url&) const {
  return data_->fallback;
}
}  // namespace httpretry
