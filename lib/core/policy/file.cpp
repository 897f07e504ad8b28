// Loads a policy file: resolves its policies, indexes its endpoints, and reports all problems.
#include "policy_set_data.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace httpretry {
namespace detail::policy_file {
namespace {

using JsonType = JsonNode::Type;

// The named policies of a file. Resolves each one, and finds the policy that a reference means.
class NamedPolicies {
 public:
  explicit NamedPolicies(Problems& problems)
      : problems_(problems), origin_{.text = problems.file(), .is_file = true} {}

  // Reads the value of "policies".
  void read(const JsonNode& policies) {
    for (const auto* const json : policies.children) {
      const auto [entry, is_new] = policies_.try_emplace(json->key);
      if (!is_new) continue;  // read_json has reported the duplicate
      auto& [name, named] = *entry;
      names_.push_back(name);
      named.json = json;
      if (name.empty()) problems_.error_at_key(*json, "an empty name");
      if (!expect(*json, JsonType::Object, "a policy", problems_)) continue;
      read_members(*json, kPolicy, kCheckOnly, problems_);
      in_order_.push_back(&named);
    }
    for (auto* const named : in_order_) resolve(*named);
  }

  // Returns the policy that `json` means: the name of a policy of the file, or an object that
  // states a policy. Reports a problem if it is neither, or if no policy has the name. Then, and
  // for "standard" if the file does not define that name, returns the built-in policy.
  ResolvedPolicy find_policy(const JsonNode& json) {
    if (json.is(JsonType::String)) {
      auto* const named = named_by(json);
      if (named == nullptr) {  // "standard", or an unknown name, which named_by has reported
        auto built_in = standard();
        built_in.name = json.text;
        return built_in;
      }
      mark_used(*named);  // so that warn_of_unused does not warn of it
      return named->resolved;
    }
    if (!expect(json, JsonType::Object, "a policy's name, or a policy", problems_)) {
      return standard();
    }
    read_members(json, kPolicy, kCheckOnly, problems_);  // make_policy reads the values
    auto* const extended = extended_by(json);            // nullptr for the built-in policy
    if (extended != nullptr) mark_used(*extended);
    return make_policy(json, extended);
  }

  // Returns the default policy of a file without the key "default".
  ResolvedPolicy fallback() {
    const auto found = policies_.find("standard");
    if (found == policies_.end()) return standard();
    mark_used(found->second);
    return found->second.resolved;
  }
  // Warns of policies that no request uses. Does nothing after an error, because the part of the
  // file with the error may use a policy.
  void warn_of_unused() {
    if (problems_.failed()) return;
    for (const auto* const named : in_order_) {
      if (named->used || is_allowed(Warning::Unused, named->layered)) continue;
      problems_.warn(*named->json, "neither an endpoint nor the default uses this policy" +
                                       how_to_allow(Warning::Unused));
    }
  }

  // Moves the warnings about the values of policies out.
  auto take_warnings() { return std::move(warnings_); }

  // Moves the policies out, in the order of the file. Must be called once, after all lookups.
  std::vector<ResolvedPolicy> take() {
    std::vector<ResolvedPolicy> policies;
    for (auto* const named : in_order_) policies.push_back(std::move(named->resolved));
    return policies;
  }

  [[nodiscard]] std::string source_of(const JsonNode& json) const { return origin_.at(json); }

 private:
  struct Named {
    enum class State : std::uint8_t { New, InChain, Resolved };

    const JsonNode* json = nullptr;
    Named* extends = nullptr;  // the policy that it extends; nullptr if that is built in
    State state = State::New;
    bool used = false;
    Layered layered;
    ResolvedPolicy resolved;
  };

  // Returns the policy with this name, or nullptr. Reports a problem if there is no such policy,
  // except for "standard", which is built in.
  Named* named_by(const JsonNode& reference) {
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

  // Returns the policy of the file that this one extends, or nullptr if it extends the built-in
  // one.
  Named* extended_by(const JsonNode& policy) {
    const auto* const extends = policy.find("extends");
    const bool is_valid =
        extends != nullptr && extends->is(JsonType::String) && !extends->has_error;
    return is_valid ? named_by(*extends) : nullptr;
  }

  // Resolves a policy (merges it with the policy that it extends), and before it all policies that
  // it extends, directly or indirectly. Does not use recursion, because this chain may be as long
  // as the file. Reports a cycle.
  void resolve(Named& requested) {
    std::vector<Named*> chain;  // each extends the next one
    auto* named = &requested;
    // Ends after a policy that extends the built-in one (nullptr), or at one that is resolved
    // already or is in the chain.
    while (named != nullptr && named->state == Named::State::New) {
      named->state = Named::State::InChain;
      named->extends = extended_by(*named->json);
      chain.push_back(named);
      named = named->extends;
    }
    const bool is_cycle = named != nullptr && named->state == Named::State::InChain;
    if (is_cycle) report_cycle(chain, named);
    // From the end, because a policy must be resolved before those that extend it. resolve_one sets
    // the state to Resolved. In a cycle, it lets the last policy extend the built-in one.
    for (auto next = chain.rbegin(); next != chain.rend(); ++next) resolve_one(**next);
  }

  // Resolves a policy. The policy that it extends is resolved, except in a cycle, where the
  // built-in policy is used instead.
  void resolve_one(Named& named) {
    const auto* extended = named.extends;
    if (extended != nullptr && extended->state != Named::State::Resolved) extended = nullptr;
    named.state = Named::State::Resolved;
    if (!named.json->is(JsonType::Object)) return;  // which `read` has reported
    named.resolved = make_policy(*named.json, extended, &named.layered);
    named.resolved.name = named.json->key;
  }

  // Reports the policies of `chain` from `first` on, the last of which extends `first`.
  void report_cycle(const std::vector<Named*>& chain, const Named* first) {
    std::string cycle;
    for (auto named = std::ranges::find(chain, first); named != chain.end(); ++named) {
      cycle += quoted_text((*named)->json->key) + " -> ";
    }
    problems_.error(*first->json->find("extends"),
                    "extends forms a cycle: " + one_line(cycle + quoted_text(first->json->key)));
  }

  // Merges the preset and the keys of `policy` into the policy that it extends, or into the
  // built-in one if `extended` is nullptr. Also stores the merged layers in `output`.
  ResolvedPolicy make_policy(const JsonNode& policy, const Named* extended,
                             Layered* output = nullptr) {
    auto layered = extended == nullptr ? built_in() : extended->layered;
    const auto* const preset = preset_of(policy, problems_);
    if (preset != nullptr) merge_preset(layered, *preset->tree->root, preset->origin);
    merge_layer(layered, policy, kPolicy, origin_);
    auto result = read_policy(layered, policy, problems_, values_);
    auto warnings = check_policy(layered, *result.policy, policy, problems_);
    if (!warnings.empty()) warnings_.emplace(result.policy.get(), std::move(warnings));
    const auto& inherited = extended == nullptr ? standard().preset : extended->resolved.preset;
    result.preset = preset == nullptr ? inherited : policy.find("preset")->text;
    result.source = origin_.at(policy);
    if (output != nullptr) *output = std::move(layered);
    return result;
  }

  // Marks a policy and those that it extends as used.
  void mark_used(Named& first) {
    for (auto* named = &first; named != nullptr && !named->used; named = named->extends) {
      named->used = true;
    }
  }

  Problems& problems_;
  LayerOrigin origin_;
  ValuePool values_;
  std::map<const RetryPolicy*, std::vector<Problem>> warnings_;
  std::map<std::string_view, Named> policies_;
  std::vector<Named*> in_order_;
  std::vector<std::string_view> names_;
};

// Reads the parts of a policy file in their order, and checks them against each other.
class Loader {
 public:
  Loader(const JsonNode& root, Problems& problems)
      : root_(root), problems_(problems), policies_(problems) {}

  // Reads the whole file. Returns its policies and endpoints, and sets `all_tests` to its tests.
  // Goes on after a problem, which is reported in `problems_`; the result must then not be used.
  // Returns nullptr only if the file is not an object.
  std::shared_ptr<PolicySet::Data> load(std::vector<PolicyTest>& all_tests) {
    if (!expect(root_, JsonType::Object, "an object", problems_)) return nullptr;
    read_members(root_, kFile, kCheckOnly, problems_);  // reports unknown keys and the like
    check_version();
    if (const auto* const policies = member("policies", JsonType::Object, "an object")) {
      policies_.read(*policies);
    }
    if (const auto* const endpoints = member("endpoints", JsonType::Array, "an array")) {
      for (const auto* const entry : endpoints->children) read_endpoint(*entry);
    }
    const auto* const fallback = root_.find("default");
    data_->fallback = fallback == nullptr ? policies_.fallback() : policies_.find_policy(*fallback);
    build_index();
    // Reports entries that limit the requests to one host, but count them separately.
    check_guards_of_hosts(*data_, entries_, problems_);
    policies_.warn_of_unused();  // after all calls of find_policy, which marks policies as used
    data_->policies = policies_.take();
    data_->warnings_of_policies = policies_.take_warnings();
    if (const auto* const tests = member("tests", JsonType::Array, "an array")) {
      all_tests = read_tests(*tests, *data_, problems_);
    }
    return data_;
  }

 private:
  // Returns the value of a top-level key, or nullptr if the file does not have it. Reports a value
  // of another type, and then also returns nullptr.
  const JsonNode* member(std::string_view key, JsonType type, std::string_view what) {
    const auto* const value = root_.member(key);
    return value != nullptr && expect(*value, type, what, problems_) ? value : nullptr;
  }

  void check_version() {
    const auto* const version = root_.find("version");
    if (version == nullptr) {
      problems_.error(root_, "missing key \"version\": this is version 1");
    } else if (!version->is(JsonType::Number)) {
      problems_.error(*version, "expected the number 1, found " + described(*version));
    } else if (number_in(*version) != 1.0) {
      problems_.error(*version, described(*version) + " is not a version of this format: 1");
    }
  }

  // Reads an entry of "endpoints": a pattern of requests (`match`), and the policy for them. Adds
  // the entry to the data if its pattern is valid. Otherwise reads the rest of the entry all the
  // same, to report as many problems as possible.
  void read_endpoint(const JsonNode& json) {
    // Reports wrong keys. The other keys are read all the same.
    read_object(json, kEndpoint, kCheckOnly, "an endpoint", problems_);
    if (!json.is(JsonType::Object)) return;
    PolicySet::Data::Entry entry;
    auto& resolved = entry.resolved;
    if (const auto* const name = json.member("name")) entry.named = read_name(*name);
    if (const auto* const policy = json.member("policy")) resolved = policies_.find_policy(*policy);
    const auto* const match = json.member("match");
    const bool has_pattern = match != nullptr && read_match(*match, entry.pattern);
    if (!has_pattern) return;
    entry.source = policies_.source_of(json);  // file, line and column
    // An entry without a name is called by its place, such as "/endpoints/0". That place may change
    // when the file is edited, so its pattern identifies it.
    resolved.endpoint = entry.named ? std::string(json.member("name")->text) : pointer_to(json);
    resolved.path = entry.pattern.path.value_or("");
    resolved.identity = entry.named ? identity_of(resolved.endpoint)
                                    : "endpoint " + write_object(kMatch, &entry.pattern).dump();
    // The guards that the entry itself states get its identity as their name. Inherited guards keep
    // theirs.
    name_guards(resolved, json);
    data_->entries.push_back(std::move(entry));
    entries_.push_back(&json);
  }

  // Returns whether the name is valid. Warns of a name that an earlier entry has.
  bool read_name(const JsonNode& name) {
    if (!expect(name, JsonType::String, "a name", problems_)) return false;
    if (name.text.empty()) return refuse(name, problems_, "an empty name");
    const auto [first, is_new] = endpoint_names_.emplace(name.text, &name);
    if (!is_new) {
      problems_.warn(
          name,
          "also the name of " + pointer_to(*first->second->parent) +
              ": reports do not tell them apart, and they share a budget of scope \"endpoint\"");
    }
    return true;
  }

  // Reads the value of "match" into `pattern`. Returns false and reports problems if it is wrong.
  bool read_match(const JsonNode& json, EndpointPattern& pattern) {
    if (!expect(json, JsonType::Object, "an object", problems_)) return false;
    if (json.children.empty()) {
      return refuse(json, problems_,
                    "at least one key is needed: \"host\": \"*\" matches every request");
    }
    auto is_valid = read_members(json, kMatch, &pattern, problems_);
    if (is_valid) warn_of_method_case(json);
    for (const auto& problem : problems_of(pattern)) {
      // problems_of returns an empty part only for a pattern without keys. If they are missing
      // because they could not be read, that was reported.
      if (!is_valid && problem.part.empty()) continue;
      const auto* const part = json.find(problem.part);
      problems_.error(part == nullptr ? json : *part, problem.message);
      is_valid = false;
    }
    return is_valid;
  }

  // Warns of a method such as "get". Methods are case-sensitive, but the user means GET.
  void warn_of_method_case(const JsonNode& match) {
    const auto* const methods = match.find("methods");
    if (methods == nullptr) return;
    constexpr std::string_view kUsual[] = {"GET",   "HEAD",   "POST",   "PUT",
                                           "PATCH", "DELETE", "OPTIONS"};
    for (const auto* const method : methods->children) {
      for (const auto usual : kUsual) {
        if (method->text == usual || !equal_ignoring_case(method->text, usual)) continue;
        problems_.warn(*method, described(*method) + " is not " + std::string(usual) +
                                    ": methods are matched as they are spelled");
      }
    }
  }

  // Builds the index of the entries, and reports entries that are equally specific.
  void build_index() {
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
  std::vector<const JsonNode*> entries_;  // the JSON of each of data_->entries
  std::map<std::string_view, const JsonNode*> endpoint_names_;
  std::shared_ptr<PolicySet::Data> data_ = std::make_shared<PolicySet::Data>();
};

}  // namespace
}  // namespace detail::policy_file

// Reads and checks the text of a policy file. Returns all its problems, both errors and warnings,
// and its policies and tests if there is no error. `file_name` is used in the problems.
CheckedPolicies check_policies(std::string_view json, std::string_view file_name) {
  CheckedPolicies checked;
  Problems problems{std::string(file_name)};
  JsonTree tree;
  read_json(json, tree, problems);  // a syntax error is a problem, and the tree has no root then
  std::shared_ptr<PolicySet::Data> data;
  if (tree.root != nullptr) data = policy_file::Loader(*tree.root, problems).load(checked.tests);
  const bool is_valid = data != nullptr && !problems.failed();
  checked.problems = problems.take();
  if (is_valid) {
    data->warnings = checked.problems;  // none of them is an error
    checked.set = PolicySet::Data::make_set(std::move(data));
  } else {
    checked.tests.clear();  // `load` has read them in spite of the errors
  }
  return checked;
}

}  // namespace httpretry
