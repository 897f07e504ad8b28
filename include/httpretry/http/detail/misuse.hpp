// What happens if the library is used in a way that can never be right.
#pragma once

#include <httpretry/export.hpp>

namespace httpretry {

struct Error;

namespace detail {

// Writes "httpretry: WHAT" to standard error and aborts.
[[noreturn]] HTTPRETRY_API void misuse(const char* what) noexcept;
// A Result was used as a value, and has none. `error` is nullptr if it was moved from.
[[noreturn]] HTTPRETRY_API void no_value(const Error* error) noexcept;
// A Result was asked for its error, and has none.
[[noreturn]] HTTPRETRY_API void no_error() noexcept;

}  // namespace detail
}  // namespace httpretry
