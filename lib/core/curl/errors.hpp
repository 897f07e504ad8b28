// The errors of exchanges: those from libcurl and the system, and those with which the library
// itself ends an exchange.
#pragma once

#include <httpretry/http/result.hpp>

#include <curl/curl.h>

namespace httpretry {

// CURLE_TOO_LARGE, new in libcurl 8.6: something exceeds a limit of libcurl. Older versions report
// other codes.
inline constexpr auto kCurlTooLarge = static_cast<CURLcode>(100);

// Makes an error that another attempt would produce again.
inline Error permanent_error(Errc code, std::string message, int curl_code = 0) {
  Error error(code, std::move(message));
  error.permanent = true;
  error.curl_code = curl_code;
  return error;
}

// Makes the error for `code`. A code that is not in the table becomes a permanent error.
Error failure_of(CURLcode code, std::string message = {});

// Returns the system's text for an `errno`, followed by `hint_at_limit`.
std::string system_text(int error);
// Returns a clause about the limit of this process that may be the cause; often "".
std::string hint_at_limit(int error);

// Why the library ended an exchange.
enum class Abort : std::uint8_t {
  None,
  Failed,  // with the error in AbortReason
  Canceled,
  NoTimeLeft,
  NoResponse,          // a timeout before the final headers
  ResponseIncomplete,  // a timeout after them
  ConnectionDied,      // libcurl wanted to send again on a new connection
  StreamRefused,       // libcurl wanted to resend a request that an HTTP/2 server refused
  ExpectRefused,       // a 417; the request is sent again without Expect
  Unread,              // data had arrived on the connection before the request was sent
  Flooded,             // by HTTP/2 frames; the watchdog has closed the connection
  RestUnneeded,        // the response will be retried, so the rest of its body is of no use
  BodyLeftOut,         // the response looks like a success, but libcurl has not sent the body
  NoMemory,
};

// The reason of an abort. Only the first one counts, because later ones are consequences. Nothing
// here allocates or throws unless it says so.
class AbortReason {
 public:
  [[nodiscard]] Abort why() const { return why_; }
  [[nodiscard]] bool none() const { return why_ == Abort::None; }

  // These return false, which a callback can return to make libcurl stop.
  bool set(Abort why) noexcept {
    if (none()) why_ = why;
    return false;
  }
  // `code` is used if the error has no libcurl code.
  bool set_error(CURLcode code, Error error) noexcept {
    if (error.curl_code == 0) error.curl_code = code;
    if (none()) error_.emplace(std::move(error));
    return set(Abort::Failed);
  }
  // Sets the error for the exception that is being handled: "WHO threw: ...", with the meaning of
  // `code`. Sets NoMemory for std::bad_alloc.
  bool set_thrown(CURLcode code, const char* who) noexcept;
  // Returns the result of `function`. If it throws, sets that as the error and returns false.
  template <class Function>
  bool guard(CURLcode code, const char* who, const Function& function) noexcept {
    try {
      return function();
    } catch (...) {
      return set_thrown(code, who);
    }
  }

  // Returns the Errc, `permanent`, libcurl's code and the message. Requires that why() is not None.
  // Allocates.
  [[nodiscard]] Error error(Duration elapsed) const;

 private:
  Abort why_ = Abort::None;
  std::optional<Error> error_;
};

}  // namespace httpretry
