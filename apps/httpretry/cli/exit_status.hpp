// What the program's exit status says. Where curl has a number for it, it is curl's.
#pragma once

#include <httpretry/http/response.hpp>

namespace httpretry::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  // `policy check` found something, `serve` cannot listen
inline constexpr int kUsage = 2;
inline constexpr int kBadPolicyFile = 3;
inline constexpr int kBadAnswer = 22;   // an answer of 400 or more
inline constexpr int kWriteError = 23;  // standard output or a file
inline constexpr int kReadError = 26;   // a body
inline constexpr int kTimeout = 28;     // --until never held, too
inline constexpr int kInternalError = 70;

// For an outcome that is an error.
int exit_status(const Error& error);

}  // namespace httpretry::cli
