// Error: why there is no answer. A value; nothing in the library throws because of what the world
// did.
#pragma once

#include <httpretry/attempt.hpp>
#include <httpretry/headers.hpp>

#include <cstdint>
#include <string>
#include <string_view>

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
  ~Error();
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;

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

}  // namespace httpretry
