#include "lib/policy/named_policies.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::policy_file {

void NamedPolicies::read(const JsonNode& policies) {
  for (const auto* const json : policies.children) {
    const auto [at, fresh] = policies_.try_emplace(json->key);
    if (!fresh) continue;  // the reader has told
    names_.push_back(at->first);
    at->second.json = json;
    if (json->key.empty()) problems_.error_at_key(*json, "an empty name");
    if (!expect(*json, JsonNode::Type::Object, "a policy", problems_)) continue;
    read_members(*json, policy_shape(), nullptr, problems_);
    in_order_.push_back(&at->second);
  }
  for (auto* const named : in_order_) {
    auto* const below = extended_by(*named->json);
    if (below == nullptr) continue;
    named->extends = below->json;
    below->extended = true;
  }
  for (auto* const named : in_order_) resolve(*named);
}

// nullptr, and a problem, where there is none. `standard` is always there.
NamedPolicies::Named* NamedPolicies::named_by(const JsonNode& reference) {
  const auto found = policies_.find(reference.text);
  if (found != policies_.end()) return &found->second;
  if (reference.text == "standard") return nullptr;
  auto message = "there is no policy " + described(reference);
  if (loaded_preset(reference.text) != nullptr) {
    message += "; the preset is written {\"preset\": " + described(reference) + "}";
  } else {
    message += problems_.suggestion(reference.text, names_);
  }
  problems_.error(reference, std::move(message));
  return nullptr;
}

NamedPolicies::Named* NamedPolicies::extended_by(const JsonNode& policy) {
  const auto* const extends = policy.find("extends");
  const auto good = extends != nullptr && extends->is(JsonNode::Type::String) && !extends->bad;
  return good ? named_by(*extends) : nullptr;
}

// From the root of its chain to itself. No recursion: a chain may be as long as the file.
void NamedPolicies::resolve(Named& last) {
  std::vector<Named*> chain;
  auto* at = &last;
  while (at->state == Named::State::New) {
    at->state = Named::State::Open;
    chain.push_back(at);
    if (at->extends == nullptr) break;
    at = &policies_.find(at->extends->key)->second;
  }
  if (at->state == Named::State::Open && at->extends != nullptr) report_cycle(chain, at);
  for (auto one = chain.rbegin(); one != chain.rend(); ++one) {
    auto& named = **one;
    const auto* below = named.extends == nullptr ? nullptr : &policies_.at(named.extends->key);
    if (below != nullptr && below->state != Named::State::Done) below = nullptr;
    named.state = Named::State::Done;
    if (!named.json->is(JsonNode::Type::Object)) continue;
    named.resolved = resolved(*named.json, below, &named.layered);
    named.resolved.name = named.json->key;
  }
}

void NamedPolicies::report_cycle(const std::vector<Named*>& chain, const Named* first) {
  std::string way;
  const auto begin = std::find(chain.begin(), chain.end(), first);
  for (auto one = begin; one != chain.end(); ++one) way += quoted_text((*one)->json->key) + " -> ";
  problems_.error(*first->json->find("extends"),
                  "extends goes in a circle: " + one_line(way + quoted_text(first->json->key)));
}

ResolvedPolicy NamedPolicies::resolved(const JsonNode& policy, const Named* below, Layered* keep) {
  auto layered = below == nullptr ? built_in() : below->layered;
  const auto* const preset = preset_of(policy, problems_);
  if (preset != nullptr) lay_preset_over(layered, *preset->tree->root, preset->origin);
  lay_over(layered, policy, policy_shape(), origin_);
  auto result = read_policy(layered, policy, problems_, values_);
  check_policy(layered, *result.policy, policy, problems_);
  const auto& inherited = below == nullptr ? standard().preset : below->resolved.preset;
  result.preset = preset == nullptr ? inherited : policy.find("preset")->text;
  result.source = origin_.at(policy);
  if (keep != nullptr) *keep = std::move(layered);
  return result;
}

ResolvedPolicy NamedPolicies::referred(const JsonNode& json) {
  if (json.is(JsonNode::Type::String)) {
    auto* const named = named_by(json);
    if (named == nullptr) {
      auto built_in = standard();
      built_in.name = json.text;
      return built_in;
    }
    use(*named);
    return named->resolved;
  }
  if (!expect(json, JsonNode::Type::Object, "a policy's name, or a policy", problems_)) {
    return standard();
  }
  read_members(json, policy_shape(), nullptr, problems_);
  auto* const below = extended_by(json);
  if (below != nullptr) use(*below);
  return resolved(json, below);
}

void NamedPolicies::use(Named& first) {
  for (auto* named = &first; !named->used;) {
    named->used = true;
    if (named->extends == nullptr) return;
    named = &policies_.find(named->extends->key)->second;
  }
}

void NamedPolicies::warn_of_unused() {
  for (const auto* const named : in_order_) {
    if (named->used || (!named->extended && named->extends == nullptr)) continue;
    problems_.warn(*named->json, "no endpoint uses this policy, nor does the default");
  }
}

std::vector<ResolvedPolicy> NamedPolicies::take() {
  std::vector<ResolvedPolicy> policies;
  for (auto* const named : in_order_) policies.push_back(std::move(named->resolved));
  return policies;
}

}  // namespace httpretry::policy_file
