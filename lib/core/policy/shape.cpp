// Reads and writes objects by the tables of keys.
#include "lib/core/policy/detail/keys.hpp"

#include <algorithm>

namespace httpretry::detail::policy_file {
namespace {

using JsonType = JsonNode::Type;

// Returns the names of the keys that objects of these kinds have.
std::vector<std::string_view> names_of(const Shape& shape, Mask kinds) {
  std::vector<std::string_view> names;  // a name may belong to several keys, of different kinds
  for (const auto& key : shape.keys) {
    if (shape.find(key.name, kinds) == &key) names.push_back(key.name);
  }
  return names;
}

std::string list_text(const std::vector<std::string_view>& names) {
  std::string text;
  for (const auto one : names)
    text += (text.empty() ? "; the keys are: " : ", ") + std::string(one);
  return text;
}

// Returns the message for a key that no object of this shape has, with a suggestion or all keys.
std::string unknown_key(std::string_view name, const Shape& shape, const Problems& problems) {
  const auto names = names_of(shape, kAll);
  auto hint = problems.suggestion(name, names);
  if (hint.empty() && !problems.full()) hint = list_text(names);
  return "unknown key" + hint;
}

// Reads the value of a key into its field in the struct at `target`, or only checks the value.
bool read_member(const JsonNode& member, const Key& key, void* target, Problems& problems) {
  if (key.type == nullptr || (key.nullable && member.is(JsonType::Null))) return true;
  const bool is_stored = target != nullptr && key.field != nullptr;
  return key.type->read(member, is_stored ? key.field(target) : kCheckOnly, problems);
}

// Returns the bit of an object's kind or jitter, which is the value of the key `name`. Returns all
// bits if its shape has no such words.
Mask mask_in(const Shape& shape, const Words& words, std::string_view name, void* object) {
  if (words.size() == 0) return kAll;
  const auto& key = *shape.find(name);
  return mask_of(words, key.type->write(key.field(object)).get<std::string>());
}

}  // namespace

Mask mask_of(const Words& words, std::string_view word) {
  const auto number = words.find(word);
  return number == words.size() ? kAll : Mask{1} << number;
}

const Key* Shape::find(std::string_view wanted, Mask among) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& key) {
    return key.name == wanted && (key.kinds & among) != 0;
  });
  return found == keys.end() ? nullptr : &*found;
}

// Reads the members of an object of a policy file into the struct at `target`, or only checks them
// if that is kCheckOnly (nullptr). `shape` is the table of the object's keys. Some objects have a
// key "kind", and some of their keys belong only to certain kinds. Returns false and reports
// problems if a member is wrong, has no key in the table, or belongs to another kind.
bool read_members(const JsonNode& object, const Shape& shape, void* target, Problems& problems) {
  const bool has_kinds = shape.kinds.size() > 0;
  const auto* const kind = has_kinds ? object.find("kind") : nullptr;
  // Without a kind, keys of all kinds are allowed, because a layer below may state the kind. They
  // are also allowed if the kind is unknown, which read_member reports.
  const auto kinds = kind == nullptr ? kAll : mask_of(shape.kinds, kind->text);
  auto all_valid = true;
  for (const auto* const member : object.children) {
    if (member->has_error) all_valid = false;  // read_json has reported a duplicate
    if (shape.find(member->key) == nullptr) {
      problems.error_at_key(*member, unknown_key(member->key, shape, problems));
      all_valid = false;
    } else if (const auto* const key = shape.find(member->key, kinds)) {
      all_valid = read_member(*member, *key, target, problems) && all_valid;
    } else {
      problems.error_at_key(*member, not_of_kind(member->key, *kind, shape));
      all_valid = false;
    }
  }
  // Some objects are used as a whole or not at all. merge_layer leaves out one with an error.
  if (!all_valid && shape.whole) object.has_error = true;
  return all_valid;
}

bool read_object(const JsonNode& json, const Shape& shape, void* target, std::string_view what,
                 Problems& problems) {
  if (!expect(json, JsonType::Object, what, problems)) return false;
  auto good = read_members(json, shape, target, problems);
  for (const auto& key : shape.keys) {
    if (!key.required || json.member(key.name) != nullptr) continue;
    problems.error(json, "missing key " + quoted_text(key.name));
    good = false;
  }
  return good;
}

// Returns an object as JSON, with the keys of its kind. Leaves out values that a file leaves out.
OrderedJson write_object(const Shape& shape, const void* object) {
  auto* const target = const_cast<void*>(object);  // only read: Key::field has no const form
  const Traits traits{mask_in(shape, shape.kinds, "kind", target),
                      mask_in(shape, shape.jitters, "jitter", target)};
  auto json = OrderedJson::object();
  for (const auto& key : shape.keys) {
    if (key.field == nullptr || !traits.have(key)) continue;
    auto value = key.type->write(key.field(target));
    const bool is_default = !key.like.empty() && json.contains(key.like) && json[key.like] == value;
    if (!value.is_null() && !is_default) json[key.name] = std::move(value);
  }
  return json;
}

std::string not_of_kind(std::string_view key, const JsonNode& kind, const Shape& shape) {
  return quoted_text(key) + " does not belong to kind " + described(kind) +
         list_text(names_of(shape, mask_of(shape.kinds, kind.text)));
}

bool ObjectType::read(const JsonNode& json, void* field, Problems& problems) const {
  if (optional_ && json.is(JsonType::String) && json.text == "none") {
    if (field != nullptr) reset(field, Initial::None);
    return true;
  }
  if (!json.is(JsonType::Object)) {
    const auto* const expected = optional_ ? "an object or \"none\"" : "an object";
    const auto hint =
        shape_.example.empty() ? "" : "; write it like " + std::string(shape_.example);
    return refuse(json, problems,
                  "expected " + std::string(expected) + ", found " + described(json) + hint);
  }
  return read_members(json, shape_, field == nullptr ? kCheckOnly : reset(field), problems);
}

OrderedJson ObjectType::write(const void* field) const {
  const auto* const value = object(const_cast<void*>(field));
  return value == nullptr ? OrderedJson("none") : write_object(shape_, value);
}

}  // namespace httpretry::detail::policy_file
