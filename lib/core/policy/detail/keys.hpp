// The keys of a file, in tables: for each its name, its type and its member of a struct. Reading,
// printing, explaining, suggestions and the JSON Schema all use them.
#pragma once

#include "lib/core/policy/types.hpp"

#include <type_traits>

namespace httpretry::policy_file {

using Mask = std::uint32_t;
inline constexpr Mask kAll = ~Mask{0};

template <class... Enums>
constexpr Mask mask(Enums... values) {
  return ((Mask{1} << static_cast<unsigned>(values)) | ...);
}

struct Key {
  std::string_view name;
  const Type* type = nullptr;  // nullptr: the loader of the file checks it
  // The member that holds the value; nullptr where the loader of the file reads it.
  void* (*field)(void* object) = nullptr;

  Mask kinds = kAll;    // of the object, to which the key belongs
  Mask jitters = kAll;  // likewise
  bool required = false;
  bool block = false;          // a preset replaces it even where it does not state it
  bool nullable = true;        // null returns it to the value of the layer below
  std::string_view like = {};  // where it is left out, it has the value of that key

  [[nodiscard]] constexpr Key of(Mask kind_mask, Mask jitter_mask = kAll) {
    kinds = kind_mask;
    jitters = jitter_mask;
    return *this;
  }
  [[nodiscard]] constexpr Key needed() { return required = true, *this; }
  [[nodiscard]] constexpr Key in_presets() { return block = true, *this; }
  [[nodiscard]] constexpr Key not_null() { return nullable = false, *this; }
  [[nodiscard]] constexpr Key else_like(std::string_view other) { return like = other, *this; }
};

template <class Class, class Value>
Class class_of(Value Class::*);
template <auto Member, auto... Inner>
constexpr auto* member_of(void* object) {
  return &((static_cast<decltype(class_of(Member))*>(object)->*Member).*....*Inner);
}

// The key of a member, or of a member of a member, whose type must be what `type` stores.
template <auto Member, auto... Inner, class T>
constexpr Key key(std::string_view name, const T& type) {
  static_assert(std::is_same_v<typename T::Field*, decltype(member_of<Member, Inner...>(nullptr))>);
  return {name, &type, [](void* object) -> void* { return member_of<Member, Inner...>(object); }};
}
// A key that is read from and written to the whole object.
inline constexpr Key whole_key(std::string_view name, const Type& type) {
  return {name, &type, [](void* object) { return object; }};
}
inline constexpr Key loader_key(std::string_view name) { return {name}; }
inline constexpr Key loader_key(std::string_view name, const Type& type) { return {name, &type}; }

struct LoadedPreset;

struct HTTPRETRY_API Shape {
  std::string_view name;  // of its definition in the schema
  std::span<const Key> keys;
  Words kinds = {};    // of the key "kind"; none where there is no such key
  Words jitters = {};  // likewise, of "jitter"
  bool whole = false;  // once a part of it is wrong, nothing is concluded from the others
  // Sets the defaults that depend on the kind, which has been read.
  void (*prepare)(void* object) = nullptr;
  // What lies below it where no other layer has it; of that, what its kind has.
  const JsonNode& (*base)() = nullptr;
  // Of its key "preset", which must have been read; nullptr where there is no such key.
  const LoadedPreset& (*preset)(std::string_view name) = nullptr;

  // The first key with that name that belongs to one of these kinds.
  [[nodiscard]] const Key* find(std::string_view name, Mask among = kAll) const;
};

// Objects in objects. An optional one, and the budget, may be "none".
class HTTPRETRY_API ObjectType : public Type {
 public:
  bool read(const JsonNode& json, void* field, Problems& problems) const final;
  [[nodiscard]] OrderedJson write(const void* field) const final;
  [[nodiscard]] const Shape* shape() const final { return &shape_; }

  // Makes it new: an object with its defaults, which is returned, or "none".
  virtual void* renew(void* field, bool none = false) const = 0;
  // The object there; nullptr where it is "none".
  virtual void* object(void* field) const = 0;

 protected:
  constexpr ObjectType(const Shape& shape, bool optional) : shape_(shape), optional_(optional) {}
  ~ObjectType() = default;

 private:
  const Shape& shape_;
  bool optional_;
};

template <class F>
class Object final : public ObjectType {
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
  void* renew(void* field, bool none) const override {
    auto& value = *static_cast<F*>(field) = F();
    if constexpr (kOptional) return none ? nullptr : &value.emplace();
    if constexpr (kOfPause) value.enabled = !none;
    return &value;
  }

 private:
  static constexpr bool kOptional = requires(F & field) { field.emplace(); };
  static constexpr bool kOfBudget = std::is_same_v<F, BudgetPolicy>;
  static constexpr bool kOfPause = std::is_same_v<F, PausePolicy>;
};

// The types of members that are stored as an F: by the limits of a number, the words of an enum in
// the order of its values, or the keys of an object.
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

// The key of a member with these values.
template <const auto& values, auto Member, auto... Inner>
constexpr Key key_of(std::string_view name) {
  using Field = std::remove_pointer_t<decltype(member_of<Member, Inner...>(nullptr))>;
  return key<Member, Inner...>(name, kTypeOf<values, Field>);
}

extern HTTPRETRY_API const Shape kFile;
extern HTTPRETRY_API const Shape kEndpoint;
extern HTTPRETRY_API const Shape kMatch;
extern HTTPRETRY_API const Shape kPolicy;
extern HTTPRETRY_API const Shape kRule;  // of the objects in retry_on.error_codes
extern HTTPRETRY_API const Shape kTest;  // of the objects in tests, and what is in them
extern HTTPRETRY_API const Shape kTestRequest;
extern HTTPRETRY_API const Shape kTestStep;
extern HTTPRETRY_API const Shape kTestWait;
extern HTTPRETRY_API const Shape kTestExpect;
extern const Shape kRetryOn;
extern const Shape kBackoff;
extern const Shape kPause;
extern const Shape kRate;
extern const Shape kConcurrency;
extern const Shape kBreaker;
extern const Shape kHedge;

extern const Text kHeader;  // a header's name

// For values that are built in. They live as long as the program.
HTTPRETRY_API const JsonTree* tree_of(const OrderedJson& json);

// Which keys belong to an object of a certain kind and jitter.
struct Traits {
  Mask kind = kAll;
  Mask jitter = kAll;

  [[nodiscard]] bool have(const Key& key) const {
    return (key.kinds & kind) != 0 && (key.jitters & jitter) != 0;
  }
};
// The bit of the word; all where it is none of them.
Mask mask_of(const Words& words, std::string_view word);

// Reads the members into the struct at `target`, or only checks them where that is nullptr. False,
// with problems, where one is wrong.
HTTPRETRY_API bool read_members(const JsonNode& object, const Shape& shape, void* target,
                                Problems& problems);
// The same, and the value must be an object that has all keys that are needed.
HTTPRETRY_API bool read_object(const JsonNode& json, const Shape& shape, void* target,
                               std::string_view what, Problems& problems);
std::string not_of_kind(std::string_view key, const JsonNode& kind);
// Every member that a file states.
OrderedJson write_object(const Shape& shape, const void* object);

}  // namespace httpretry::policy_file
