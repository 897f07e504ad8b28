#include "lib/policy/layers.hpp"

#include <httpretry/policy/presets.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace httpretry::policy_file {
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
  static const auto* const origin = new LayerOrigin{"built in", false, nullptr};
  return *origin;
}

// Trees of what is built in live as long as the program. Each is held by its own pointer: one to
// its root alone would look like a leak.
const JsonTree* tree_of(const OrderedJson& json) {
  auto* const tree = new JsonTree;
  tree->root = &tree->add(json);
  return tree;
}

const JsonNode& base_of(const Shape& shape) {
  static const auto* const tree = tree_of(shape.base());  // no other shape has one
  return *tree->root;
}

void lay(Layered& below, const JsonNode& object, const Shape& shape, const LayerOrigin& origin,
         bool keep_written);

void lay_object(Layered& value, const JsonNode& member, const Shape& shape,
                const LayerOrigin& origin, bool keep_written) {
  const auto fresh = !is_object(value);
  const auto replaces = shape.kinds.size() > 0 && member.find("kind") != nullptr;
  if (fresh || replaces) value.members.clear();
  if (fresh && shape.base != nullptr) lay(value, base_of(shape), shape, built_in_origin(), false);
  lay(value, member, shape, origin, keep_written);
  if (replaces) value.doubtful = false;
}

void lay(Layered& below, const JsonNode& object, const Shape& shape, const LayerOrigin& origin,
         bool keep_written) {
  below.json = &object;
  below.origin = &origin;
  for (const auto* const member : object.children) {
    const auto* const key = shape.find(member->key);
    if (key == nullptr || key->field == nullptr || member->is(JsonNode::Type::Null)) continue;
    auto& value = find_or_add(below, key->name);
    if (member->bad) {
      value.doubtful = true;
      if (value.json == nullptr) below.members.pop_back();
      continue;
    }
    if (keep_written && value.json != nullptr && !is_object(value) && value.origin->positions) {
      continue;
    }
    const auto* const inner = key->type->shape();
    if (inner == nullptr || !member->is(JsonNode::Type::Object)) {
      value = Layered{key->name, member, &origin, false, {}};
    } else {
      lay_object(value, *member, *inner, origin, keep_written);
    }
  }
}

LoadedPreset load(const Preset& preset) {
  auto* const tree = new JsonTree;
  Problems problems("preset " + std::string(preset.name));
  read_json(preset.json, *tree, problems);
  if (tree->root != nullptr) read_members(*tree->root, policy_shape(), nullptr, problems);
  if (problems.failed()) throw std::logic_error(error_lines(problems.take()));
  return {tree, {problems.file(), false, nullptr}};
}

}  // namespace

std::string LayerOrigin::at(const JsonNode& json) const {
  if (!positions) return text;
  return text + ":" + std::to_string(json.position.line) + ":" +
         std::to_string(json.position.column);
}

const Layered* Layered::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Layered& one) { return one.key == name; });
  return found == members.end() ? nullptr : &*found;
}

void lay_over(Layered& below, const JsonNode& object, const Shape& shape,
              const LayerOrigin& origin) {
  lay(below, object, shape, origin, false);
}

void lay_preset_over(Layered& below, const JsonNode& preset, const LayerOrigin& origin) {
  std::erase_if(below.members, [](const Layered& member) {
    const auto* const key = policy_shape().find(member.key);
    return key != nullptr && key->block;
  });
  lay(below, preset, policy_shape(), origin, true);
}

const Layered& built_in() {
  static const auto* const tree = [] {
    const RetryPolicy policy;
    return tree_of(write_object(policy_shape(), &policy));
  }();
  static const auto* const standard = [] {
    auto* const layered = new Layered;
    lay_over(*layered, *tree->root, policy_shape(), built_in_origin());
    return layered;
  }();
  return *standard;
}

const LoadedPreset* loaded_preset(std::string_view name) {
  static const auto* const all = [] {
    auto* const loaded = new std::map<std::string_view, LoadedPreset>;
    for (const auto& preset : presets()) loaded->emplace(preset.name, load(preset));
    return loaded;
  }();
  const auto found = all->find(name);
  return found == all->end() ? nullptr : &found->second;
}

std::string near_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& preset : presets()) names.push_back(preset.name);
  return did_you_mean(name, names);
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

}  // namespace httpretry::policy_file
