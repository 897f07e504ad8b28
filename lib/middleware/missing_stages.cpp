#include "missing_stages.hpp"

#include "lib/policy/policy_set_data.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace httpretry {
namespace {

// "a", "a and b", "a, b and c"
std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

class Finder {
 public:
  explicit Finder(const HasStage& has) : has_(has) {}

  // `whose`: a function that names the policy.
  template <class Whose>
  void look_at(const RetryPolicy& policy, const Whose& whose) {
    const auto& guards = policy.guards;
    const bool pauses = guards.pause.enabled && guards.pause != PausePolicy();
    if (!pauses && !guards.has_limits() && !policy.hedge) return;
    std::vector<std::string> settings;
    const auto look = [&](bool set, std::string_view setting, std::string_view stage) {
      if (!set || has_(stage)) return;
      settings.emplace_back(setting);
      const auto call = std::string(stage) + "()";
      if (std::find(stages_.begin(), stages_.end(), call) == stages_.end()) stages_.push_back(call);
    };
    look(policy.hedge.has_value(), "hedge", "hedge");
    look(pauses, "pause", "guards");
    look(guards.rate.has_value(), "rate", "guards");
    look(guards.concurrency.has_value(), "concurrency", "guards");
    look(guards.breaker.has_value(), "breaker", "guards");
    if (settings.empty()) return;
    auto found = list(settings) + " of " + whose();
    if (std::find(found_.begin(), found_.end(), found) == found_.end()) {
      found_.push_back(std::move(found));
    }
  }

  [[nodiscard]] std::string text() const {
    if (found_.empty()) return {};
    std::string text =
        "the chain of the client lacks " + list(stages_) + ", so these settings would do nothing: ";
    for (const auto& one : found_) text.append(&one == &found_.front() ? "" : "; ").append(one);
    return text + ". Add " + list(stages_) +
           " below retry(), or switch the settings off with \"none\"";
  }

 private:
  const HasStage& has_;
  std::vector<std::string> found_;   // "rate and breaker of the policy \"careful\""
  std::vector<std::string> stages_;  // "guards()"
};

std::string name_of(const ResolvedPolicy& resolved) {
  std::string name = "the default policy";
  if (!resolved.endpoint.empty()) name = "the endpoint \"" + printable(resolved.endpoint) + "\"";
  if (!resolved.name.empty()) name = "the policy \"" + printable(resolved.name) + "\"";
  return resolved.source.empty() ? name : name + " (" + resolved.source + ")";
}

}  // namespace

std::string missing_stages(const PolicySet& policies, const HasStage& has) {
  const auto& data = policies.data();
  Finder finder(has);
  const auto look_at = [&](const ResolvedPolicy& resolved) {
    finder.look_at(*resolved.policy, [&] { return name_of(resolved); });
  };
  look_at(data.fallback);
  for (const auto& entry : data.entries) look_at(entry.resolved);
  return finder.text();
}

std::string missing_stages(const RetryPolicy& policy, const HasStage& has) {
  Finder finder(has);
  finder.look_at(policy, [] { return std::string("the policy of the request"); });
  return finder.text();
}

}  // namespace httpretry
