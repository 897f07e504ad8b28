#include "cli/exit_status.hpp"

#include <algorithm>

namespace httpretry::cli {

namespace {

// Returns the status for a call whose last attempt was not sent, because a limit of the policy held
// it back or this machine lacked a resource. If the server may have received an earlier attempt,
// the last such attempt decides the status. Otherwise returns kTryLater, because nothing was sent
// and the user can run the same command again.
int status_after_unsent_attempt(const Error& error) {
  const auto& attempts = error.history.attempts;
  // An attempt with a shortage was not sent.
  const auto last_sent = std::find_if(attempts.rbegin(), attempts.rend(), [](const auto& attempt) {
    return attempt.error != Errc::LocalShortage;
  });
  if (!error.maybe_sent() || last_sent == attempts.rend()) return kTryLater;
  if (!last_sent->error) return kErrorStatus;  // it got a response, whose status is a failure
  Error earlier_error(*last_sent->error, last_sent->error_message);
  earlier_error.curl_code = last_sent->curl_code;
  // An attempt that was sent cannot have been held back, so such a history is wrong.
  return earlier_error.held_back() ? kInternalError : exit_status(earlier_error);
}

}  // namespace

Error permanent_error(Errc code, std::string message, int curl_code) {
  Error error(code, std::move(message));
  error.curl_code = curl_code;
  error.permanent = true;
  return error;
}

// Returns the exit status of the program for a call that ended with an error. It is curl's number
// if libcurl reported the error, and otherwise the status for the code of the error. The numbers
// below without a name are curl's, too.
int exit_status(const Error& error) {
  // A shortage on this machine kept the attempt from being sent. libcurl's number does not matter.
  if (error.code == Errc::LocalShortage) return status_after_unsent_attempt(error);
  // curl's number for a malformed URL is our kBadPolicyFile, so such a URL gets kUsage below.
  constexpr int kMalformedUrl = 3;
  const bool has_curl_status = error.curl_code != 0 && error.curl_code != kMalformedUrl;
  // A canceled call has its own status below, whatever libcurl was doing at that time.
  if (has_curl_status && error.code != Errc::Canceled) return error.curl_code;
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
    case Errc::Canceled: return 42;  // in practice a signal, whose status replaces this one
    case Errc::Status: return kErrorStatus;
    // A limit of the policy kept the attempt from being sent.
    case Errc::Paused:
    case Errc::CircuitOpen:
    case Errc::RateLimited:
    case Errc::QueueFull: return status_after_unsent_attempt(error);
    case Errc::LocalShortage:  // returned above
    case Errc::Internal: break;
  }
  return kInternalError;
}

}  // namespace httpretry::cli
