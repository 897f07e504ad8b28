// Merges the layers of a policy, and reads its values with their sources.
#include "policy_set_data.hpp"

#include <httpretry/policy/presets.hpp>

#include <algorithm>
#include <map>

namespace httpretry {
namespace detail::policy_file {
namespace {

Layered& find_or_add(Layered& object, std::string_view key) {
  if (const auto* const found = object.find(key)) return const_cast<Layered&>(*found);
  object.members.emplace_back().key = key;
  return object.members.back();
}

bool is_object(const Layered& layered) {
  return layered.json != nullptr && layered.json->is(JsonNode::Type::Object);
}

const LayerOrigin& built_in_origin() {
  static const auto* const origin = new LayerOrigin{.text = "built in"};
  return *origin;
}

// Returns the kind and the jitter of an object, which select its keys.
Traits traits_of(const Layered& object, const Shape& shape) {
  const auto* const kind = object.find("kind");
  const auto* const jitter = object.find("jitter");
  // Without `jitter`, it is "full", which has no further keys.
  return {mask_of(shape.kinds, kind == nullptr ? "" : kind->json->text),
          mask_of(shape.jitters, jitter == nullptr ? "full" : jitter->json->text)};
}

// Drops built-in values that do not belong to the kind of the object (the value of its key "kind",
// such as "exponential"). Values that a file states stay, and PolicyReader reports them.
void drop_of_other_kinds(Layered& object, const Shape& shape) {
  const auto traits = traits_of(object, shape);
  std::erase_if(object.members, [&](const Layered& member) {
    return member.origin == &built_in_origin() && shape.find(member.key, traits.kind) == nullptr;
  });
}

// Merges the object `member` of a layer into `value`. If the object states its kind or a preset, it
// replaces the value below. Otherwise the keys that it leaves out keep their values.
void merge_object(Layered& value, const JsonNode& member, const Shape& shape,
                  const LayerOrigin& origin, FileValues file_values) {
  const bool states_kind = shape.kinds.size() > 0 && member.find("kind") != nullptr;
  const auto* const preset = shape.preset == nullptr ? nullptr : member.find("preset");
  const bool replaces = !is_object(value) || states_kind || preset != nullptr;
  const bool has_base = replaces && shape.base != nullptr;
  if (replaces) value.members.clear();
  if (has_base) merge_layer(value, shape.base(), shape, built_in_origin());
  if (preset != nullptr && !preset->has_error) {
    const auto& loaded = shape.preset(preset->text);
    merge_layer(value, *loaded.tree->root, shape, loaded.origin);
  }
  merge_layer(value, member, shape, origin, file_values);
  if (has_base) drop_of_other_kinds(value, shape);
  if (states_kind) value.doubtful = false;  // a wrong value in a layer below is replaced as well
}

// Returns the suggestion for the name of a preset that does not exist, or "": the most similar one,
// or all that contain the name, because "aws" and "aws-standard" differ too much for did_you_mean.
std::string near_preset(std::string_view name) {
  std::vector<std::string_view> names;
  std::string containing;
  for (const auto& preset : presets()) {
    names.push_back(preset.name);
    if (name.size() < 3 || preset.name.find(name) == std::string_view::npos) continue;
    containing += (containing.empty() ? "; did you mean " : ", ") + std::string(preset.name);
  }
  auto similar = did_you_mean(name, names);
  return !similar.empty() || containing.empty() ? similar : containing + "?";
}

// Reads the values of a policy from its layers.
struct PolicyReader {
  // Reads an object with this shape into the struct at `target`, and appends to `values`. Reports
  // keys of other kinds. `parent` is the key of the object, nullptr at the top. `prefix` is the
  // whole path to it, such as "backoff.".
  void read(const Layered& layered, const Shape& shape, void* target, const Key* parent,
            const std::string& prefix) {
    const auto traits = traits_of(layered, shape);
    const auto* const kind = layered.find("kind");
    if (shape.kinds.size() > 0 && kind == nullptr) {
      problems.error(position_of(layered), "missing key \"kind\"");
      return;
    }
    for (const auto& member : layered.members) {
      if (shape.find(member.key, traits.kind) != nullptr) continue;
      problems.error(position_of(member), not_of_kind(member.key, *kind->json, shape));
    }
    for (const auto& key : shape.keys) {
      // Other keys, such as "preset", are no values. Only the loader of the file uses them.
      const bool is_value =
          key.field != nullptr || (key.file_only && layered.find(key.name) != nullptr);
      if (!is_value || !traits.have(key)) continue;
      read_value(layered, key, target, parent, prefix);
      // Sets the defaults of this kind before the other keys are read.
      if (kind != nullptr && key.name == "kind" && shape.prepare != nullptr) shape.prepare(target);
    }
  }

  // Reads the value of one key of an object. Without a value, the field keeps its default, or gets
  // the value of the key `like`.
  void read_value(const Layered& object, const Key& key, void* target, const Key* parent,
                  const std::string& prefix) {
    const auto* const stated = object.find(key.name);
    const auto* const layered = stated != nullptr ? stated : object.find(key.like);
    auto* const field = key.field == nullptr ? kCheckOnly : key.field(target);
    if (layered == nullptr) {
      if (key.required) {
        problems.error(position_of(object), "missing key " + quoted_text(key.name));
      }
    } else if (key.type->shape() != nullptr && layered->json->is(JsonNode::Type::Object)) {
      const auto& inner = static_cast<const ObjectType&>(*key.type);  // only these have a shape
      read(*layered, *inner.shape(), inner.reset(field), &key,
           prefix + std::string(key.name) + ".");
      return;
    } else {
      key.type->read(*layered->json, field, problems);
    }
    const ValueSource source{parent, &key, layered == nullptr ? nullptr : layered->json,
                             stated == nullptr ? nullptr : stated->origin};
    auto& value = pool[source];
    if (!value) value = make_value(source, field, prefix);
    values.push_back(value);
  }

  // Returns the value of a key with its source. A value of an earlier resolved policy keeps its
  // source. `field` has the value if no layer states it.
  static std::shared_ptr<const PolicyValue> make_value(const ValueSource& source, const void* field,
                                                       const std::string& prefix) {
    const auto& [parent, key, json, origin] = source;
    auto value = std::make_shared<PolicyValue>();
    value->key = prefix + std::string(key->name);
    if (origin != nullptr && origin->resolved != nullptr) {
      const auto* const earlier = origin->resolved->find(value->key);
      if (earlier != nullptr) return std::make_shared<const PolicyValue>(*earlier);
    }
    value->json = json == nullptr ? key->type->write(field).dump() : compact(*json);
    value->source = origin == nullptr ? "built in" : origin->at(*json);
    return value;
  }

  // Returns the value at which to report a problem: the value itself if a file or the top layer
  // states it, otherwise the policy.
  [[nodiscard]] const JsonNode& position_of(const Layered& layered) const {
    if (layered.origin == nullptr) return policy;
    const auto known = layered.origin->is_file || is_within(*layered.json, policy);
    return known ? *layered.json : policy;
  }

  const JsonNode& policy;
  Problems& problems;
  ValuePool& pool;
  PolicyValues::Shared values{};
};

// Returns the place that states a block: the JSON pointer of the policy, or the name of a preset or
// command line. Returns "" if the block is built in or comes from an earlier resolved policy.
std::string place_of(const Layered& policy, std::string_view block) {
  const auto* const layered = policy.find(block);
  // Only a list of rates is an array.
  if (layered == nullptr || !(is_object(*layered) || layered->json->is(JsonNode::Type::Array))) {
    return {};
  }
  const auto& origin = *layered->origin;
  if (origin.is_file) return pointer_to(*layered->json->parent);
  const bool stated = origin.resolved == nullptr && &origin != &built_in_origin();
  return stated ? origin.text : std::string();
}

}  // namespace

// Returns the names by which calls share the state of a policy's blocks, or nullptr if no block has
// one. A block that no layer states keeps its name in `before`, which may be nullptr.
std::shared_ptr<const GuardNames> guard_names_of(const Layered& policy,
                                                 const std::shared_ptr<const GuardNames>& before) {
  GuardNames names;
  const auto set_name = [&](std::string GuardNames::*member, std::string_view block) {
    names.*member = place_of(policy, block);
    if ((names.*member).empty() && before) names.*member = *before.*member;
  };
  set_name(&GuardNames::pause, "pause");
  set_name(&GuardNames::rate, "rate");
  set_name(&GuardNames::concurrency, "concurrency");
  set_name(&GuardNames::breaker, "breaker");
  set_name(&GuardNames::hedge, "hedge");
  return names == GuardNames() ? nullptr : std::make_shared<const GuardNames>(std::move(names));
}

// Callers keep the pointer to the tree. With only a pointer to its root, LeakSanitizer would report
// a leak.
const JsonTree* tree_of(const OrderedJson& json) {
  auto* const tree = new JsonTree;
  tree->root = &tree->add(json);
  return tree;
}

std::string LayerOrigin::at(const JsonNode& json) const {
  if (!is_file) return text;
  return text + ":" + std::to_string(json.position.line) + ":" +
         std::to_string(json.position.column);
}

const Layered* Layered::find(std::string_view name) const {
  const auto found = std::ranges::find(members, name, &Layered::key);
  return found == members.end() ? nullptr : &*found;
}

// Merges a layer of a policy, such as a preset or a policy of the file, into the layers below. Each
// member of `object` replaces the value with the same key, and members that are objects are merged
// in the same way. Each value remembers the `origin` of its layer. read_members has already checked
// the members and reported all problems. With FileValues::Keep, values that a file states stay.
void merge_layer(Layered& below, const JsonNode& object, const Shape& shape,
                 const LayerOrigin& origin, FileValues file_values) {
  below.json = &object;
  below.origin = &origin;
  for (const auto* const member : object.children) {
    const auto* const key = shape.find(member->key);
    // Leaves out unknown keys, keys such as "preset" that are no value of a policy, and null, which
    // selects the value of the layer below.
    const bool is_value = key != nullptr && (key->field != nullptr || key->file_only);
    if (!is_value || member->is(JsonNode::Type::Null)) continue;
    auto& value = find_or_add(below, key->name);
    const bool is_new = value.json == nullptr;
    if (member->has_error) {
      // The member is left out. The value that it should have replaced is not checked further.
      value.doubtful = true;
      if (is_new) below.members.pop_back();  // no layer below has a value; find_or_add added this
      continue;
    }
    // An object does not stay as a whole. merge_object decides about each of its values.
    const bool may_stay = file_values == FileValues::Keep && !is_new && !is_object(value);
    if (may_stay && value.origin->is_file) continue;
    const auto* const inner = key->type->shape();  // nullptr if the value is never an object
    if (inner == nullptr || !member->is(JsonNode::Type::Object)) {
      value = Layered{.key = key->name, .json = member, .origin = &origin};
    } else {
      merge_object(value, *member, *inner, origin, file_values);
    }
  }
}

// Merges a preset into the layers below: the built-in values, and the policies that the policy
// extends. First drops the values that presets decide, such as "backoff" (`block`), because a
// preset replaces them even if it does not state them. Of the other values, such as timeouts, those
// that a file states take precedence.
void merge_preset(Layered& below, const JsonNode& preset, const LayerOrigin& origin) {
  std::erase_if(below.members, [](const Layered& member) {
    const auto* const key = kPolicy.find(member.key);
    return key != nullptr && key->block;
  });
  merge_layer(below, preset, kPolicy, origin, FileValues::Keep);
}

const Layered& built_in() {
  static const RetryPolicy policy;
  static const auto* const tree = tree_of(write_object(kPolicy, &policy));
  static const auto* const standard = [] {
    auto* const layered = new Layered;
    merge_layer(*layered, *tree->root, kPolicy, built_in_origin());
    return layered;
  }();
  return *standard;
}

LoadedPreset load_preset(std::string_view name, std::string_view json) {
  return {tree_of(OrderedJson::parse(json)), {.text = "preset " + std::string(name)}};
}

const LoadedPreset* loaded_preset(std::string_view name) {
  static const auto* const all = [] {
    auto* const loaded = new std::map<std::string_view, LoadedPreset>;
    for (const auto& preset : presets()) {
      loaded->emplace(preset.name, load_preset(preset.name, preset.json));
    }
    return loaded;
  }();
  const auto found = all->find(name);
  return found == all->end() ? nullptr : &found->second;
}

const LoadedPreset* preset_of(const JsonNode& policy, Problems& problems) {
  const auto* const name = policy.find("preset");
  if (name == nullptr || !name->is(JsonNode::Type::String) || name->text.empty()) return nullptr;
  const auto* const preset = loaded_preset(name->text);
  if (preset == nullptr) {
    problems.error(*name, "there is no preset " + described(*name) + near_preset(name->text));
  }
  return preset;
}

// Reads a policy and all its values from its layers. Reports problems at `policy`, the top layer,
// if they have no position.
ResolvedPolicy read_policy(const Layered& layered, const JsonNode& policy, Problems& problems,
                           ValuePool& pool) {
  auto values = std::make_shared<RetryPolicy>();
  PolicyReader reader{policy, problems, pool};
  reader.read(layered, kPolicy, values.get(), /*parent=*/nullptr, /*prefix=*/"");
  ResolvedPolicy resolved;
  resolved.policy = std::move(values);
  reader.values.shrink_to_fit();
  resolved.values = PolicyValues(std::move(reader.values));
  resolved.guard_names = guard_names_of(layered, /*before=*/nullptr);
  return resolved;
}

const ResolvedPolicy& standard() {
  static const auto* const resolved = [] {
    Problems problems("built in");
    ValuePool pool;
    auto policy = new ResolvedPolicy(read_policy(built_in(), *built_in().json, problems, pool));
    policy->preset = "standard";
    policy->source = "built in";
    return policy;
  }();
  return *resolved;
}

}  // namespace detail::policy_file

// Returns the policy of a preset, or an error if there is no preset with this name. The error
// suggests a similar name.
Result<ResolvedPolicy> resolve_preset(std::string_view name) {
  using namespace policy_file;
  const auto* const preset = loaded_preset(name);
  if (preset == nullptr) {
    return Error(Errc::InvalidRequest,
                 "there is no preset " + quoted_text(name) + near_preset(name));
  }
  Problems problems(preset->origin.text);  // stays empty, because presets are valid
  ValuePool pool;
  auto layered = built_in();
  merge_preset(layered, *preset->tree->root, preset->origin);
  auto resolved = read_policy(layered, *preset->tree->root, problems, pool);
  resolved.preset = name;
  resolved.source = preset->origin.text;
  return resolved;
}

}  // namespace httpretry
