// Result<T> holds a T, or the Error that explains why there is no T. It replaces std::expected<T,
// Error> of C++23 and has the same function names.
//
//   Outcome outcome = client.send(Request::get(url));
//   if (!outcome) return fail(outcome.error().message);
//   use(outcome->body);
//
// With exceptions: `use(client.send(...).value().body)`. `value()` throws Failure, which carries
// the Error.
//
// An HTTP status of 400 or more is a Response, never an Error, because the server did respond.
// Nothing in the library throws because of the network, the server or the file system.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/detail/misuse.hpp>
#include <httpretry/http/detail/result_storage.hpp>
#include <httpretry/http/headers.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace httpretry {

// The codes of errors. The list is short: two codes differ only if a caller would act differently.
enum class Errc : std::uint8_t {
  InvalidRequest,  // it cannot be sent as it is: a bad URL, an unreadable body file, …
  Resolve,         // no address for the host or the proxy
  Connect,         // no connection to the host, or the proxy refused the connection
  Tls,             // the handshake failed, or the certificate is not trusted
  Timeout,         // a time limit ended the attempt
  Send,            // the connection failed while the request was being sent
  Receive,         // the connection was lost; with Error::partial, in the middle of the response
  Protocol,        // the response is not HTTP
  TooLarge,        // the response exceeds one of the library's limits
  Canceled,        // by the caller, or by the end of the client
  // Nothing was sent, because the library held the request back. History::retry_at is the time
  // to try again.
  Paused,       // a server asked for a longer pause than the time limits allow
  CircuitOpen,  // too many sends failed
  RateLimited,  // the policy's rate would have required too long a wait
  QueueFull,    // too many sends are waiting already, or this one has waited too long
  // Nothing was sent, because this process lacks a resource: descriptors, memory, threads or ports.
  // A later request, or fewer at once, may succeed. retry() does not retry this error.
  LocalShortage,
  Internal,  // a middleware threw, or memory ran out after the request was sent
  Status,    // from `require_success`: there is a response, but it is not a success
};

// Returns the code as printed in reports and logs: "invalid_request", "resolve", …
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Errc code);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Errc code);

// Error explains why there is no response.
struct HTTPRETRY_API Error {
  explicit Error(Errc errc, std::string text = {});

  Errc code;  // the kind of error
  // A sentence for people. It contains no secrets: its URLs have no query and no userinfo.
  std::string message;
  int curl_code = 0;  // libcurl's error number; 0 if the error is not from libcurl
  // A retry cannot help, for example after an untrusted certificate, a bad URL, or a proxy that
  // requires a password.
  bool permanent = false;
  // Part of the response had been received.
  bool partial = false;
  // The status and the headers that were received before the error. With `from_proxy` they are
  // those of a proxy that refused the connection, and the origin received nothing.
  int status = 0;
  bool from_proxy = false;
  Headers headers;
  Exchange exchange;
  History history;

  // Returns whether the server may have received the request. If the call made several attempts,
  // all of them count.
  [[nodiscard]] bool maybe_sent() const { return exchange.sent != Sent::Never; }
  // Returns whether the library held the request back: Paused, CircuitOpen, RateLimited or
  // QueueFull.
  [[nodiscard]] bool held_back() const { return code >= Errc::Paused && code <= Errc::QueueFull; }
  // Returns whether a time limit ended the call: this attempt took too long, or there was no time
  // for a retry.
  [[nodiscard]] bool is_timeout() const {
    return code == Errc::Timeout || history.stop_reason == Reason::ElapsedExhausted;
  }
};

// Thrown by Result::value(). what() returns the message of the error.
class HTTPRETRY_API Failure : public std::exception {
 public:
  explicit Failure(Error error);
  [[nodiscard]] const char* what() const noexcept override;
  // Returns the error that the Result held.
  [[nodiscard]] const Error& error() const noexcept { return *error_; }

 private:
  std::shared_ptr<const Error> error_;  // shared: copying an exception must not throw
};

// Holds either a T or an Error. A moved-from Result may only be assigned or destroyed.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value)
      : value_(std::in_place, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : error_(std::in_place, std::move(error)) {}  // NOLINT(google-explicit-constructor)
  // Constructs the T in place.
  template <class... Args>
  explicit Result(std::in_place_t /*tag*/, Args&&... args)
      : value_(std::in_place, std::forward<Args>(args)...) {}

  [[nodiscard]] bool has_value() const noexcept { return static_cast<bool>(value_); }
  explicit operator bool() const noexcept { return has_value(); }

  // Returns the value. Throws Failure if there is an error.
  T& value() & { return check(), *value_; }
  const T& value() const& { return check(), *value_; }
  T&& value() && { return check(), std::move(*value_); }

  // Return the value or the error. Check has_value() first: if the Result holds the other one, the
  // program aborts with a message.
  T& operator*() & noexcept { return expect_value(), *value_; }
  const T& operator*() const& noexcept { return expect_value(), *value_; }
  T&& operator*() && noexcept { return expect_value(), std::move(*value_); }
  T* operator->() noexcept { return expect_value(), &*value_; }
  const T* operator->() const noexcept { return expect_value(), &*value_; }
  [[nodiscard]] Error& error() & noexcept { return expect_error(), *error_; }
  [[nodiscard]] const Error& error() const& noexcept { return expect_error(), *error_; }
  [[nodiscard]] Error&& error() && noexcept { return expect_error(), std::move(*error_); }

  // Returns the value, or `other` if there is an error.
  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(other));
  }

  // Returns f(value), which is a Result<U>, or this error.
  template <class F>
  auto and_then(F&& f) && -> std::invoke_result_t<F, T&&> {
    if (has_value()) return std::invoke(std::forward<F>(f), *std::move(*this));
    return std::move(*this).error();
  }
  template <class F>
  auto and_then(F&& f) const& -> std::invoke_result_t<F, const T&> {
    if (has_value()) return std::invoke(std::forward<F>(f), **this);
    return error();
  }
  // Returns f(value), wrapped in a Result<U>, or this error.
  template <class F>
  auto transform(F&& f) && -> Result<std::invoke_result_t<F, T&&>> {
    if (has_value()) return std::invoke(std::forward<F>(f), *std::move(*this));
    return std::move(*this).error();
  }
  template <class F>
  auto transform(F&& f) const& -> Result<std::invoke_result_t<F, const T&>> {
    if (has_value()) return std::invoke(std::forward<F>(f), **this);
    return error();
  }
  // Returns this value, or f(error), which is a Result<T>.
  template <class F>
  Result or_else(F&& f) && {
    if (has_value()) return std::move(*this);
    return std::invoke(std::forward<F>(f), std::move(*this).error());
  }

 private:
  void check() const {
    if (!has_value()) throw Failure(error());
  }
  void expect_value() const noexcept {
    if (!value_) [[unlikely]]
      detail::no_value(error_ ? &*error_ : nullptr);
  }
  void expect_error() const noexcept {
    if (!error_) [[unlikely]]
      detail::no_error();
  }
  detail::ResultStorage<T> value_;
  detail::ResultStorage<Error> error_;
};

// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  Result(Error error)
      : error_(std::in_place, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return has_value(); }
  // Throws Failure if there is an error.
  void value() const {
    if (!has_value()) throw Failure(*error_);
  }
  // Returns the error. Check has_value() first: after a success, the program aborts with a message.
  [[nodiscard]] const Error& error() const& noexcept { return expect_error(), *error_; }
  [[nodiscard]] Error&& error() && noexcept { return expect_error(), std::move(*error_); }

 private:
  void expect_error() const noexcept {
    if (!error_) [[unlikely]]
      detail::no_error();
  }
  detail::ResultStorage<Error> error_;
};

}  // namespace httpretry
