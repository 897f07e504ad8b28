// The storage that a Result uses for its value and its error.
#pragma once

#include <httpretry/export.hpp>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace httpretry::detail {

// HeapOptional holds a T on the heap, or nothing. Copying it copies the T.
template <class T>
class HeapOptional {
 public:
  HeapOptional() = default;
  template <class... Args>
  explicit HeapOptional(std::in_place_t /*tag*/, Args&&... args)
      : value_(new T(std::forward<Args>(args)...)) {}
  HeapOptional(HeapOptional&&) noexcept = default;
  HeapOptional& operator=(HeapOptional&&) noexcept = default;
  HeapOptional(const HeapOptional& other) : value_(other ? new T(*other) : nullptr) {}
  HeapOptional& operator=(const HeapOptional& other) { return *this = HeapOptional(other); }
  ~HeapOptional() = default;

  explicit operator bool() const noexcept { return value_ != nullptr; }
  T& operator*() noexcept { return *value_; }
  const T& operator*() const noexcept { return *value_; }

 private:
  // Not inlined, because most Results are moved from before they are destroyed. Only the test for
  // nullptr is worth inlining.
  struct Delete {
    [[gnu::noinline]] void operator()(T* value) const noexcept { delete value; }
  };
  std::unique_ptr<T, Delete> value_;
};

// Holds values of up to eight words in place and others on the heap. A Result of a Response is
// therefore two words.
template <class T>
using ResultStorage =
    std::conditional_t<sizeof(T) <= 8 * sizeof(void*) && std::is_nothrow_move_constructible_v<T>,
                       std::optional<T>, HeapOptional<T>>;

}  // namespace httpretry::detail
