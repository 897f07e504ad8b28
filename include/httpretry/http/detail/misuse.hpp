// Aborts the program after an incorrect use of the library.
#pragma once

#include <httpretry/export.hpp>

namespace httpretry {

struct Error;

namespace detail {

// Writes "httpretry: WHAT" to standard error and aborts.
[[noreturn]] HTTPRETRY_API void misuse(const char* what) noexcept;
// Called if a Result has no value but is used as one. `error` is nullptr if it was moved from.
[[noreturn]] HTTPRETRY_API void no_value(const Error* error) noexcept;
// Called if a Result has no error but its error is used.
[[noreturn]] HTTPRETRY_API void no_error() noexcept;

}  // namespace detail
}  // namespace httpretry
