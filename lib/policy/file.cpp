// A policy file: its policies resolved, its endpoints indexed, and all that is wrong with it.
#include "lib/policy/named_policies.hpp"

#include <httpretry/http/headers.hpp>

#include <array>
#include <map>
#include <utility>

namespace httpretry {
namespace policy_file {
namespace {

using JsonType = JsonNode::Type;

class Loader {
 public:
  Loader(const JsonNode& root, Problems& problems)
      : root_(root), problems_(problems), policies_(problems) {}

  std::shared_ptr<PolicySet::Data> load() {
    if (!expect(root_, JsonType::Object, "an object", problems_)) return nullptr;
    read_members(root_, file_shape(), nullptr, problems_);
    check_header();
    if (const auto* const policies = member("policies", JsonType::Object, "an object")) {
      policies_.read(*policies);
    }
    if (const auto* const endpoints = member("endpoints", JsonType::Array, "an array")) {
      for (const auto* const entry : endpoints->children) read_endpoint(*entry);
    }
    read_default();
    find_ties();
    policies_.warn_of_unused();
    data_->policies = policies_.take();
    return data_;
  }

 private:
  const JsonNode* member(std::string_view key, JsonType type, std::string_view what) {
    const auto* const found = root_.member(key);
    return found != nullptr && expect(*found, type, what, problems_) ? found : nullptr;
  }

  void check_header() {
    member("$schema", JsonType::String, "a string");
    const auto* const version = root_.find("version");
    if (version == nullptr) {
      problems_.error(root_, "missing key \"version\": this is version 1");
    } else if (!version->is(JsonType::Number) || number_in(*version) != 1.0) {
      problems_.error(*version, described(*version) + " is not a version of this format: 1");
    }
  }

  void read_default() {
    JsonNode standard_name;
    standard_name.type = JsonType::String;
    standard_name.text = "standard";
    if (const auto* const json = root_.find("default")) {
      data_->fallback = policies_.referred(*json);
    } else if (policies_.has("standard")) {
      data_->fallback = policies_.referred(standard_name);
    } else {
      data_->fallback = standard();
    }
  }

  void read_endpoint(const JsonNode& json) {
    const auto whole = read_object(json, endpoint_shape(), nullptr, "an endpoint", problems_);
    if (!whole && !json.is(JsonType::Object)) return;
    PolicySet::Data::Entry entry;
    if (const auto* const name = json.member("name")) entry.named = read_name(*name);
    if (const auto* const policy = json.member("policy")) {
      entry.resolved = policies_.referred(*policy);
    }
    const auto* const match = json.member("match");
    const auto matches = match != nullptr && read_match(*match, entry.pattern);
    entry.resolved.endpoint = entry.named ? std::string(json.find("name")->text) : pointer_to(json);
    if (!matches) return;
    entry.resolved.identity =
        entry.named ? identity_of(entry.resolved.endpoint)
                    : "endpoint " + write_object(match_shape(), &entry.pattern).dump();
    data_->entries.push_back(std::move(entry));
    entries_.push_back(&json);
  }

  bool read_name(const JsonNode& name) {
    if (!expect(name, JsonType::String, "a name", problems_)) return false;
    if (name.text.empty()) {
      problems_.error(name, "an empty name");
      return false;
    }
    const auto [known, fresh] = endpoint_names_.emplace(name.text, &name);
    if (!fresh) {
      problems_.warn(name, "the name of " + pointer_to(*known->second->parent) +
                               ", too: reports do not tell them apart, and they share a budget of "
                               "scope \"endpoint\"");
    }
    return true;
  }

  bool read_match(const JsonNode& json, EndpointPattern& pattern) {
    if (!expect(json, JsonType::Object, "an object", problems_)) return false;
    if (json.children.empty()) {
      problems_.error(json, "at least one key is needed: \"host\": \"*\" matches every request");
      return false;
    }
    auto good = read_members(json, match_shape(), &pattern, problems_);
    if (good) warn_of_case(json);
    for (const auto& problem : problems_of(pattern)) {
      // A key that could not be read is not a missing key.
      if (!good && problem.part.empty()) continue;
      const auto* const part = json.find(problem.part);
      problems_.error(part == nullptr ? json : *part, problem.message);
      good = false;
    }
    return good;
  }

  // Methods are case-sensitive; but nobody means another method than GET by "get".
  void warn_of_case(const JsonNode& match) {
    const auto* const methods = match.find("methods");
    if (methods == nullptr) return;
    constexpr std::array<std::string_view, 7> kUsual{"GET",   "HEAD",   "POST",   "PUT",
                                                     "PATCH", "DELETE", "OPTIONS"};
    for (const auto* const method : methods->children) {
      for (const auto usual : kUsual) {
        if (method->text == usual || !equal_ignoring_case(method->text, usual)) continue;
        problems_.warn(*method, described(*method) + " is not " + std::string(usual) +
                                    ": methods are matched as they are spelled");
      }
    }
  }

  void find_ties() {
    std::vector<EndpointPattern> patterns;
    for (const auto& entry : data_->entries) patterns.push_back(entry.pattern);
    data_->index = EndpointIndex(patterns);
    for (const auto& tie : data_->index.ties()) {
      const auto& earlier = *entries_[tie.earlier];
      problems_.error(*entries_[tie.later], "matches the same requests as " + pointer_to(earlier) +
                                                " (" + policies_.source_of(earlier) +
                                                ") and is equally specific");
    }
  }

  const JsonNode& root_;
  Problems& problems_;
  NamedPolicies policies_;
  std::vector<const JsonNode*> entries_;  // of data_->entries
  std::map<std::string_view, const JsonNode*> endpoint_names_;
  std::shared_ptr<PolicySet::Data> data_ = std::make_shared<PolicySet::Data>();
};

}  // namespace

ResolvedPolicy resolved_preset(std::string_view name) {
  const auto& preset = *loaded_preset(name);
  Problems problems(preset.origin.text);
  ValuePool pool;
  auto layered = built_in();
  lay_preset_over(layered, *preset.tree->root, preset.origin);
  auto resolved = read_policy(layered, *preset.tree->root, problems, pool);
  resolved.preset = name;
  resolved.source = preset.origin.text;
  return resolved;
}

const ResolvedPolicy& standard() {
  static const auto* const resolved = [] {
    Problems problems("built in");
    ValuePool pool;
    auto* const made =
        new ResolvedPolicy(read_policy(built_in(), *built_in().json, problems, pool));
    made->preset = "standard";
    made->source = "built in";
    return made;
  }();
  return *resolved;
}

}  // namespace policy_file

CheckedPolicies check_policies(std::string_view json, std::string_view file_name) {
  CheckedPolicies checked;
  Problems problems{std::string(file_name)};
  JsonTree tree;
  read_json(json, tree, problems);
  std::shared_ptr<PolicySet::Data> data;
  if (tree.root != nullptr) data = policy_file::Loader(*tree.root, problems).load();
  const auto good = data != nullptr && !problems.failed();
  checked.problems = problems.take();
  if (good) {
    data->warnings = checked.problems;
    checked.set.emplace(std::shared_ptr<const PolicySet::Data>(std::move(data)));
  }
  return checked;
}

}  // namespace httpretry
