// Checks the parameters of a function that may be a coroutine. A coroutine continues after its
// caller has returned, so a reference or a view among its parameters may dangle.
#pragma once

#include <httpretry/export.hpp>

#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace httpretry {

class Call;

namespace detail {

template <class T>
inline constexpr bool kIsView = false;
template <class Char, class Traits>
inline constexpr bool kIsView<std::basic_string_view<Char, Traits>> = true;
template <class T, std::size_t size>
inline constexpr bool kIsView<std::span<T, size>> = true;

// True if a parameter of type T stays valid in a coroutine. A Call outlives the coroutines of its
// call.
template <class T>
inline constexpr bool kIsKept =
    std::is_same_v<std::remove_cv_t<std::remove_reference_t<T>>, Call> ||
    (!std::is_reference_v<T> && !kIsView<std::remove_cv_t<T>>);

// The parameters of a function or a function object, as std::function deduces them. `known` is
// false for a template, such as a lambda with `auto` parameters.
template <class F>
struct Parameters {
  static constexpr bool known = false;
  static constexpr bool kept = false;
};
template <class R, class... P>
struct Parameters<std::function<R(P...)>> {
  static constexpr bool known = true;
  static constexpr bool kept = (... && kIsKept<P>);
};
template <class F>
requires requires(F f) { std::function(f); }
struct Parameters<F> : Parameters<decltype(std::function(std::declval<F&>()))> {};

template <class F>
constexpr void check_coroutine_function() {
  static_assert(!Parameters<F>::known || Parameters<F>::kept,
                "this function may be a coroutine: take its parameters by value, and a string "
                "instead of a string_view, because what they refer to is gone after its first "
                "co_await; only Call& may be a reference");
}

}  // namespace detail
}  // namespace httpretry
