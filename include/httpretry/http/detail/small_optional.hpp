// An optional number in the memory of the number.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace httpretry::detail {

// A std::optional<T>, but its T's least value means that there is none. The history of a call that
// waits holds several of these for each attempt.
template <class T>
class SmallOptional {
 public:
  constexpr SmallOptional() = default;
  constexpr SmallOptional(std::nullopt_t /*none*/) {}  // NOLINT(google-explicit-constructor)
  template <std::convertible_to<T> U>
  constexpr SmallOptional(U value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  constexpr SmallOptional(std::optional<T> value)      // NOLINT(google-explicit-constructor)
      : value_(value.value_or(kNone)) {}

  [[nodiscard]] constexpr bool has_value() const { return value_ != kNone; }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr const T& operator*() const { return value_; }
  constexpr const T* operator->() const { return &value_; }
  // Throws std::bad_optional_access.
  [[nodiscard]] constexpr T value() const { return std::optional<T>(*this).value(); }
  [[nodiscard]] constexpr T value_or(T other) const { return has_value() ? value_ : other; }
  constexpr operator std::optional<T>() const {  // NOLINT(google-explicit-constructor)
    return has_value() ? std::optional<T>(value_) : std::nullopt;
  }
  friend constexpr bool operator==(SmallOptional one, SmallOptional other) {
    return one.value_ == other.value_;
  }

 private:
  static constexpr T least() {
    if constexpr (requires { T::min(); }) {
      return T::min();
    } else {
      return std::numeric_limits<T>::min();
    }
  }
  static constexpr T kNone = least();
  T value_ = kNone;
};

}  // namespace httpretry::detail
