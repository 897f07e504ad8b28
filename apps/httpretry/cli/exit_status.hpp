// The exit statuses of the program. They are curl's if curl has one for the case.
#pragma once

#include <httpretry/http/response.hpp>

namespace httpretry::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  // `policy check` found errors, `serve` failed
inline constexpr int kUsage = 2;
inline constexpr int kBadPolicyFile = 3;
inline constexpr int kPartial = 18;      // standard output has only the beginning of a response
inline constexpr int kErrorStatus = 22;  // a response of 400 or more
inline constexpr int kWriteError = 23;   // standard output or a file
inline constexpr int kReadError = 26;    // a body or a file
inline constexpr int kTimeout = 28;      // also if the condition of --until was never met
inline constexpr int kInternalError = 70;
inline constexpr int kTryLater = 75;  // nothing, or only a part of a batch, was sent; run it again

// Returns an error that is not retried and has curl's exit status.
Error permanent_error(Errc code, std::string message, int curl_code);

// Returns the exit status for an outcome that is an error.
int exit_status(const Error& error);

}  // namespace httpretry::cli
