#include "missing_stages.hpp"

#include "lib/core/policy/policy_set_data.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace httpretry {
namespace {

// Returns "a", "a and b" or "a, b and c".
std::string join_words(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

// Collects the settings of policies that would do nothing because the chain lacks a stage.
class Finder {
 public:
  explicit Finder(const HasStage& has) : has_(has) {}

  // Adds the settings of `policy` that would have no effect, because the client's chain lacks the
  // middleware that applies them. `policy_label` names the policy in the message, for example "the
  // policy of the request". Allocates nothing if no middleware is lacking.
  void check(const RetryPolicy& policy, std::string_view policy_label) {
    const auto& guards = policy.guards;
    std::vector<std::string> settings;
    const auto require = [&](bool is_set, const char* setting, const char* stage) {
      if (!is_set || has_(stage)) return;
      settings.emplace_back(setting);
      add_once(stages_, std::string(stage) + "()");
    };
    require(policy.hedge.has_value(), "hedge", "hedge");
    // Every policy has a pause. Only one that differs from the default was set by the user.
    require(guards.pause.enabled && guards.pause != PausePolicy(), "pause", "guards");
    require(guards.rate.has_value(), "rate", "guards");
    require(guards.concurrency.has_value(), "concurrency", "guards");
    require(guards.breaker.has_value(), "breaker", "guards");
    if (!settings.empty()) add_once(clauses_, (join_words(settings) + " of ").append(policy_label));
  }

  // Returns the message about everything that was found, or an empty string.
  [[nodiscard]] std::string text() const {
    if (clauses_.empty()) return {};
    std::string text = "the chain of the client lacks " + join_words(stages_) +
                       ", so these settings would have no effect: ";
    for (const auto& clause : clauses_) {
      text.append(&clause == &clauses_.front() ? "" : "; ").append(clause);
    }
    return text + ". Add " + join_words(stages_) +
           " below retry(), or turn the settings off with \"none\"";
  }

 private:
  const HasStage& has_;
  std::vector<std::string> clauses_;  // "rate and breaker of the policy \"careful\""
  std::vector<std::string> stages_;   // "guards()"
};

std::string name_of(const ResolvedPolicy& resolved) {
  std::string name = "the default policy";
  if (!resolved.endpoint.empty()) name = "the endpoint \"" + printable(resolved.endpoint) + "\"";
  if (!resolved.name.empty()) name = "the policy \"" + printable(resolved.name) + "\"";
  return resolved.source.empty() ? name : name + " (" + resolved.source + ")";
}

}  // namespace

std::string missing_stages(const PolicySet& policies, const HasStage& has) {
  const auto& data = PolicySet::Data::of(policies);
  Finder finder(has);
  finder.check(*data.fallback.policy, name_of(data.fallback));
  for (const auto& entry : data.entries) {
    finder.check(*entry.resolved.policy, name_of(entry.resolved));
  }
  return finder.text();
}

std::string missing_stages(const RetryPolicy& policy, const HasStage& has) {
  Finder finder(has);
  finder.check(policy, "the policy of the request");
  return finder.text();
}

}  // namespace httpretry
