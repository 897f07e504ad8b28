// The keys of a policy file, in tables. A key has a name, a type and a member of a struct. Reading,
// printing, explaining, suggestions and the JSON Schema all use these tables.
#pragma once

#include "lib/core/policy/value_types.hpp"

#include <type_traits>

namespace httpretry::detail::policy_file {

using Mask = std::uint32_t;
inline constexpr Mask kAll = ~Mask{0};

template <class... Enums>
constexpr Mask mask(Enums... values) {
  return ((Mask{1} << static_cast<unsigned>(values)) | ...);
}

// A key that objects of one Shape may have.
struct Key {
  std::string_view name;
  const Type* type = nullptr;  // nullptr: the loader of the file checks the value
  // Returns the member that stores the value. nullptr: the loader of the file reads the value.
  void* (*field)(void* object) = nullptr;

  Mask kinds = kAll;    // the kinds of objects that have the key
  Mask jitters = kAll;  // the jitters of objects that have the key
  bool required = false;
  bool block = false;          // a preset replaces the value even if it does not state the key
  bool nullable = true;        // null selects the value of the layer below
  bool file_only = false;      // a value of the policy in the file that RetryPolicy does not store
  std::string_view like = {};  // the key whose value is used if this one is left out

  [[nodiscard]] constexpr Key of(Mask kind_mask, Mask jitter_mask = kAll) {
    kinds = kind_mask;
    jitters = jitter_mask;
    return *this;
  }
  // Returns a copy with this value of a member.
  template <class T>
  [[nodiscard]] constexpr Key with(T Key::*member, T value) const {
    auto copy = *this;
    copy.*member = value;
    return copy;
  }
  [[nodiscard]] constexpr Key needed() const { return with(&Key::required, true); }
  [[nodiscard]] constexpr Key in_presets() const { return with(&Key::block, true); }
  [[nodiscard]] constexpr Key only_in_file() const { return with(&Key::file_only, true); }
  [[nodiscard]] constexpr Key not_null() const { return with(&Key::nullable, false); }
  [[nodiscard]] constexpr Key default_like(std::string_view other) const {
    return with(&Key::like, other);
  }
};

template <class Class, class Value>
Class class_of(Value Class::*);
template <auto Member, auto... Inner>
constexpr auto* member_of(void* object) {
  return &((static_cast<decltype(class_of(Member))*>(object)->*Member).*....*Inner);
}

// Returns the key of a member, or of a member of a member. `type` must store its type.
template <auto Member, auto... Inner, class T>
constexpr Key key(std::string_view name, const T& type) {
  static_assert(std::is_same_v<typename T::Field*, decltype(member_of<Member, Inner...>(nullptr))>);
  return {name, &type, [](void* object) -> void* { return member_of<Member, Inner...>(object); }};
}
// Returns a key whose type reads and writes the whole object.
inline constexpr Key whole_key(std::string_view name, const Type& type) {
  return {name, &type, [](void* object) { return object; }};
}
// Returns a key that the loader of the file uses.
inline constexpr Key loader_key(std::string_view name) { return {name}; }
inline constexpr Key loader_key(std::string_view name, const Type& type) { return {name, &type}; }

struct LoadedPreset;

// The warnings that a policy may allow on purpose, with its key "allow".
enum class Warning : std::uint8_t {
  NoBudget,        // no budget limits the retries
  NoBackoff,       // retries or polls follow at once
  NoTimeLimit,     // nothing limits the time of all retries or polls
  NoTimeout,       // nothing ends an attempt that hangs
  RepeatAlways,    // retries may execute a request twice
  HedgedUnsafe,    // hedges may execute a request twice
  RetriedStatus,   // successes, or failures that no retry changes, are retried
  ServersIgnored,  // the waits that servers ask for are ignored
  NoEffect,        // a value can never have an effect
  Unused,          // no request gets the policy
};
std::string_view to_string(Warning warning);

// The keys of one type of objects.
struct Shape {
  std::string_view name;  // of its definition in the schema
  std::span<const Key> keys;
  Words kinds = {};    // the words of the key "kind", if it has this key
  Words jitters = {};  // the words of the key "jitter", if it has this key
  bool whole = false;  // if one member is wrong, the others are not checked against each other
  // Sets the defaults that depend on the kind, after the kind was read.
  void (*prepare)(void* object) = nullptr;
  // Returns the lowest layer of an object that no other layer states. Keys that do not belong to
  // the kind of the object are dropped from it.
  const JsonNode& (*base)() = nullptr;
  // Returns the preset that the key "preset" names, after the key was checked. nullptr if there is
  // no such key.
  const LoadedPreset& (*preset)(std::string_view name) = nullptr;
  std::string_view example = {};  // shown if a file has something else than an object

  // Returns the first key with this name that belongs to one of these kinds, or nullptr.
  [[nodiscard]] const Key* find(std::string_view name, Mask among = kAll) const;
};

// The type of an object inside another object. An optional one, the budget and the pause may also
// be "none".
class ObjectType : public Type {
 public:
  bool read(const JsonNode& json, void* field, Problems& problems) const override;
  [[nodiscard]] OrderedJson write(const void* field) const override;
  [[nodiscard]] const Shape* shape() const final { return &shape_; }

  enum class Initial : std::uint8_t { Defaults, None };
  // Resets the field to an object with default values, and returns the object, or to "none".
  virtual void* reset(void* field, Initial initial = Initial::Defaults) const = 0;
  // Returns the object in the field, or nullptr if the field is "none".
  virtual void* object(void* field) const = 0;

 protected:
  constexpr ObjectType(const Shape& shape, bool optional) : shape_(shape), optional_(optional) {}
  ~ObjectType() = default;

 private:
  const Shape& shape_;
  bool optional_;
};

template <class F>
class Object : public ObjectType {
 public:
  using Field = F;
  constexpr explicit Object(const Shape& shape)
      : ObjectType(shape, kOptional || kOfBudget || kOfPause) {}
  void* object(void* field) const override {
    auto& value = *static_cast<F*>(field);
    if constexpr (kOptional) return value ? &*value : nullptr;
    if constexpr (kOfBudget) return value.kind == F::Kind::None ? nullptr : &value;
    if constexpr (kOfPause) return value.enabled ? &value : nullptr;
    return &value;
  }
  void* reset(void* field, Initial initial) const override {
    auto& value = *static_cast<F*>(field) = F();
    if constexpr (kOptional) return initial == Initial::None ? nullptr : &value.emplace();
    if constexpr (kOfPause) value.enabled = initial != Initial::None;
    return &value;
  }

 private:
  static constexpr bool kOptional = requires(F & field) { field.emplace(); };
  static constexpr bool kOfBudget = std::is_same_v<F, BudgetPolicy>;
  static constexpr bool kOfPause = std::is_same_v<F, PausePolicy>;
};

// The type of `rate`: an object, "none", or a list of objects, whose rates must all allow a send.
class RateType final : public Object<std::optional<RatePolicy>> {
 public:
  using Object::Object;
  bool read(const JsonNode& json, void* field, Problems& problems) const override;
  [[nodiscard]] OrderedJson write(const void* field) const override;
};

// Return the type of members that are stored as an F: from the limits of a number, the words of an
// enum in the order of its values, or the keys of an object.
template <class F>
constexpr Number<F> type_of(const policy::NumberLimits& limits) {
  return Number<F>(limits);
}
template <class F, std::size_t Size>
constexpr Word<F> type_of(const std::string_view (&words)[Size]) {
  return Word<F>(Words(words));
}
template <class F>
constexpr Object<F> type_of(const Shape& shape) {
  return Object<F>(shape);
}
template <const auto& values, class F>
inline constexpr auto kTypeOf = type_of<F>(values);
// The type of an optional member.
template <const auto& inner>
inline constexpr Optional<std::remove_cvref_t<decltype(inner)>> kMaybe(inner);

// Returns the key of a member with these limits, words or keys.
template <const auto& values, auto Member, auto... Inner>
constexpr Key key_of(std::string_view name) {
  using Field = std::remove_pointer_t<decltype(member_of<Member, Inner...>(nullptr))>;
  return key<Member, Inner...>(name, kTypeOf<values, Field>);
}

extern const Shape kFile;
extern const Shape kEndpoint;
extern const Shape kMatch;
extern const Shape kPolicy;
extern const Shape kRule;  // objects in retry_on.error_codes
extern const Shape kTest;  // objects in tests; the next five are inside them
extern const Shape kTestRequest;
extern const Shape kTestStep;
extern const Shape kTestTime;
extern const Shape kTestWait;
extern const Shape kTestExpect;
extern const Shape kRetryOn;
extern const Shape kBackoff;
extern const Shape kPause;
extern const RateType kRates;
extern const Shape kConcurrency;
extern const Shape kBreaker;
extern const Shape kHedge;

extern const Text kHeader;  // a header name

// Returns the JSON as a tree of nodes without positions, for built-in values. The tree lives as
// long as the program.
const JsonTree* tree_of(const OrderedJson& json);

// The kind and the jitter of an object, which determine its keys.
struct Traits {
  Mask kind = kAll;
  Mask jitter = kAll;

  [[nodiscard]] bool have(const Key& key) const {
    return (key.kinds & kind) != 0 && (key.jitters & jitter) != 0;
  }
};
// Returns the bit of the word, or all bits if it is unknown.
Mask mask_of(const Words& words, std::string_view word);

// Instead of a struct: the members are only checked, and not stored.
inline constexpr void* kCheckOnly = nullptr;
// Reads the members into the struct at `target`, or only checks them if it is kCheckOnly. Returns
// false and reports problems if a member is wrong.
bool read_members(const JsonNode& object, const Shape& shape, void* target, Problems& problems);
// Reads an object as `read_members` does, and also checks that the value is an object with all
// required keys. `what` names the object in the message.
HTTPRETRY_API bool read_object(const JsonNode& json, const Shape& shape, void* target,
                               std::string_view what, Problems& problems);
// Returns the message for a key that objects of other kinds have, with the keys of this kind.
std::string not_of_kind(std::string_view key, const JsonNode& kind, const Shape& shape);
// Returns the object as JSON, with all members that a file states.
OrderedJson write_object(const Shape& shape, const void* object);

}  // namespace httpretry::detail::policy_file
