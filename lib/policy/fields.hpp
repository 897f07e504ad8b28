// How the table of policy_keys.hpp names the place of a value.
#pragma once

#include "lib/policy/keys.hpp"

#include <limits>

namespace httpretry::policy_file {

template <class Class, class Value>
Class class_of(Value Class::*);

template <auto Member>
void* at(void* object) {
  return &(static_cast<decltype(class_of(Member))*>(object)->*Member);
}
template <auto Member>
void* renewed(void* object) {
  auto& member = static_cast<decltype(class_of(Member))*>(object)->*Member;
  member = {};
  return &member;
}
template <auto Member>
void* emplaced(void* object) {
  return &(static_cast<decltype(class_of(Member))*>(object)->*Member).emplace();
}
template <auto Member>
void* if_any(void* object) {
  auto& member = static_cast<decltype(class_of(Member))*>(object)->*Member;
  return member ? &*member : nullptr;
}
template <class Enum>
constexpr Mask mask(Enum one) {
  return Mask{1} << static_cast<unsigned>(one);
}
template <class Enum, class... Enums>
constexpr Mask mask(Enum one, Enums... more) {
  return mask(one) | mask(more...);
}

inline constexpr double kInts = std::numeric_limits<int>::max();
inline constexpr double kTokens = 1e12;
inline constexpr double kFactors = 1e6;

// Objects, not functions: the table is there before any constructor of a program's own runs.
extern const Shape kBackoff;
extern const Shape kBudget;

}  // namespace httpretry::policy_file
