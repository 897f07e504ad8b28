#include "lib/policy/layers.hpp"

#include "lib/policy/values.hpp"

#include <httpretry/retry/presets.hpp>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace httpretry::policy_file {
namespace {

const Key* key_for(const Shape& shape, std::string_view name, Mask kind) {
  const auto found = std::find_if(shape.keys.begin(), shape.keys.end(), [&](const Key& key) {
    return key.name == name && (key.kinds & kind) != 0;
  });
  return found == shape.keys.end() ? nullptr : &*found;
}

Mask word_mask(const JsonNode* json, Words words) {
  if (json == nullptr) return kAll;
  const auto found = std::find(words.begin(), words.end(), json->text);
  return found == words.end() ? kAll : Mask{1} << static_cast<unsigned>(found - words.begin());
}

std::string not_of_kind(std::string_view key, const JsonNode& kind) {
  return quoted_text(key) + " does not belong to kind " + described(kind);
}

bool check_member(const JsonNode& member, const Key& key, Problems& report) {
  if (member.is(JsonNode::Type::Null) && key.nullable) return true;
  switch (key.form) {
    case Form::Name:
      if (!expect(member, JsonNode::Type::String, "a name", report)) return false;
      if (!member.text.empty()) return true;
      report.error(member, "an empty name");
      return false;
    case Form::ObjectOrNone:
      if (member.is(JsonNode::Type::String) && member.text == "none") return true;
      return expect(member, JsonNode::Type::Object, "an object or \"none\"", report) &&
             check_object(member, *key.shape, report);
    case Form::Object:
      return expect(member, JsonNode::Type::Object, "an object", report) &&
             check_object(member, *key.shape, report);
    default: return read_value(key, member, nullptr, report);
  }
}

Layered& find_or_add(Layered& object, std::string_view key) {
  auto& members = object.members;
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Layered& one) { return one.key == key; });
  if (found != members.end()) return *found;
  members.emplace_back().key = key;
  return members.back();
}

bool is_object(const Layered& layered) {
  return layered.json != nullptr && layered.json->is(JsonNode::Type::Object);
}

const Source& built_in_source() {
  static const auto* const source = new Source{"built in", false, nullptr};
  return *source;
}

// JSON of ours. It lives as long as the program, for policies point into it.
const JsonTree* compiled_in(std::string_view text) {
  auto* const document = new JsonTree;
  Problems report("compiled in");
  read_json(text, *document, report);
  if (report.failed()) throw std::logic_error(to_string(report.take().front()));
  return document;
}

const JsonNode& base_of(const Shape& shape) {
  static const auto* const pending = compiled_in(shape.base);  // no other shape has one
  return *pending->root;
}

struct LoadedPreset {
  const JsonTree* document;
  Source source;
};
const std::map<std::string_view, LoadedPreset>& loaded_presets() {
  static const auto* const all = [] {
    auto* const loaded = new std::map<std::string_view, LoadedPreset>;
    for (const auto& preset : presets()) {
      const auto* const document = compiled_in(preset.json);
      Problems report("preset " + std::string(preset.name));
      if (!check_object(*document->root, policy_shape(), report)) {
        throw std::logic_error(to_string(report.take().front()));
      }
      loaded->emplace(preset.name, LoadedPreset{document, {report.file(), false, nullptr}});
    }
    return loaded;
  }();
  return *all;
}

}  // namespace

std::string Source::at(const JsonNode& json) const {
  if (!positions) return text;
  return text + ":" + std::to_string(json.position.line) + ":" +
         std::to_string(json.position.column);
}

const Layered* Layered::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Layered& one) { return one.key == name; });
  return found == members.end() ? nullptr : &*found;
}

bool check_object(const JsonNode& object, const Shape& shape, Problems& report) {
  const auto* const kind = shape.kinds.empty() ? nullptr : object.find("kind");
  const auto kinds = word_mask(kind, shape.kinds);
  auto good = true;
  for (const auto* const member : object.children) {
    if (member->bad) good = false;
    if (known_key(*member, shape, report) == nullptr) {
      good = false;
    } else if (const auto* const key = key_for(shape, member->key, kinds)) {
      good = check_member(*member, *key, report) && good;
    } else {
      report.error_at_key(*member, not_of_kind(member->key, *kind));
      good = false;
    }
  }
  if (!good && shape.whole) object.bad = true;
  return good;
}

namespace {

void lay(Layered& below, const JsonNode& object, const Shape& shape, const Source& source,
         bool keep_written) {
  below.json = &object;
  below.source = &source;
  for (const auto* const member : object.children) {
    const auto* const key = shape.find(member->key);
    if (key == nullptr || key->form == Form::Name || member->is(JsonNode::Type::Null)) continue;
    auto& value = find_or_add(below, key->name);
    if (member->bad) {
      value.doubtful = true;
      if (value.json == nullptr) below.members.pop_back();
      continue;
    }
    if (keep_written && value.json != nullptr && !is_object(value) && value.source->positions) {
      continue;
    }
    if (key->shape == nullptr || !member->is(JsonNode::Type::Object)) {
      value = Layered{key->name, member, &source, false, {}};
      continue;
    }
    const auto fresh = !is_object(value);
    const auto replaces = !key->shape->kinds.empty() && member->find("kind") != nullptr;
    if (fresh || replaces) value.members.clear();
    if (fresh && !key->shape->base.empty()) {
      lay(value, base_of(*key->shape), *key->shape, built_in_source(), false);
    }
    lay(value, *member, *key->shape, source, keep_written);
    if (replaces) value.doubtful = false;
  }
}

}  // namespace

void lay_over(Layered& below, const JsonNode& object, const Shape& shape, const Source& source) {
  lay(below, object, shape, source, false);
}

void lay_preset_over(Layered& below, const JsonNode& preset, const Source& source) {
  auto& members = below.members;
  members.erase(std::remove_if(members.begin(), members.end(),
                               [](const Layered& member) {
                                 const auto* const key = policy_shape().find(member.key);
                                 return key != nullptr && key->block;
                               }),
                members.end());
  lay(below, preset, policy_shape(), source, true);
}

const Layered& built_in() {
  static const auto* const standard = [] {
    auto* const layered = new Layered;
    lay_over(*layered, *preset_json("standard"), policy_shape(), built_in_source());
    return layered;
  }();
  return *standard;
}

const JsonNode* preset_json(std::string_view name) {
  const auto found = loaded_presets().find(name);
  return found == loaded_presets().end() ? nullptr : &*found->second.document->root;
}

const Source& preset_source(std::string_view name) { return loaded_presets().at(name).source; }

std::string near_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& preset : presets()) names.push_back(preset.name);
  return did_you_mean(name, names);
}

namespace {

// Whether a key counts, in an object of that kind and jitter.
struct Traits {
  Mask kind = kAll;
  Mask jitter = kAll;

  [[nodiscard]] bool have(const Key& key) const {
    return (key.kinds & kind) != 0 && (key.jitters & jitter) != 0;
  }
};

Traits traits_of(const Layered& object, const Shape& shape) {
  const auto mask = [&](std::string_view name, Words words) {
    const auto* const member = words.empty() ? nullptr : object.find(name);
    return word_mask(member == nullptr ? nullptr : member->json, words);
  };
  Traits traits{mask("kind", shape.kinds), mask("jitter", shape.jitters)};
  // Left out, jitter is full: none of those that need a key of their own.
  if (!shape.jitters.empty() && object.find("jitter") == nullptr) {
    traits.jitter = Mask{1} << static_cast<unsigned>(Backoff::Jitter::Full);
  }
  return traits;
}

// The value of `key` where it is left out, as a file would have it.
JsonNode fallback_of(const Key& key) {
  JsonNode json;
  const auto text = key.fallback;
  if (text.front() == '"') {
    json.type = JsonNode::Type::String;
    json.text = text.substr(1, text.size() - 2);
  } else if (text == "true" || text == "false") {
    json.type = JsonNode::Type::Boolean;
    json.boolean = text == "true";
  } else {
    json.type = JsonNode::Type::Number;
    json.text = text;
  }
  return json;
}

class PolicyReader {
 public:
  PolicyReader(const JsonNode& policy, Problems& report) : policy_(policy), report_(report) {}

  void object(const Layered& layered, const Shape& shape, void* target) {
    const auto traits = traits_of(layered, shape);
    const auto* const kind = shape.kinds.empty() ? nullptr : layered.find("kind");
    if (!shape.kinds.empty() && kind == nullptr) {
      report_.error(place_of(layered), "missing key \"kind\"");
      return;
    }
    for (const auto& member : layered.members) {
      if (key_for(shape, member.key, traits.kind) != nullptr) continue;
      report_.error(place_of(member), not_of_kind(member.key, *kind->json));
    }
    for (const auto& key : shape.keys) {
      if (traits.have(key) && key.field != nullptr) value(layered, shape, key, traits, target);
    }
  }

 private:
  void value(const Layered& object_of_key, const Shape& shape, const Key& key, const Traits& traits,
             void* target) {
    const auto* const layered = object_of_key.find(key.name);
    if (key.shape != nullptr) {
      if (layered != nullptr && is_object(*layered))
        object(*layered, *key.shape, key.field(target));
    } else if (layered != nullptr) {
      read_value(key, *layered->json, key.field(target), report_);
    } else if ((key.required & traits.kind) != 0) {
      report_.error(place_of(object_of_key), "missing key " + quoted_text(key.name));
    } else if (const auto* const other = shape.find(key.fallback)) {
      read_value(key, *given(object_of_key, *other), key.field(target), report_);
    } else if (!key.fallback.empty()) {
      read_value(key, fallback_of(key), key.field(target), report_);
    }
  }
  // The value of a key that others fall back on.
  const JsonNode* given(const Layered& object_of_key, const Key& key) {
    const auto* const layered = object_of_key.find(key.name);
    if (layered != nullptr) return layered->json;
    fallback_ = fallback_of(key);
    return &fallback_;
  }
  [[nodiscard]] const JsonNode& place_of(const Layered& layered) const {
    if (layered.source == nullptr) return policy_;
    const auto said = layered.source->positions || is_within(*layered.json, policy_);
    return said ? *layered.json : policy_;
  }

  const JsonNode& policy_;
  Problems& report_;
  JsonNode fallback_;
};

class ValueList {
 public:
  explicit ValueList(ValuePool& pool) : pool_(pool) {}

  void add(const Layered& layered, const Shape& shape, const Key* parent,
           const std::string& prefix) {
    const auto traits = traits_of(layered, shape);
    for (const auto& key : shape.keys) {
      if (!traits.have(key) || key.field == nullptr) continue;
      const auto* const member = layered.find(key.name);
      if (member != nullptr && key.shape != nullptr && is_object(*member)) {
        add(*member, *key.shape, &key, prefix + std::string(key.name) + ".");
        continue;
      }
      const auto* const written = member != nullptr ? member : layered.find(key.fallback);
      const ValuePool::Origin origin{parent, &key, written == nullptr ? nullptr : written->json,
                                     member == nullptr ? nullptr : member->source};
      auto& value = pool_.at(origin);
      if (!value) value = made(origin, shape, prefix);
      values_.push_back(value);
    }
  }
  [[nodiscard]] PolicyValues take() {
    values_.shrink_to_fit();
    return PolicyValues(std::move(values_));
  }

 private:
  static std::shared_ptr<const PolicyValue> made(const ValuePool::Origin& origin,
                                                 const Shape& shape, const std::string& prefix) {
    auto value = std::make_shared<PolicyValue>();
    value->key = prefix + std::string(origin.key->name);
    const auto* const source = origin.source;
    const auto* const before = source == nullptr || source->resolved == nullptr
                                   ? nullptr
                                   : source->resolved->find(value->key);
    if (before != nullptr) {
      value->json = before->json;
      value->source = before->source;
      return value;
    }
    value->json = origin.json == nullptr ? left_out(*origin.key, shape) : compact(*origin.json);
    value->source = source == nullptr ? "built in" : source->at(*origin.json);
    return value;
  }
  static std::string left_out(const Key& key, const Shape& shape) {
    const auto* const same = shape.find(key.fallback);
    const auto text = same == nullptr ? key.fallback : same->fallback;
    return text.empty() ? "null" : std::string(text);
  }

  ValuePool& pool_;
  PolicyValues::Shared values_;
};

}  // namespace

std::shared_ptr<const RetryPolicy> read_policy(const Layered& layered, const JsonNode& policy,
                                               Problems& report) {
  auto result = std::make_shared<RetryPolicy>();
  result->throttle_backoff.reset();
  result->budget = {};
  PolicyReader(policy, report).object(layered, policy_shape(), result.get());
  return result;
}

std::size_t ValuePool::Hash::operator()(const Origin& origin) const {
  const std::hash<const void*> hash;
  return ((hash(origin.parent) * 31 + hash(origin.key)) * 31 + hash(origin.json)) * 31 +
         hash(origin.source);
}

PolicyValues values_of(const Layered& layered, ValuePool& pool) {
  ValueList values(pool);
  values.add(layered, policy_shape(), nullptr, {});
  return values.take();
}

}  // namespace httpretry::policy_file
