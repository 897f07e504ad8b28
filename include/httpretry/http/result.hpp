// Result<T>: a T, or the Error that says why there is none. The names and meanings are those of
// std::expected<T, Error>, which the compilers of this library do not have yet.
//
//   Outcome outcome = client.send(Request::get(url));
//   if (!outcome) return fail(outcome.error().message);
//   use(outcome->body);
//
// or, for those who prefer exceptions: `use(client.send(...).value().body)`; `value()` throws
// Failure, which carries the Error.
//
// An HTTP status of 400 or more is a Response, never an Error: the server did answer.
//
// Error: why there is no answer. A value; nothing in the library throws because of what the world
// did.
#pragma once

#include <httpretry/http/attempt.hpp>
#include <httpretry/http/headers.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace httpretry {

// Small and closed, by what a caller would do differently.
enum class Errc : std::uint8_t {
  InvalidRequest,  // it could not be sent as it stands: a bad URL, an unreadable body file, …
  Resolve,         // no address for the host (or the proxy)
  Connect,         // no connection to the host, or the proxy refused to make one
  Tls,             // the handshake failed, or the certificate is not trusted
  Timeout,
  Send,
  Receive,   // the connection was lost; with Error::partial, in the middle of the answer
  Protocol,  // what came back is not HTTP
  TooLarge,  // the answer passed a limit of ours
  Canceled,
  CircuitOpen,
  Internal,  // a middleware threw, or a resource of this process ran out
};

// The word for it in reports and logs: "invalid_request", "resolve", …
[[nodiscard]] HTTPRETRY_API std::string_view to_string(Errc code);

struct HTTPRETRY_API Error {
  explicit Error(Errc errc, std::string text = {});

  Errc code;
  // A sentence with the facts and without secrets: URLs stand in it without query and userinfo.
  std::string message;
  int curl_code = 0;  // libcurl's number for it; 0 where libcurl had no part in it
  // Asking again cannot help: an untrusted certificate, a bad URL, a proxy that wants a password.
  bool permanent = false;
  // Part of the answer had arrived.
  bool partial = false;
  // What was received before it failed. With `from_proxy` it is the answer of a proxy that refused
  // to connect us, and the origin saw nothing.
  int status = 0;
  bool from_proxy = false;
  Headers headers;
  Exchange exchange;
  History history;

  [[nodiscard]] bool maybe_sent() const { return exchange.sent != Sent::Never; }
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

namespace detail {

// A value of T, in place where it is small, on the heap where it is not: so that a Result of a
// Response is two words, whatever a Response holds.
template <class T>
class Box {
  static constexpr bool kInPlace =
      sizeof(T) <= 2 * sizeof(void*) && std::is_nothrow_move_constructible_v<T>;
  using Storage = std::conditional_t<kInPlace, std::optional<T>, std::unique_ptr<T>>;

 public:
  Box() = default;
  template <class... Args>
  explicit Box(std::in_place_t, Args&&... args) {
    if constexpr (kInPlace) {
      storage_.emplace(std::forward<Args>(args)...);
    } else {
      storage_ = std::make_unique<T>(std::forward<Args>(args)...);
    }
  }
  Box(Box&&) noexcept = default;
  Box& operator=(Box&&) noexcept = default;
  Box(const Box& other) { assign(other); }
  Box& operator=(const Box& other) {
    if (this != &other) assign(other);
    return *this;
  }
  ~Box() = default;

  [[nodiscard]] bool full() const noexcept { return static_cast<bool>(storage_); }
  [[nodiscard]] T& get() noexcept { return *storage_; }
  [[nodiscard]] const T& get() const noexcept { return *storage_; }

 private:
  void assign(const Box& other) {
    if (!other.full()) {
      storage_.reset();
    } else if constexpr (kInPlace) {
      storage_.emplace(other.get());
    } else {
      storage_ = std::make_unique<T>(other.get());
    }
  }
  Storage storage_;
};

}  // namespace detail

// Holds exactly one of a T and an Error; a moved-from Result may only be assigned or destroyed.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value)
      : value_(std::in_place, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : error_(std::in_place, std::move(error)) {}  // NOLINT(google-explicit-constructor)
  // A T made of `args`, where it will stay.
  template <class... Args>
  explicit Result(std::in_place_t /*tag*/, Args&&... args)
      : value_(std::in_place, std::forward<Args>(args)...) {}

  [[nodiscard]] bool has_value() const noexcept { return value_.full(); }
  explicit operator bool() const noexcept { return has_value(); }

  // The value; throws Failure where there is an error.
  T& value() & { return check(), value_.get(); }
  const T& value() const& { return check(), value_.get(); }
  T&& value() && { return check(), std::move(value_.get()); }

  // The value or the error, unchecked: look at has_value() first.
  T& operator*() & noexcept { return value_.get(); }
  const T& operator*() const& noexcept { return value_.get(); }
  T&& operator*() && noexcept { return std::move(value_.get()); }
  T* operator->() noexcept { return &value_.get(); }
  const T* operator->() const noexcept { return &value_.get(); }
  [[nodiscard]] Error& error() & noexcept { return error_.get(); }
  [[nodiscard]] const Error& error() const& noexcept { return error_.get(); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(error_.get()); }

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
    if (!has_value()) throw Failure(error_.get());
  }
  detail::Box<T> value_;
  detail::Box<Error> error_;
};

// Done, or the Error that says why not.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  Result(Error error)
      : error_(std::in_place, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return !error_.full(); }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (!has_value()) throw Failure(error_.get());
  }
  [[nodiscard]] const Error& error() const& noexcept { return error_.get(); }
  [[nodiscard]] Error&& error() && noexcept { return std::move(error_.get()); }

 private:
  detail::Box<Error> error_;
};

}  // namespace httpretry
