// Result<T>: a T, or the Error that says why there is none. A stand-in for std::expected<T, Error>
// of C++23, with the same names.
//
//   Outcome outcome = client.send(Request::get(url));
//   if (!outcome) return fail(outcome.error().message);
//   use(outcome->body);
//
// or, for those who prefer exceptions: `use(client.send(...).value().body)`; `value()` throws
// Failure, which carries the Error.
//
// An HTTP status of 400 or more is a Response, never an Error: the server did respond.
//
// Error: why there is no response. Nothing in the library throws because of what the network, the
// server or the file system did.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/detail/box.hpp>
#include <httpretry/http/detail/misuse.hpp>
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

// The list is short: two codes differ only where a caller would act differently.
enum class Errc : std::uint8_t {
  InvalidRequest,  // it cannot be sent as it is: a bad URL, an unreadable body file, …
  Resolve,         // no address for the host (or the proxy)
  Connect,         // no connection to the host, or the proxy refused to connect us
  Tls,             // the handshake failed, or the certificate is not trusted
  Timeout,
  Send,
  Receive,   // the connection was lost; with Error::partial, in the middle of the response
  Protocol,  // the response is not HTTP
  TooLarge,  // the response is larger than one of our limits
  Canceled,
  // Nothing was sent, because we held it back. History::retry_at says when to come back.
  Paused,       // a server asked for a longer pause than the limits of time allow
  CircuitOpen,  // too many sends failed
  RateLimited,  // our own rate allows it too late
  QueueFull,    // too many sends wait already
  // Nothing was sent, because this process lacks something: descriptors, memory, threads or ports.
  // It may work later, or with fewer requests at once. retry() does not repeat it.
  LocalShortage,
  Internal,  // a middleware threw, or memory ran out after the request was sent
  Status,    // of `require_success`: there is a response, but it is not a success
};

// As printed in reports and logs: "invalid_request", "resolve", …
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Errc code);
HTTPRETRY_API std::ostream& operator<<(std::ostream& out, Errc code);

struct HTTPRETRY_API Error {
  explicit Error(Errc errc, std::string text = {});

  Errc code;
  // A sentence without secrets: its URLs have no query and no userinfo.
  std::string message;
  int curl_code = 0;  // libcurl's number for it; 0 if it does not come from libcurl
  // A retry cannot help: an untrusted certificate, a bad URL, a proxy that wants a password.
  bool permanent = false;
  // Part of the response had arrived.
  bool partial = false;
  // What was received before the error. With `from_proxy` it is the response of a proxy that
  // refused to connect us, and the origin saw nothing.
  int status = 0;
  bool from_proxy = false;
  Headers headers;
  Exchange exchange;
  History history;

  // Of a call that made attempts before, they count.
  [[nodiscard]] bool maybe_sent() const { return exchange.sent != Sent::Never; }
  // We held it back: Paused, CircuitOpen, RateLimited or QueueFull.
  [[nodiscard]] bool held_back() const { return code >= Errc::Paused && code <= Errc::QueueFull; }
  // A limit of time ended the call: this attempt took too long, or there was no time for a retry.
  [[nodiscard]] bool is_timeout() const {
    return code == Errc::Timeout || history.stop_reason == Reason::ElapsedExhausted;
  }
};

// Thrown by Result::value(); what() is the error's message.
class HTTPRETRY_API Failure : public std::exception {
 public:
  explicit Failure(Error error);
  [[nodiscard]] const char* what() const noexcept override;
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

  // The value; throws Failure if there is an error.
  T& value() & { return check(), *value_; }
  const T& value() const& { return check(), *value_; }
  T&& value() && { return check(), std::move(*value_); }

  // The value or the error. Call has_value() first: where it is the other one, the program is
  // aborted with a message.
  T& operator*() & noexcept { return expect_value(), *value_; }
  const T& operator*() const& noexcept { return expect_value(), *value_; }
  T&& operator*() && noexcept { return expect_value(), std::move(*value_); }
  T* operator->() noexcept { return expect_value(), &*value_; }
  const T* operator->() const noexcept { return expect_value(), &*value_; }
  [[nodiscard]] Error& error() & noexcept { return expect_error(), *error_; }
  [[nodiscard]] const Error& error() const& noexcept { return expect_error(), *error_; }
  [[nodiscard]] Error&& error() && noexcept { return expect_error(), std::move(*error_); }

  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(other));
  }

  // f(value) -> Result<U>, or this error.
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
  // f(value) -> U, wrapped; or this error.
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
  // this value, or f(error) -> Result<T>.
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
  detail::Box<T> value_;
  detail::Box<Error> error_;
};

// Success, or the Error that says why not.
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
  void value() const {
    if (!has_value()) throw Failure(*error_);
  }
  [[nodiscard]] const Error& error() const& noexcept { return expect_error(), *error_; }
  [[nodiscard]] Error&& error() && noexcept { return expect_error(), std::move(*error_); }

 private:
  void expect_error() const noexcept {
    if (!error_) [[unlikely]]
      detail::no_error();
  }
  detail::Box<Error> error_;
};

}  // namespace httpretry
