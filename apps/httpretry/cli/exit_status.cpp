#include "cli/exit_status.hpp"

namespace httpretry::cli {

namespace {

// What came of the attempts before, if one of them may have reached the server.
int status_of_held_back(const Error& error) {
  if (!error.maybe_sent() || error.history.attempts.empty()) return kTryLater;
  const auto& last = error.history.attempts.back();
  if (!last.error) return kErrorStatus;
  Error real(*last.error, last.error_message);
  real.curl_code = last.curl_code;
  return real.held_back() ? kInternalError : exit_status(real);
}

}  // namespace

int exit_status(const Error& error) {
  constexpr int kMalformedUrl = 3;  // curl's number; ours is kUsage
  if (error.code != Errc::Canceled && error.curl_code != 0 && error.curl_code != kMalformedUrl) {
    return error.curl_code;
  }
  switch (error.code) {
    case Errc::InvalidRequest: return kUsage;
    case Errc::Resolve: return 6;
    case Errc::Connect: return 7;
    case Errc::Tls: return 35;
    case Errc::Timeout: return kTimeout;
    case Errc::Send: return 55;
    case Errc::Receive: return 56;
    case Errc::Protocol: return 8;
    case Errc::TooLarge: return 63;
    case Errc::Canceled: return 42;  // in practice by a signal, which has its own status
    case Errc::Status: return kErrorStatus;
    case Errc::Paused:
    case Errc::CircuitOpen:
    case Errc::RateLimited:
    case Errc::QueueFull: return status_of_held_back(error);
    case Errc::Internal: break;
  }
  return kInternalError;
}

}  // namespace httpretry::cli
