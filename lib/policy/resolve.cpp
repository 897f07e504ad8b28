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

class Resolver {
 public:
  Resolver(const JsonNode& policy, Problems& problems, ValuePool& pool)
      : policy_(policy), problems_(problems), pool_(pool) {}

  // `parent` is the key of the object, and `prefix` that key with those above it.
  void read(const Layered& layered, const Shape& shape, void* target, const Key* parent,
            const std::string& prefix) {
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
      read_value(layered, key, target, parent, prefix);
      if (kind != nullptr && key.name == "kind" && shape.prepare != nullptr) shape.prepare(target);
    }
  }
  [[nodiscard]] PolicyValues take() {
    values_.shrink_to_fit();
    return PolicyValues(std::move(values_));
  }

 private:
  void read_value(const Layered& object, const Key& key, void* target, const Key* parent,
                  const std::string& prefix) {
    const auto* const own = object.find(key.name);
    const auto* const layered = own != nullptr ? own : object.find(key.like);
    auto* const field = key.field(target);
    if (layered == nullptr) {
      // Without the key, `target` has its default.
      if (key.required) {
        problems_.error(position_of(object), "missing key " + quoted_text(key.name));
      }
    } else if (key.type->shape() != nullptr && layered->json->is(JsonNode::Type::Object)) {
      const auto& inner = static_cast<const ObjectType&>(*key.type);  // only these have a shape
      read(*layered, *inner.shape(), inner.renew(field), &key,
           prefix + std::string(key.name) + ".");
      return;
    } else {
      key.type->read(*layered->json, field, problems_);
    }
    const ValuePool::Source source{parent, &key, layered == nullptr ? nullptr : layered->json,
                                   own == nullptr ? nullptr : own->origin};
    auto& value = pool_.values[source];
    if (!value) value = made(source, field, prefix);
    values_.push_back(value);
  }

  static std::shared_ptr<const PolicyValue> made(const ValuePool::Source& source, const void* field,
                                                 const std::string& prefix) {
    const auto* const origin = source.origin;
    auto value = std::make_shared<PolicyValue>();
    value->key = prefix + std::string(source.key->name);
    if (origin != nullptr && origin->resolved != nullptr) {
      if (const auto* const before = origin->resolved->find(value->key)) {
        *value = *before;
        return value;
      }
    }
    value->json =
        source.json == nullptr ? source.key->type->write(field).dump() : compact(*source.json);
    value->source = origin == nullptr ? "built in" : origin->at(*source.json);
    return value;
  }

  [[nodiscard]] const JsonNode& position_of(const Layered& layered) const {
    if (layered.origin == nullptr) return policy_;
    const auto known = layered.origin->positions || is_within(*layered.json, policy_);
    return known ? *layered.json : policy_;
  }

  const JsonNode& policy_;
  Problems& problems_;
  ValuePool& pool_;
  PolicyValues::Shared values_;
};

}  // namespace

std::size_t ValuePool::Hash::operator()(const Source& source) const {
  const std::hash<const void*> hash;
  return ((hash(source.parent) * 31 + hash(source.key)) * 31 + hash(source.json)) * 31 +
         hash(source.origin);
}

ResolvedPolicy read_policy(const Layered& layered, const JsonNode& policy, Problems& problems,
                           ValuePool& pool) {
  auto read = std::make_shared<RetryPolicy>();
  Resolver resolver(policy, problems, pool);
  resolver.read(layered, policy_shape(), read.get(), nullptr, {});
  ResolvedPolicy resolved;
  resolved.policy = std::move(read);
  resolved.values = resolver.take();
  return resolved;
}

}  // namespace httpretry::policy_file
