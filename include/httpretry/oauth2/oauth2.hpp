// Access tokens from an OAuth 2.0 server, for programs that act on their own behalf: the client
// credentials grant of RFC 6749, section 4.4.
//
//   ClientOptions options;
//   options.call_middlewares = {oauth2_client_credentials({token_url, id, secret, "orders.read"})};
//   Client api(options);
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/chain/middleware.hpp>
#include <httpretry/client/client_options.hpp>
#include <httpretry/http/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// The URL of a token server, and the credentials of this program there.
struct HTTPRETRY_API OAuth2ClientCredentials {
  // How the token server gets `id` and `secret`.
  enum class Authentication : std::uint8_t {
    Basic,  // in an Authorization header; every server must accept this (RFC 6749, section 2.3.1)
    Body,   // as the parameters client_id and client_secret
  };
  OAuth2ClientCredentials() = default;
  OAuth2ClientCredentials(std::string url, std::string client_id, std::string client_secret,
                          std::string scopes = {});

  std::string token_url;  // an absolute URL without user and password
  std::string id;         // the client id
  std::string secret;
  std::string scope;  // separated by spaces; empty: the server's default
  Authentication authentication = Authentication::Basic;
  // Further parameters of the token request, such as {"audience", "https://api.example.com"}.
  std::vector<std::pair<std::string, std::string>> parameters;
  // The origins that may receive the token, such as "https://api.example.com". Empty: the origin of
  // each call. Set this if others choose the URLs that the program requests.
  std::vector<std::string> origins;
};

// Returns a middleware that adds "Authorization: Bearer TOKEN" to requests that have no
// Authorization. It adds the header only to requests to the origin of the call, and only if that is
// one of `credentials.origins` or if these are empty.
//
// All calls share one token, and only one token request is in flight at a time. The token is
// fetched when it is first needed. It is fetched again before it expires (by a tenth of its
// lifetime, but at most 30 s), and after a 401; the request is then resent once.
//
// A separate client sends the token requests. `token_client` has its options: connection, policies,
// observers, and the scheduler if the program has its own event loop. By default, it retries as
// `Client client;` does. Use the middleware in ClientOptions::call_middlewares: below retry(), both
// clients would retry, which multiplies the attempts.
//
// If there is no token, the call ends with an error that names the token URL and, if the server
// sent them, the `error` and `error_description` of RFC 6749. No error or log line contains the
// secret or a token. Throws std::invalid_argument if a member of `credentials` is not usable.
[[nodiscard]] HTTPRETRY_API MiddlewarePtr oauth2_client_credentials(
    OAuth2ClientCredentials credentials, ClientOptions token_client = ClientOptions());

// Reads credentials from JSON, for example from a file that only this program can read:
//
//   {"token_url": "https://login.example.com/token", "id": "app", "secret": "…"}
//
// Optional members are "scope", "authentication" ("basic" or "body"), "parameters" (an object of
// strings) and "origins" (an array of strings). `file_name` is only for messages. The error has a
// line for each problem, with its position but without the values.
[[nodiscard]] HTTPRETRY_API Result<OAuth2ClientCredentials> parse_oauth2_client_credentials(
    std::string_view json, std::string file_name);

}  // namespace httpretry
