// From the layers of a policy to its numbers, and to the source of each value.
#include "lib/policy/layers.hpp"

#include <algorithm>

namespace httpretry::policy_file {
namespace {

Traits traits_of(const Layered& object, const Shape& shape) {
  const auto mask = [&](std::string_view name, const Words& words) {
    const auto* const member = words.size() == 0 ? nullptr : object.find(name);
    return member == nullptr ? kAll : mask_of(words, member->json->text);
  };
  Traits traits{mask("kind", shape.kinds), mask("jitter", shape.jitters)};
  // Left out, jitter is full: none of those that need a key of their own.
  if (shape.jitters.size() > 0 && object.find("jitter") == nullptr) {
    traits.jitter = mask_of(shape.jitters, "full");
  }
  return traits;
}

const ObjectType* object_type(const Key& key) {
  // Only these have a shape.
  return key.type->shape() == nullptr ? nullptr : static_cast<const ObjectType*>(key.type);
}

class PolicyReader {
 public:
  PolicyReader(const JsonNode& policy, Problems& problems) : policy_(policy), problems_(problems) {}

  void read(const Layered& layered, const Shape& shape, void* target) {
    const auto traits = traits_of(layered, shape);
    const auto* const kind = shape.kinds.size() == 0 ? nullptr : layered.find("kind");
    if (shape.kinds.size() > 0 && kind == nullptr) {
      problems_.error(position_of(layered), "missing key \"kind\"");
      return;
    }
    for (const auto& member : layered.members) {
      if (shape.find(member.key, traits.kind) != nullptr) continue;
      problems_.error(position_of(member), not_of_kind(member.key, *kind->json));
    }
    for (const auto& key : shape.keys) {
      if (key.field == nullptr || !traits.have(key)) continue;
      read_value(layered, key, target);
      if (kind != nullptr && key.name == "kind" && shape.prepare != nullptr) shape.prepare(target);
    }
  }

 private:
  void read_value(const Layered& object, const Key& key, void* target) {
    const auto* layered = object.find(key.name);
    if (layered == nullptr && !key.like.empty()) layered = object.find(key.like);
    auto* const field = key.field(target);
    const auto* const inner = object_type(key);
    if (layered == nullptr) {
      // Without the key, `target` has its default.
      if (key.required) {
        problems_.error(position_of(object), "missing key " + quoted_text(key.name));
      }
    } else if (inner != nullptr && layered->json->is(JsonNode::Type::Object)) {
      read(*layered, *inner->shape(), inner->renew(field));
    } else {
      key.type->read(*layered->json, field, problems_);
    }
  }
  [[nodiscard]] const JsonNode& position_of(const Layered& layered) const {
    if (layered.origin == nullptr) return policy_;
    const auto known = layered.origin->positions || is_within(*layered.json, policy_);
    return known ? *layered.json : policy_;
  }

  const JsonNode& policy_;
  Problems& problems_;
};

class ValueList {
 public:
  explicit ValueList(ValuePool& pool) : pool_(pool) {}

  void add(const Layered& layered, const Shape& shape, void* target, const Key* parent,
           const std::string& prefix) {
    const auto traits = traits_of(layered, shape);
    for (const auto& key : shape.keys) {
      if (key.field == nullptr || !traits.have(key)) continue;
      const auto* const member = layered.find(key.name);
      const auto* const inner = object_type(key);
      auto* const object = inner == nullptr ? nullptr : inner->object(key.field(target));
      if (object != nullptr && member != nullptr && is_object(*member)) {
        add(*member, *inner->shape(), object, &key, prefix + std::string(key.name) + ".");
        continue;
      }
      const auto* const written = member != nullptr ? member : layered.find(key.like);
      const ValuePool::Source source{parent, &key, written == nullptr ? nullptr : written->json,
                                     member == nullptr ? nullptr : member->origin};
      auto& value = pool_.at(source);
      if (!value) value = made(source, target, prefix);
      values_.push_back(value);
    }
  }
  [[nodiscard]] PolicyValues take() {
    values_.shrink_to_fit();
    return PolicyValues(std::move(values_));
  }

 private:
  static bool is_object(const Layered& layered) { return layered.json->is(JsonNode::Type::Object); }
  static std::shared_ptr<const PolicyValue> made(const ValuePool::Source& source, void* target,
                                                 const std::string& prefix) {
    const auto& key = *source.key;
    const auto* const origin = source.origin;
    auto value = std::make_shared<PolicyValue>();
    value->key = prefix + std::string(key.name);
    const auto* const before = origin == nullptr || origin->resolved == nullptr
                                   ? nullptr
                                   : origin->resolved->find(value->key);
    if (before != nullptr) {
      value->json = before->json;
      value->source = before->source;
      return value;
    }
    value->json =
        source.json == nullptr ? key.type->write(key.field(target)).dump() : compact(*source.json);
    value->source = origin == nullptr ? "built in" : origin->at(*source.json);
    return value;
  }

  ValuePool& pool_;
  PolicyValues::Shared values_;
};

}  // namespace

std::shared_ptr<const RetryPolicy> read_policy(const Layered& layered, const JsonNode& policy,
                                               Problems& problems) {
  auto result = std::make_shared<RetryPolicy>();
  PolicyReader(policy, problems).read(layered, policy_shape(), result.get());
  return result;
}

std::size_t ValuePool::Hash::operator()(const Source& source) const {
  const std::hash<const void*> hash;
  return ((hash(source.parent) * 31 + hash(source.key)) * 31 + hash(source.json)) * 31 +
         hash(source.origin);
}

PolicyValues values_of(const Layered& layered, const RetryPolicy& policy, ValuePool& pool) {
  ValueList values(pool);
  values.add(layered, policy_shape(), const_cast<RetryPolicy*>(&policy), nullptr, {});
  return values.take();
}

}  // namespace httpretry::policy_file
