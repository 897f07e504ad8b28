// The errors of exchanges: those of libcurl and of the system, and those with which the library
// itself ends an exchange.
#pragma once

#include <httpretry/http/result.hpp>

#include <curl/curl.h>

namespace httpretry {

// CURLE_TOO_LARGE, of libcurl 8.6: something is longer than libcurl allows. Before, it had other
// codes.
inline constexpr auto kCurlTooLarge = static_cast<CURLcode>(100);

// Makes an error that another attempt would end with, too.
inline Error permanent_error(Errc code, std::string message, int curl_code = 0) {
  Error error(code, std::move(message));
  error.permanent = true;
  error.curl_code = curl_code;
  return error;
}

// Makes the error that `code` stands for. A code that is not in our table is a permanent error.
Error failure_of(CURLcode code, std::string message = {});

// The system's text for an `errno`, with the limit of this process that may be the cause.
std::string system_text(int error);
std::string hint_at_limit(int error);  // the second half of that, often empty

// Why the library ended an exchange.
enum class Abort : std::uint8_t {
  None,
  Failed,  // with an error of its own
  Canceled,
  NoTimeLeft,
  NoResponse,          // a timeout before the final headers
  ResponseIncomplete,  // a timeout after them
  ConnectionDied,      // libcurl wanted to send again on a new connection
  StreamRefused,       // libcurl wanted to send again what an HTTP/2 server refused
  ExpectRefused,       // a 417: it is sent again without Expect
  Unread,              // something had come on the connection before the request was sent
  Flooded,             // by HTTP/2 frames: the watchdog has closed the connection
  BodyLeftOut,         // the response counts as a success, but libcurl has not sent the body
  NoMemory,
};

// The first reason counts; what follows from it is ignored. Nothing here takes memory or throws
// unless it says so.
class AbortReason {
 public:
  [[nodiscard]] Abort why() const { return why_; }
  [[nodiscard]] bool none() const { return why_ == Abort::None; }

  // These return false, so that a callback can return them: false makes libcurl stop.
  bool set(Abort why) noexcept {
    if (none()) why_ = why;
    return false;
  }
  // `code`: for an error that has no number of libcurl's.
  bool set_error(CURLcode code, Error error) noexcept {
    if (error.curl_code == 0) error.curl_code = code;
    if (none()) error_.emplace(std::move(error));
    return set(Abort::Failed);
  }
  // For the exception that is being handled: "WHO threw: …"; NoMemory for a std::bad_alloc. `code`
  // says what kind of error it is.
  bool set_thrown(CURLcode code, const char* who) noexcept;
  // Returns what `function` returns; if it throws, sets that and returns false.
  template <class Function>
  bool guard(CURLcode code, const char* who, const Function& function) noexcept {
    try {
      return function();
    } catch (...) {
      return set_thrown(code, who);
    }
  }

  // Where why() is not None: the Errc, `permanent`, libcurl's number and the message. Takes memory.
  [[nodiscard]] Error error(Duration elapsed) const;

 private:
  Abort why_ = Abort::None;
  std::optional<Error> error_;
};

}  // namespace httpretry
