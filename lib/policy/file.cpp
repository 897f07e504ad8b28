// A policy file: its policies resolved, its endpoints indexed, and all that is wrong with it.
#include "lib/policy/checks.hpp"
#include "lib/policy/layers.hpp"
#include "lib/policy/policy_set_data.hpp"
#include "lib/policy/values.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace httpretry {
namespace policy_file {
namespace {

struct Named {
  enum class State : std::uint8_t { New, Open, Done };

  const JsonNode* json = nullptr;
  const JsonNode* extends = nullptr;  // where it names a policy that there is
  State state = State::New;
  bool used = false;
  bool extended = false;
  Layered layered;
  ResolvedPolicy resolved;
};

class Loader {
 public:
  Loader(const JsonNode& root, Problems& report)
      : root_(root), report_(report), source_{report.file(), true, nullptr} {}

  std::shared_ptr<PolicySet::Data> load() {
    if (!expect(root_, JsonNode::Type::Object, "an object", report_)) return nullptr;
    for (const auto* const member : root_.children) known_key(*member, file_shape(), report_);
    check_header();
    if (const auto* const policies = typed("policies", JsonNode::Type::Object))
      read_names(*policies);
    for (auto* const named : in_order_) resolve(*named);
    if (const auto* const endpoints = typed("endpoints", JsonNode::Type::Array)) {
      for (const auto* const entry : endpoints->children) read_endpoint(*entry);
    }
    read_default();
    find_ties();
    warn_unused();
    return finished();
  }

 private:
  // A member of the file, of that type.
  const JsonNode* typed(std::string_view key, JsonNode::Type type) {
    const auto& members = root_.children;
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const JsonNode* member) { return member->key == key; });
    if (found == members.end()) return nullptr;
    const auto* const what = type == JsonNode::Type::Object  ? "an object"
                             : type == JsonNode::Type::Array ? "an array"
                                                             : "a string";
    return expect(**found, type, what, report_) ? *found : nullptr;
  }

  void check_header() {
    typed("$schema", JsonNode::Type::String);
    const auto* const version = root_.find("version");
    if (version == nullptr) {
      report_.error(root_, "missing key \"version\": this is version 1");
    } else if (!version->is(JsonNode::Type::Number) || number_in(*version) != 1.0) {
      report_.error(*version, described(*version) + " is not a version of this format: 1");
    }
  }

  void read_names(const JsonNode& policies) {
    for (const auto* const json : policies.children) {
      const auto [at, fresh] = policies_.try_emplace(json->key);
      if (!fresh) continue;  // the reader has told
      names_.push_back(at->first);
      at->second.json = json;
      if (json->key.empty()) report_.error_at_key(*json, "an empty name");
      if (!expect(*json, JsonNode::Type::Object, "a policy", report_)) continue;
      check_object(*json, policy_shape(), report_);
      in_order_.push_back(&at->second);
    }
    for (auto* const named : in_order_) {
      auto* const below = extended_by(*named->json);
      if (below == nullptr) continue;
      named->extends = below->json;
      below->extended = true;
    }
  }

  // The policy that is named there; nullptr, and a problem, where there is none. `standard` is
  // always there.
  Named* named_by(const JsonNode& reference) {
    const auto found = policies_.find(reference.text);
    if (found != policies_.end()) return &found->second;
    if (reference.text == "standard") return nullptr;
    auto message = "there is no policy " + described(reference);
    if (preset_json(reference.text) != nullptr) {
      message += "; the preset is written {\"preset\": " + described(reference) + "}";
    } else {
      message += report_.suggestion(reference.text, names_);
    }
    report_.error(reference, std::move(message));
    return nullptr;
  }
  Named* extended_by(const JsonNode& policy) {
    const auto* const extends = policy.find("extends");
    const auto good = extends != nullptr && extends->is(JsonNode::Type::String) && !extends->bad;
    return good ? named_by(*extends) : nullptr;
  }

  // From the root of its chain to itself. No recursion: a chain may be as long as the file.
  void resolve(Named& last) {
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
  void report_cycle(const std::vector<Named*>& chain, const Named* first) {
    std::string way;
    const auto begin = std::find(chain.begin(), chain.end(), first);
    for (auto one = begin; one != chain.end(); ++one)
      way += quoted_text((*one)->json->key) + " -> ";
    report_.error(*first->json->find("extends"),
                  "extends goes in a circle: " + one_line(way + quoted_text(first->json->key)));
  }

  ResolvedPolicy resolved(const JsonNode& policy, const Named* below, Layered* keep = nullptr) {
    auto layered = below == nullptr ? built_in() : below->layered;
    ResolvedPolicy result;
    result.preset = below == nullptr ? "standard" : below->resolved.preset;
    const auto* const preset = policy.find("preset");
    if (preset != nullptr && preset->is(JsonNode::Type::String) && !preset->text.empty()) {
      if (const auto* const json = preset_json(preset->text)) {
        lay_preset_over(layered, *json, preset_source(preset->text));
        result.preset = preset->text;
      } else {
        report_.error(*preset,
                      "there is no preset " + described(*preset) + near_preset(preset->text));
      }
    }
    lay_over(layered, policy, policy_shape(), source_);
    result.source = source_.at(policy);
    result.policy = read_policy(layered, policy, report_);
    check_policy(layered, *result.policy, policy, report_);
    result.values = values_of(layered, values_);
    if (keep != nullptr) *keep = std::move(layered);
    return result;
  }

  // A name of a policy, or a policy.
  ResolvedPolicy referred(const JsonNode& json) {
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
    if (!expect(json, JsonNode::Type::Object, "a policy's name, or a policy", report_)) {
      return standard();
    }
    check_object(json, policy_shape(), report_);
    auto* const below = extended_by(json);
    if (below != nullptr) use(*below);
    return resolved(json, below);
  }
  void use(Named& first) {
    for (auto* named = &first; !named->used;) {
      named->used = true;
      if (named->extends == nullptr) return;
      named = &policies_.find(named->extends->key)->second;
    }
  }

  void read_default() {
    const auto* json = root_.find("default");
    if (json == nullptr && policies_.count("standard") == 0) {
      data_->fallback = standard();
      return;
    }
    JsonNode standard_name;
    standard_name.type = JsonNode::Type::String;
    standard_name.text = "standard";
    data_->fallback = referred(json == nullptr ? standard_name : *json);
  }

  void read_endpoint(const JsonNode& json) {
    if (!expect(json, JsonNode::Type::Object, "an endpoint", report_)) return;
    PolicySet::Data::Entry entry;
    for (const auto* const member : json.children) {
      known_key(*member, endpoint_shape(), report_);
      if (member->key == "name") entry.named = read_name(*member);
      if (member->key == "name" && entry.named) warn_of_twin(*member);
    }
    const auto* const policy = member_of(json, "policy");
    const auto* const match = member_of(json, "match");
    if (policy != nullptr) entry.resolved = referred(*policy);
    const auto matches = match != nullptr && read_match(*match, entry.pattern);
    entry.resolved.endpoint = entry.named ? std::string(json.find("name")->text) : pointer_to(json);
    if (!matches) return;
    entry.resolved.identity = entry.named ? identity_of(entry.resolved.endpoint)
                                          : "endpoint " + print_pattern(entry.pattern, {});
    data_->entries.push_back(std::move(entry));
    entry_places_.push_back(&json);
  }
  bool read_name(const JsonNode& name) {
    if (!expect(name, JsonNode::Type::String, "a name", report_)) return false;
    if (name.text.empty()) report_.error(name, "an empty name");
    return !name.text.empty();
  }
  const JsonNode* member_of(const JsonNode& object, std::string_view key) {
    const auto& members = object.children;
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const JsonNode* member) { return member->key == key; });
    if (found != members.end()) return *found;
    report_.error(object, "missing key " + quoted_text(key));
    return nullptr;
  }

  bool read_match(const JsonNode& json, EndpointPattern& pattern) {
    if (!expect(json, JsonNode::Type::Object, "an object", report_)) return false;
    if (json.children.empty()) {
      report_.error(json, "at least one key is needed: \"host\": \"*\" matches every request");
      return false;
    }
    auto good = true;
    for (const auto* const member : json.children) {
      const auto* const key = known_key(*member, match_shape(), report_);
      good = key != nullptr && read_value(*key, *member, key->field(&pattern), report_) && good;
    }
    if (good) warn_of_case(json);
    for (const auto& problem : problems_of(pattern)) {
      // A key that could not be read is no missing key.
      if (!good && problem.part.empty()) continue;
      const auto* const part = json.find(problem.part);
      report_.error(part == nullptr ? json : *part, problem.message);
      good = false;
    }
    return good;
  }

  // Methods are what they are, letter for letter; but nobody means another one than GET by "get".
  void warn_of_case(const JsonNode& match) {
    const auto* const methods = match.find("methods");
    if (methods == nullptr) return;
    constexpr std::array<std::string_view, 7> kUsual{"GET",   "HEAD",   "POST",   "PUT",
                                                     "PATCH", "DELETE", "OPTIONS"};
    for (const auto* const method : methods->children) {
      for (const auto usual : kUsual) {
        if (method->text == usual || !equal_ignoring_case(method->text, usual)) continue;
        report_.warn(*method, described(*method) + " is not " + std::string(usual) +
                                  ": methods are matched as they are spelled");
      }
    }
  }

  // Budgets of scope "endpoint" go by the name.
  void warn_of_twin(const JsonNode& name) {
    const auto [known, fresh] = endpoint_names_.emplace(name.text, &name);
    if (fresh) return;
    report_.warn(name, "the name of " + pointer_to(*known->second->parent) +
                           ", too: reports do not tell them apart, and they share a budget of "
                           "scope \"endpoint\"");
  }

  void find_ties() {
    std::vector<EndpointPattern> patterns;
    for (const auto& entry : data_->entries) patterns.push_back(entry.pattern);
    data_->index = EndpointIndex(patterns);
    for (const auto& tie : data_->index.ties()) {
      const auto& earlier = *entry_places_[tie.earlier];
      report_.error(*entry_places_[tie.later],
                    "matches the same requests as " + pointer_to(earlier) + " (" +
                        source_.at(earlier) + ") and is equally specific");
    }
  }

  void warn_unused() {
    for (const auto* const named : in_order_) {
      if (named->used || (!named->extended && named->extends == nullptr)) continue;
      report_.warn(*named->json, "no endpoint uses this policy, nor does the default");
    }
  }

  std::shared_ptr<PolicySet::Data> finished() {
    for (auto* const named : in_order_) data_->policies.push_back(std::move(named->resolved));
    return data_;
  }

  const JsonNode& root_;
  Problems& report_;
  Source source_;
  ValuePool values_;
  std::map<std::string_view, Named> policies_;
  std::vector<Named*> in_order_;
  std::vector<std::string_view> names_;
  std::vector<const JsonNode*> entry_places_;
  std::map<std::string_view, const JsonNode*> endpoint_names_;
  std::shared_ptr<PolicySet::Data> data_ = std::make_shared<PolicySet::Data>();
};

}  // namespace

ResolvedPolicy resolved_preset(std::string_view name) {
  Problems report("preset " + std::string(name));
  const auto& json = *preset_json(name);
  auto layered = built_in();
  lay_preset_over(layered, json, preset_source(name));
  ResolvedPolicy resolved;
  resolved.policy = read_policy(layered, json, report);
  resolved.preset = name;
  resolved.source = report.file();
  ValuePool pool;
  resolved.values = values_of(layered, pool);
  return resolved;
}

const ResolvedPolicy& standard() {
  static const auto* const resolved = [] {
    auto* const made = new ResolvedPolicy(resolved_preset("standard"));
    made->source = "built in";
    ValuePool pool;
    made->values = values_of(built_in(), pool);
    return made;
  }();
  return *resolved;
}

}  // namespace policy_file

CheckedPolicies check_policies(std::string_view json, std::string_view file_name) {
  CheckedPolicies checked;
  Problems report{std::string(file_name)};
  JsonTree document;
  read_json(json, document, report);
  std::shared_ptr<PolicySet::Data> data;
  if (document.root != nullptr) data = policy_file::Loader(*document.root, report).load();
  const auto good = data != nullptr && !report.failed();
  checked.problems = report.take();
  if (good) {
    data->warnings = checked.problems;
    checked.set.emplace(std::shared_ptr<const PolicySet::Data>(std::move(data)));
  }
  return checked;
}

}  // namespace httpretry
